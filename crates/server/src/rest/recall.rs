use axum::extract::State;
use serde::{Deserialize, Serialize};
use threadkeep::context::recall::ScoreParts;
use threadkeep::memory::{EmbedderOutcome, RecallOptions, ThreadTail};
use threadkeep::{Map, ThreadId};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{JsonBody, metadata_filter, optional_whole_number};
use crate::output::json;
use crate::rest::json::message::MessageJson;
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

/// The recalled messages, most relevant first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecalledJson<'a> {
    turns: Vec<RecalledTurnJson<'a>>,
    /// Whether embeddings contributed to the ranking: `absent` (none are configured), `used` or `failed`.
    meaning: &'static str,
    /// Threads whose newest messages are not indexed yet.
    #[schema(value_type = Vec<String>)]
    incomplete: Vec<ThreadId>,
}

/// A recalled message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecalledTurnJson<'a> {
    #[schema(value_type = String, format = Uuid)]
    thread: ThreadId,
    /// The relevance: larger is better. Scores can be compared only within one response.
    score: f64,
    /// The similarity of the embeddings of the message and the question, from -1 to 1, if embeddings were used.
    similarity: Option<f64>,
    /// The parts of the word-based score.
    parts: ScorePartsJson,
    message: MessageJson<'a>,
}

/// The parts of a word-based score. If a message repeats others, its score is less than the sum of the parts; with embeddings,
/// the score is computed from both rankings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScorePartsJson {
    /// The words of the question in the message itself.
    words: f64,
    /// The words of the question in the message or near it.
    passage: f64,
    /// The contribution of the scores of adjacent messages.
    neighbours: f64,
    /// The bonus for a speaker whom the question mentions.
    speaker: f64,
    /// The bonus for a time to which the question refers.
    time: f64,
}

impl From<ScoreParts> for ScorePartsJson {
    fn from(parts: ScoreParts) -> Self {
        let ScoreParts { words, passage, neighbours, speaker, time } = parts;
        Self { words, passage, neighbours, speaker, time }
    }
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
    let meaning = match results.embedder_outcome {
        EmbedderOutcome::NotRequested => "absent",
        EmbedderOutcome::Used => "used",
        EmbedderOutcome::Failed(_) => "failed",
    };
    let turns = results.messages.iter().map(|turn| RecalledTurnJson {
        thread: turn.thread,
        score: turn.score,
        similarity: turn.similarity,
        parts: turn.parts.into(),
        message: (&turn.message).into(),
    });
    let incomplete = results.unsearched.iter().map(|unsearched| unsearched.thread).collect();
    Ok(json(&RecalledJson { turns: turns.collect(), meaning, incomplete }))
}
