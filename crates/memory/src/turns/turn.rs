//! A turn, as all interfaces return it.

use serde::{Deserialize, Serialize};
use threadkeep_core::{ChatAnswer, Failure, JsonText, Role, Source, ThreadId, Timestamp, TokenDetails};

use super::ApprovalState;

/// A turn: the answer, its sources, tool calls and approvals, and the usage.
///
/// Fields may be added; existing fields keep their names and meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The thread.
    pub thread: ThreadId,
    /// The id of the turn.
    pub turn: String,
    /// The assistant.
    pub agent: String,
    /// Which of the assistant's agents answered.
    pub routed_agent: Option<String>,
    /// The confidence of that choice, from 0 to 1.
    pub confidence: Option<f64>,
    /// The model: a provider's model id, `offline`, or `scripted`.
    pub model: String,
    /// How it ended.
    pub status: TurnStatus,
    /// The text for the user, also after a failure.
    pub reply: String,
    /// The error, for programs.
    pub error: Option<Failure>,
    /// The tool calls of this turn, in order.
    pub tool_calls: Vec<ToolCallTrace>,
    /// Approvals that were requested, decided or voided in this turn.
    pub approvals: Vec<ApprovalTrace>,
    /// The sources that the answer cites.
    pub sources: Vec<Source>,
    /// The usage of models.
    pub usage: TurnUsage,
    /// The size of the context.
    pub context: ContextNumbers,
    /// Data of the assistant that is stored with the answer.
    pub data: Option<JsonText>,
    /// The messages that this turn added.
    pub stored: Vec<StoredMessage>,
    /// When it started.
    pub started_at: Timestamp,
    /// How long it has taken.
    pub duration_ms: u64,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// It has an answer.
    Completed,
    /// It waits for a decision about an approval.
    WaitingForApproval,
    /// It failed; the reply explains that.
    Failed,
}

/// A tool call and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCallTrace {
    /// The model's id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: JsonText,
    /// Whether it succeeded; `false` for errors, denials and unknown outcomes.
    pub ok: bool,
    /// The result: JSON if the tool returns JSON, otherwise the text that the model read.
    pub result: Option<JsonText>,
    /// The error that the model read.
    pub error: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// Whether the result came from a cache.
    pub cached: bool,
}

/// An approval as part of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalTrace {
    /// Its id.
    pub id: String,
    /// The tool; for a node's question, the node.
    pub tool: String,
    /// The exact arguments.
    pub arguments: JsonText,
    /// A description of the call for the person who decides.
    pub preview: String,
    /// When it expires.
    pub expires_at: Timestamp,
    /// Its state.
    pub state: ApprovalState,
}

/// A turn's usage of models.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnUsage {
    /// Number of model calls.
    pub model_calls: u64,
    /// Number of embedder calls.
    pub embedding_calls: u64,
    /// Input tokens, as far as models report them.
    pub input_tokens: u64,
    /// Output tokens, as far as models report them.
    pub output_tokens: u64,
    /// A breakdown of the tokens, as far as models report it.
    #[serde(default, skip_serializing_if = "TokenDetails::is_empty")]
    pub details: TokenDetails,
    /// The cost in US dollars; `None` if a price is unknown.
    pub cost_usd: Option<f64>,
}

impl TurnUsage {
    /// Sums up the usage of answers, and adds a number of embedder calls.
    #[must_use]
    pub fn of<'a>(answers: impl IntoIterator<Item = &'a ChatAnswer>, embedding_calls: u64) -> Self {
        let mut usage = Self { embedding_calls, ..Self::default() };
        for answer in answers {
            usage.model_calls += 1;
            let reported = answer.usage.as_ref();
            usage.input_tokens += reported.map_or(0, |reported| reported.input_tokens);
            usage.output_tokens += reported.map_or(0, |reported| reported.output_tokens);
            usage.details =
                usage.details.plus(reported.map_or_else(TokenDetails::default, |reported| reported.details));
            let cost = reported.and_then(|reported| reported.cost_usd);
            usage.cost_usd = usage.cost_usd.zip(cost).map(|(sum, cost)| sum + cost);
        }
        usage
    }
}

impl Default for TurnUsage {
    fn default() -> Self {
        Self {
            model_calls: 0,
            embedding_calls: 0,
            input_tokens: 0,
            output_tokens: 0,
            details: TokenDetails::default(),
            cost_usd: Some(0.0),
        }
    }
}

/// The size of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextNumbers {
    /// Number of history messages.
    pub messages: u64,
    /// Total tokens, by the assistant's counter.
    pub tokens: u64,
    /// Number of messages that were replaced by a summary.
    pub summary: u64,
    /// Number of recalled messages.
    pub recalled: u64,
    /// Number of messages that were omitted.
    pub dropped: u64,
}

/// A message that a turn added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMessage {
    /// Its position.
    pub seq: u64,
    /// Its role.
    pub role: Role,
}
