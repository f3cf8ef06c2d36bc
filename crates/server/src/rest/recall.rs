use axum::extract::State;
use serde::{Deserialize, Serialize};
use threadkeep::ThreadId;
use threadkeep::memory::{Meaning, RecallOptions, ThreadTail};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::output::json;
use crate::rest::json::message::MessageJson;
use crate::security::Caller;

/// What is asked.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallJson {
    question: String,
    /// Only from this thread.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Uuid)]
    thread: Option<ThreadId>,
    /// Only messages before this position of that thread.
    #[serde(default)]
    before: Option<u64>,
    /// Messages at most: 1 to 1,000. Default: 10.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// What may answer, the best first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecalledJson<'a> {
    turns: Vec<RecalledTurnJson<'a>>,
    /// Whether meaning had a part in the ranking: `absent`, `used` or `failed`.
    meaning: &'static str,
    /// Threads whose newest messages could not be looked at yet.
    #[schema(value_type = Vec<String>)]
    incomplete: Vec<ThreadId>,
}

/// A message that may answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecalledTurnJson<'a> {
    #[schema(value_type = String, format = Uuid)]
    thread: ThreadId,
    /// Larger is better; comparable within one answer.
    score: f64,
    /// How near its meaning is to the question's, from -1 to 1, where an embedder was asked.
    similarity: Option<f64>,
    message: MessageJson<'a>,
}

/// Recalls messages that answer a question
#[utoipa::path(
    post,
    path = "/v1/recall",
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
    let RecallJson { question, thread, before, limit } = body;
    if let Some(thread) = thread {
        memory.get_thread(scope, thread).await?;
    }
    let default = RecallOptions::default();
    let except = match (thread, before) {
        (Some(thread), Some(from_seq)) => Some(ThreadTail { thread, from_seq }),
        (None, Some(_)) => return Err(ApiError::invalid("before", "`before` is a position: name its `thread`")),
        (_, None) => None,
    };
    let options = RecallOptions { thread, except, limit: limit.unwrap_or(default.limit), ..default };
    let results = match app.embedder() {
        Some(embedder) => memory.recall_by_meaning(scope, &question, &options, embedder.as_ref()).await?,
        None => memory.recall(scope, &question, &options).await?,
    };
    let meaning = match results.meaning {
        Meaning::Absent => "absent",
        Meaning::Used => "used",
        Meaning::Failed(_) => "failed",
    };
    let turns = results.turns.iter().map(|turn| RecalledTurnJson {
        thread: turn.thread,
        score: turn.score,
        similarity: turn.similarity,
        message: (&turn.message).into(),
    });
    let incomplete = results.unsearched.iter().map(|behind| behind.thread).collect();
    Ok(json(&RecalledJson { turns: turns.collect(), meaning, incomplete }))
}
