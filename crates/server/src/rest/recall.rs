use axum::extract::State;
use serde::Deserialize;
use threadkeep::Map;
use threadkeep::memory::{RecallOptions, ThreadTail};
use threadkeep_api::recall::RecalledJson;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{JsonBody, metadata_filter, optional_whole_number};
use crate::output::json;
use crate::security::Caller;
use crate::thread_names;

/// The question for which to recall messages.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallJson {
    question: String,
    /// If set, only messages from this thread are recalled. A thread is named by its id, conversation id or key.
    #[serde(default)]
    thread: Option<String>,
    /// If set, only messages in threads with these values in their metadata are recalled: strings, integers and booleans, at most
    /// 8.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
    /// If set, only messages with these values in their own metadata are recalled.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    message_metadata: Option<Map>,
    /// If set, only messages before this position in the thread are recalled. Requires `thread`.
    #[serde(default, deserialize_with = "optional_whole_number")]
    before: Option<u64>,
    /// The maximum number of messages, from 1 to 1,000. Default: 10.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Recalls messages that are relevant to a question
#[utoipa::path(
    post,
    path = "/v1/recall",
    operation_id = "recall_messages",
    tag = "search",
    request_body = RecallJson,
    responses((status = 200, body = RecalledJson<'_>), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn recall(
    State(app): State<App>,
    caller: Caller,
    JsonBody { value: body, .. }: JsonBody<RecallJson>,
) -> Result {
    let (scope, memory) = (&caller.scope, app.memory());
    let RecallJson { question, thread, metadata, message_metadata, before, limit } = body;
    let metadata = metadata_filter("metadata", metadata.as_ref())?;
    let message_metadata = metadata_filter("message_metadata", message_metadata.as_ref())?;
    let thread = thread_names::resolve_existing(&app, scope, thread.as_deref()).await?;
    let default = RecallOptions::default();
    let except = match (thread, before) {
        (Some(thread), Some(from_seq)) => Some(ThreadTail { thread, from_seq }),
        (None, Some(_)) => return Err(ApiError::invalid("before", "`before` requires `thread`")),
        (_, None) => None,
    };
    let options =
        RecallOptions { thread, metadata, message_metadata, except, limit: limit.unwrap_or(default.limit), ..default };
    let results = match app.embedder() {
        Some(embedder) => memory.recall_with_embedder(scope, &question, &options, embedder.as_ref()).await?,
        None => memory.recall(scope, &question, &options).await?,
    };
    Ok(json(&RecalledJson::from(&results)))
}
