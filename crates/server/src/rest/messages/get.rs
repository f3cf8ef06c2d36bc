use axum::extract::State;
use threadkeep_api::message::MessageJson;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Gets a message by its position or id
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/messages/{message}",
    operation_id = "get_message",
    tag = "messages",
    params(("id" = String, Path), ("message" = String, Path, description = "A position or an id")),
    responses((status = 200, body = MessageJson<'_>), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let (thread, message) = (path_params.thread(&app, &caller.scope).await?, path_params.message()?);
    let found = app.memory().find_messages(&caller.scope, thread, &[message]).await?;
    let message = found.into_iter().next().ok_or_else(|| ApiError::not_found("message"))?;
    Ok(json(&MessageJson::from(&message)))
}
