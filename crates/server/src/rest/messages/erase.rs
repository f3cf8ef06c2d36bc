use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::with_etag;
use crate::security::Caller;

/// Erases a message
///
/// The position and the id of the message and the time of the erasure are retained.
#[utoipa::path(
    delete,
    path = "/v1/threads/{id}/messages/{message}",
    operation_id = "erase_message",
    tag = "messages",
    params(("id" = String, Path), ("message" = String, Path, description = "A position or an id")),
    responses((status = 204, description = "The message was erased."), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn erase(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    headers: HeaderMap,
) -> Result {
    if headers.contains_key(header::IF_MATCH) {
        return Err(ApiError::invalid("If-Match", "conditional erasure of a message is not supported"));
    }
    let (scope, memory, thread) = (&caller.scope, app.memory(), path_params.thread(&app, &caller.scope).await?);
    let found = memory.find_messages(scope, thread, &[path_params.message()?]).await?;
    let message = found.first().ok_or_else(|| ApiError::not_found("message"))?;
    let change = memory.erase_messages(scope, thread, &[message.id]).await?;
    Ok(with_etag(StatusCode::NO_CONTENT.into_response(), change))
}
