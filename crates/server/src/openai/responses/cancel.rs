use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use threadkeep::Value;

use super::{background, not_found, retrieve};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::security::{Caller, MayResume};

/// Cancels a background response
///
/// Has no effect on a response that has ended.
#[utoipa::path(
    post,
    path = "/v1/responses/{id}/cancel",
    operation_id = "cancel_response",
    tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, description = "The response.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn cancel(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result<Response> {
    let (id, scope) = (path_params.get("id"), &caller.scope);
    let find = || async { retrieve::find_json(&app, scope, id, MayResume::Yes).await?.ok_or_else(|| not_found(id)) };
    let response = find().await?;
    let parsed: Value = serde_json::from_str(&response).unwrap_or_default();
    if parsed["background"] != true {
        let message = "Cannot cancel a synchronous response.";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "not_in_background", message));
    }
    let json_response = |response: String| Ok(([(header::CONTENT_TYPE, "application/json")], response).into_response());
    if parsed["status"] != "in_progress" {
        return json_response(response);
    }
    // This has no effect if the response has ended in the meantime.
    background::cancel(&app, scope, id).await?;
    json_response(find().await?)
}
