//! A turn in the form in which all interfaces return it.

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
    /// The agent that answered, if the assistant has several.
    pub routed_agent: Option<String>,
    /// The confidence with which the assistant chose that agent, from 0 to 1.
    pub confidence: Option<f64>,
    /// The model: a provider's model id, `offline`, or `scripted`.
    pub model: String,
    /// How the turn ended, or that it is waiting for approval.
    pub status: TurnStatus,
    /// The text for the user, even after a failure.
    pub reply: String,
    /// The error, if the turn failed.
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
    pub context: ContextSize,
    /// Data of the assistant that is stored with the answer.
    pub data: Option<JsonText>,
    /// The messages that this turn added.
    pub stored: Vec<StoredMessage>,
    /// When the turn started.
    pub started_at: Timestamp,
    /// How long the turn has taken, in milliseconds.
    pub duration_ms: u64,
}

/// The status of a turn that is not running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// The turn has an answer.
    Completed,
    /// The turn is waiting for a decision about an approval.
    WaitingForApproval,
    /// The turn failed. The reply explains why.
    Failed,
}

/// A tool call and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCallTrace {
    /// The id that the model assigned to the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: JsonText,
    /// Whether the call succeeded; `false` for errors, denials and unknown outcomes.
    pub ok: bool,
    /// The result, if the call succeeded: JSON if the tool returns JSON, otherwise the text that the model read.
    pub result: Option<JsonText>,
    /// The error that the model read, if the call failed.
    pub error: Option<String>,
    /// How long the call took, in milliseconds.
    pub duration_ms: u64,
    /// Whether the result came from a cache.
    pub cached: bool,
}

/// An approval as part of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalTrace {
    /// The id of the approval.
    pub id: String,
    /// The tool; for a question asked by a node of the graph, the node.
    pub tool: String,
    /// The exact arguments.
    pub arguments: JsonText,
    /// A description of the call for the person who decides.
    pub preview: String,
    /// When the approval expires.
    pub expires_at: Timestamp,
    /// The state.
    pub state: ApprovalState,
}

/// A turn's usage of models.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnUsage {
    /// Number of model calls.
    pub model_calls: u64,
    /// Number of embedder calls.
    pub embedding_calls: u64,
    /// The number of input tokens, as far as models report it.
    pub input_tokens: u64,
    /// The number of output tokens, as far as models report it.
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
pub struct ContextSize {
    /// Number of history messages.
    pub messages: u64,
    /// Total number of tokens, counted by the assistant's counter.
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
    /// The position in the thread.
    pub seq: u64,
    /// The role.
    pub role: Role,
}
