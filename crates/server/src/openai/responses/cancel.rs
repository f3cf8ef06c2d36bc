use axum::extract::State;
use axum::http::StatusCode;

use super::{kept, thread_of, unknown};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::Names;
use crate::openai::turn;
use crate::security::Caller;

/// Refuses: only a response in the background can be cancelled, and this server makes none
#[utoipa::path(
    post,
    path = "/v1/responses/{id}/cancel",
    tag = "openai",
    params(("id" = String, Path)),
    responses((status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn cancel(State(app): State<App>, caller: Caller, names: Names) -> Result {
    let (id, scope) = (names.text("id"), &caller.scope);
    let is_known = match thread_of(id)? {
        Some(thread) => turn::find(&app, scope, thread, id).await?.is_some(),
        None => kept::find(&app, scope, id).await?.is_some(),
    };
    if !is_known {
        return Err(unknown(id));
    }
    let message = "Cannot cancel a synchronous response.";
    Err(ApiError::new(StatusCode::BAD_REQUEST, "not_in_background", message))
}
