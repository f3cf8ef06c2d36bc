//! One turn, as every door returns it.

use serde::{Deserialize, Serialize};
use threadkeep_core::{ChatAnswer, Failure, JsonText, Role, Source, ThreadId, Timestamp, TokenDetails};

use super::ApprovalState;

/// One turn: what was answered, on what grounds, and what became of everything on the way.
///
/// Fields may be added; these keep their names and meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The thread.
    pub thread: ThreadId,
    /// The turn's own id.
    pub turn: String,
    /// The assistant.
    pub agent: String,
    /// Which of the assistant's agents answered.
    pub routed_agent: Option<String>,
    /// How sure that choice is, from 0 to 1.
    pub confidence: Option<f64>,
    /// What spoke: a provider's model id, `offline`, `scripted`.
    pub model: String,
    /// How it ended.
    pub status: TurnStatus,
    /// What the user reads, also when it failed.
    pub reply: String,
    /// What went wrong, for programs.
    pub error: Option<Failure>,
    /// The tools that were called, in the order of their calls, all of this turn.
    pub tool_calls: Vec<ToolCallTrace>,
    /// Approvals that were requested, decided or voided in this turn.
    pub approvals: Vec<ApprovalTrace>,
    /// What the answer stands on.
    pub sources: Vec<Source>,
    /// What it took.
    pub usage: TurnUsage,
    /// What the model saw, in numbers.
    pub context: ContextNumbers,
    /// The assistant's own, as stored with the message.
    pub data: Option<JsonText>,
    /// The messages that this turn added.
    pub stored: Vec<StoredMessage>,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it has taken.
    pub duration_ms: u64,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// It was answered.
    Completed,
    /// It goes on when somebody decides.
    WaitingForApproval,
    /// It was not answered; the reply says so.
    Failed,
}

/// A tool's call and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCallTrace {
    /// The model's id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, by their own names.
    pub arguments: JsonText,
    /// Whether it gave a result; `false` for errors, denials and unknown outcomes.
    pub ok: bool,
    /// The result: JSON where the tool gives JSON, else its text as the model read it.
    pub result: Option<JsonText>,
    /// The error, as the model read it.
    pub error: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// Whether it was remembered rather than looked up.
    pub cached: bool,
}

/// An approval as a turn shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalTrace {
    /// Its id, by which it is decided.
    pub id: String,
    /// The tool, or the node that asks.
    pub tool: String,
    /// The exact arguments.
    pub arguments: JsonText,
    /// What it will do, in words.
    pub preview: String,
    /// From when on it is void.
    pub expires_at: Timestamp,
    /// Where it stands.
    pub state: ApprovalState,
}

/// What a turn took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnUsage {
    /// Answers of models.
    pub model_calls: u64,
    /// Calls of an embedder.
    pub embedding_calls: u64,
    /// Tokens that models read, where they told.
    pub input_tokens: u64,
    /// Tokens that models wrote, where they told.
    pub output_tokens: u64,
    /// What some of these were, where models told.
    #[serde(default, skip_serializing_if = "TokenDetails::is_empty")]
    pub details: TokenDetails,
    /// US dollars; `None` where a price is not known.
    pub cost_usd: Option<f64>,
}

impl TurnUsage {
    /// What these answers of models took, beside calls of an embedder.
    #[must_use]
    pub fn of<'a>(answers: impl IntoIterator<Item = &'a ChatAnswer>, embedding_calls: u64) -> Self {
        let mut usage = Self { embedding_calls, ..Self::default() };
        for answer in answers {
            usage.model_calls += 1;
            let told = answer.usage.as_ref();
            usage.input_tokens += told.map_or(0, |told| told.input_tokens);
            usage.output_tokens += told.map_or(0, |told| told.output_tokens);
            usage.details = usage.details.plus(told.map_or_else(TokenDetails::default, |told| told.details));
            let cost = told.and_then(|told| told.cost_usd);
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

/// What a model saw of the conversation, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextNumbers {
    /// Messages of the history.
    pub messages: u64,
    /// Tokens of all, by the assistant's counter.
    pub tokens: u64,
    /// Messages that a summary stood in for.
    pub summary: u64,
    /// Recalled messages.
    pub recalled: u64,
    /// Messages that nothing stood in for.
    pub dropped: u64,
}

/// A message that a turn added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMessage {
    /// Its position.
    pub seq: u64,
    /// Who speaks.
    pub role: Role,
}
