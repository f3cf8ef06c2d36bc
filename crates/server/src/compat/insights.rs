//! `GET /conversations/{threadId}/insights`: what a conversation is about.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use threadkeep::Timestamp;
use utoipa::ToSchema;

use super::history::{HistoryMessageJson, read_history};
use super::{FailureJson, assistant, failure, parse_thread_id};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Statistics of a conversation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InsightsJson {
    success: bool,
    thread_id: String,
    /// The number of messages that a person can read.
    messages: usize,
    user_messages: usize,
    /// How often each agent answered.
    agents: BTreeMap<String, u64>,
    /// How often each line was mentioned in a question.
    lines: BTreeMap<String, u64>,
    /// How often each station was mentioned in a question.
    stations: BTreeMap<String, u64>,
    /// How often each kind of question was asked.
    query_types: BTreeMap<String, u64>,
    #[schema(value_type = Option<String>, format = DateTime)]
    first_message_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_message_at: Option<Timestamp>,
    /// The time between the first message and the last one.
    duration_ms: i64,
}

/// The fields of an answer's data that are counted.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Mentions {
    lines: Vec<String>,
    stations: Vec<String>,
    query_types: Vec<String>,
}

/// Returns statistics of a thread, which are zero for an unknown thread
#[utoipa::path(
    get,
    path = "/conversations/{threadId}/insights",
    operation_id = "get_insights",
    tag = "compat",
    params(("threadId" = String, Path)),
    responses((status = 200, body = InsightsJson), (status = 500, body = FailureJson)),
    security(("key" = []))
)]
pub(crate) async fn insights(State(app): State<App>, caller: Caller, path_params: PathParams) -> Response {
    let thread_id = path_params.get("threadId").to_owned();
    match read_history(&app, &assistant::accessible_scope(&caller), parse_thread_id(&thread_id)).await {
        Ok(messages) => json(&InsightsJson::of(thread_id, &messages)),
        Err(error) => {
            tracing::error!("failed to read the insights of a conversation: {}", error.message);
            failure(StatusCode::INTERNAL_SERVER_ERROR, "Failed to get conversation insights")
        }
    }
}

/// Returns statistics of a thread, at the path of an assistant
#[utoipa::path(
    get,
    path = "/{assistant}/conversations/{threadId}/insights",
    operation_id = "get_insights_with_assistant",
    tag = "compat",
    params(("assistant" = String, Path), ("threadId" = String, Path)),
    responses(
        (status = 200, body = InsightsJson),
        (status = 404, body = ErrorEnvelope<'_>),
        (status = 500, body = FailureJson)
    ),
    security(("key" = []))
)]
pub(crate) async fn insights_with(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
) -> Result {
    assistant::find(&state.0, &path_params, head.0, head.1).await?;
    Ok(insights(state, caller, path_params).await)
}

impl InsightsJson {
    fn of(thread_id: String, messages: &[HistoryMessageJson]) -> Self {
        let mentions: Vec<Mentions> =
            messages.iter().filter_map(|message| message.tfl_data.as_ref()?.read().ok()).collect();
        let count_all = |list: fn(&Mentions) -> &Vec<String>| count(mentions.iter().flat_map(list));
        let first = messages.first().map(|message| message.timestamp);
        let last = messages.last().map(|message| message.timestamp);
        let duration_ms = first.zip(last).map_or(0, |(first, last)| last.as_millis() - first.as_millis());
        Self {
            success: true,
            thread_id,
            messages: messages.len(),
            user_messages: messages.iter().filter(|message| message.sender == "user").count(),
            agents: count(messages.iter().filter_map(|message| message.agent.as_ref())),
            lines: count_all(|mentions| &mentions.lines),
            stations: count_all(|mentions| &mentions.stations),
            query_types: count_all(|mentions| &mentions.query_types),
            first_message_at: first,
            last_message_at: last,
            duration_ms,
        }
    }
}

fn count<'a>(values: impl Iterator<Item = &'a String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value.clone()).or_default() += 1;
    }
    counts
}
