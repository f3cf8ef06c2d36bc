use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use super::demand_user;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::Names;
use crate::security::Caller;

/// Takes a preference away; one that is not there is no error
#[utoipa::path(
    delete,
    path = "/v1/preferences/{key}",
    tag = "preferences",
    params(("key" = String, Path)),
    responses((status = 204, description = "It is gone."), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(State(app): State<App>, caller: Caller, names: Names) -> Result {
    demand_user(&caller.scope)?;
    app.memory().delete_preference(&caller.scope, names.text("key")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
