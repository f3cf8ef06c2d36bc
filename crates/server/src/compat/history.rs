use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use serde::Serialize;
use threadkeep::core::limits;
use threadkeep::{Bound, JsonText, Message, MessageId, MessageQuery, Role, Scope, ThreadId, Timestamp};
use utoipa::ToSchema;

use super::{FailureJson, assistant, failure, parse_thread_id};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// The complete history of a thread.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryJson {
    success: bool,
    thread_id: String,
    /// The messages, oldest first.
    messages: Vec<HistoryMessageJson>,
}

/// A message of a user or the assistant.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryMessageJson {
    #[schema(value_type = String, format = Uuid)]
    id: MessageId,
    content: String,
    /// `user` or `assistant`.
    pub(super) sender: &'static str,
    pub(super) agent: Option<String>,
    #[schema(value_type = Option<Value>)]
    pub(super) tfl_data: Option<JsonText>,
    #[schema(value_type = String, format = DateTime)]
    pub(super) timestamp: Timestamp,
}

/// Returns the complete history of a thread, which is empty for an unknown thread
#[utoipa::path(
    get,
    path = "/conversations/{threadId}",
    operation_id = "get_history",
    tag = "compat",
    params(("threadId" = String, Path)),
    responses((status = 200, body = HistoryJson), (status = 500, body = FailureJson)),
    security(("key" = []))
)]
pub(crate) async fn history(State(app): State<App>, caller: Caller, path_params: PathParams) -> Response {
    let thread_id = path_params.get("threadId").to_owned();
    match read_history(&app, &assistant::accessible_scope(&caller), parse_thread_id(&thread_id)).await {
        Ok(messages) => json(&HistoryJson { success: true, thread_id, messages }),
        Err(error) => {
            tracing::error!("❌ Error getting conversation history: {}", error.message);
            failure(StatusCode::INTERNAL_SERVER_ERROR, "Failed to get conversation history")
        }
    }
}

/// Returns the complete history of a thread, at the path of an assistant
#[utoipa::path(
    get,
    path = "/{assistant}/conversations/{threadId}",
    operation_id = "get_history_with_assistant",
    tag = "compat",
    params(("assistant" = String, Path), ("threadId" = String, Path)),
    responses(
        (status = 200, body = HistoryJson),
        (status = 404, body = ErrorEnvelope<'_>),
        (status = 500, body = FailureJson)
    ),
    security(("key" = []))
)]
pub(crate) async fn history_with(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
) -> Result {
    assistant::find(&state.0, &path_params, head.0, head.1).await?;
    Ok(history(state, caller, path_params).await)
}

/// Reads the visible messages of a thread, oldest first.
pub(super) async fn read_history(
    app: &App,
    scope: &Scope,
    thread: Option<ThreadId>,
) -> Result<Vec<HistoryMessageJson>> {
    let Some(thread) = thread else { return Ok(Vec::new()) };
    if app.memory().find_thread(scope, thread).await?.is_none() {
        return Ok(Vec::new());
    }
    let mut query =
        MessageQuery { roles: vec![Role::User, Role::Assistant], ..MessageQuery::following(0, limits::PAGE) };
    let mut messages = Vec::new();
    loop {
        let page = app.memory().messages(scope, thread, &query).await?;
        query.after = page.messages.last().map(|last| Bound::Seq(last.seq));
        messages.extend(page.messages.into_iter().filter(is_visible).map(to_json));
        if !page.more || query.after.is_none() {
            return Ok(messages);
        }
    }
}

/// Whether a message has content that a person can read. A message that only calls tools has none.
fn is_visible(message: &Message) -> bool {
    message.content.data.is_some() || !message.plain_text().is_empty()
}

fn to_json(message: Message) -> HistoryMessageJson {
    HistoryMessageJson {
        id: message.id,
        content: message.plain_text().into_owned(),
        sender: if message.content.role == Role::User { "user" } else { "assistant" },
        agent: message.content.agent,
        tfl_data: message.content.data,
        timestamp: message.created_at,
    }
}
