use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use super::require_user;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::security::Caller;

/// Deletes a preference
///
/// Succeeds even if the preference does not exist.
#[utoipa::path(
    delete,
    path = "/v1/preferences/{key}",
    operation_id = "delete_preference",
    tag = "preferences",
    params(("key" = String, Path)),
    responses((status = 204, description = "The preference no longer exists."), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    require_user(&caller.scope)?;
    app.memory().delete_preference(&caller.scope, path_params.get("key")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
