use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use threadkeep::Value;

use super::{background, retrieve, unknown};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::Names;
use crate::security::{Caller, MayDrive};

/// Cancels a response in the background; one that is over is told as it is
#[utoipa::path(
    post,
    path = "/v1/responses/{id}/cancel",
    tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, description = "The response.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn cancel(State(app): State<App>, caller: Caller, names: Names) -> Result<Response> {
    let (id, scope) = (names.text("id"), &caller.scope);
    let found = || async { retrieve::find(&app, scope, id, MayDrive::Yes).await?.ok_or_else(|| unknown(id)) };
    let response = found().await?;
    let told: Value = serde_json::from_str(&response).unwrap_or_default();
    if told["background"] != true {
        let message = "Cannot cancel a synchronous response.";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "not_in_background", message));
    }
    let written = |response: String| Ok(([(header::CONTENT_TYPE, "application/json")], response).into_response());
    if told["status"] != "in_progress" {
        return written(response);
    }
    // Where it is over meanwhile, there is nothing to cancel.
    background::cancel(&app, scope, id).await?;
    written(found().await?)
}
