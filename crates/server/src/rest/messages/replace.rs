use axum::extract::State;
use axum::http::HeaderMap;
use threadkeep::Content;
use threadkeep_api::message::MessageJson;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams, expected_change};
use crate::output::{json, with_etag};
use crate::rest::json::message::ContentJson;
use crate::security::Caller;

/// Replaces the content of a message
///
/// The position, the id and the creation time of the message are retained.
#[utoipa::path(
    put,
    path = "/v1/threads/{id}/messages/{message}",
    operation_id = "replace_message",
    tag = "messages",
    params(
        ("id" = String, Path),
        ("message" = String, Path, description = "A position or an id"),
        ("If-Match" = Option<String>, Header, description = "The thread's ETag")
    ),
    request_body = ContentJson,
    responses((status = 200, body = MessageJson<'_>), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn replace(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    headers: HeaderMap,
    JsonBody { value: body, .. }: JsonBody<ContentJson>,
) -> Result {
    let (scope, memory, thread) = (&caller.scope, app.memory(), path_params.thread(&app, &caller.scope).await?);
    let not_found = || ApiError::not_found("message");
    let found = memory.find_messages(scope, thread, &[path_params.message()?]).await?.pop().ok_or_else(not_found)?;
    let expected = expected_change(&headers)?;
    let change = memory.replace_message(scope, thread, found.id, Content::try_from(body)?, expected).await?;
    let replaced = memory.find_messages(scope, thread, &[threadkeep::MessageRef::Id(found.id)]).await?.pop();
    Ok(with_etag(json(&MessageJson::from(&replaced.ok_or_else(not_found)?)), change))
}
