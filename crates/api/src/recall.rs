use serde::Serialize;
use threadkeep::context::recall::ScoreParts;
use threadkeep::memory::EmbedderOutcome;
use threadkeep::{RecallResults, ThreadId};
use utoipa::ToSchema;

use crate::message::MessageJson;

/// The recalled messages, most relevant first.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecalledJson<'a> {
    turns: Vec<RecalledTurnJson<'a>>,
    /// Whether embeddings contributed to the ranking: `absent` (none are configured), `used` or `failed`.
    meaning: &'static str,
    /// Threads whose newest messages are not indexed yet.
    #[schema(value_type = Vec<String>)]
    incomplete: Vec<ThreadId>,
}

/// A recalled message.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecalledTurnJson<'a> {
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
pub struct ScorePartsJson {
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

impl<'a> From<&'a RecallResults> for RecalledJson<'a> {
    fn from(results: &'a RecallResults) -> Self {
        let turns = results.messages.iter().map(|turn| RecalledTurnJson {
            thread: turn.thread,
            score: turn.score,
            similarity: turn.similarity,
            parts: turn.parts.into(),
            message: (&turn.message).into(),
        });
        let meaning = match results.embedder_outcome {
            EmbedderOutcome::NotRequested => "absent",
            EmbedderOutcome::Used => "used",
            EmbedderOutcome::Failed(_) => "failed",
        };
        let incomplete = results.unsearched.iter().map(|unsearched| unsearched.thread).collect();
        Self { turns: turns.collect(), meaning, incomplete }
    }
}
