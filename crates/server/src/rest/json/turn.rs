use serde::Serialize;
use threadkeep::agent::{ApprovalTrace, ContextNumbers, Failure, StoredMessage, ToolCallTrace, TurnUsage};
use threadkeep::{JsonText, ThreadId, Timestamp, Turn, TurnEvent, TurnStatus};
use utoipa::ToSchema;

use super::approval::StateJson;
use super::message::RoleJson;
use super::part::{SourceJson, TokenDetailsJson};

/// One turn of an assistant, as every door tells it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnJson {
    #[schema(value_type = String, format = Uuid)]
    thread: ThreadId,
    turn: String,
    /// The assistant.
    agent: String,
    /// Which of the assistant's agents answered.
    routed_agent: Option<String>,
    /// How sure that choice is, from 0 to 1.
    confidence: Option<f64>,
    /// What spoke.
    model: String,
    status: StatusJson,
    /// What the user reads, also when it failed.
    reply: String,
    error: Option<TurnErrorJson>,
    /// In order, all of this turn.
    tool_calls: Vec<ToolCallTraceJson>,
    /// Requested, decided or voided in this turn.
    approvals: Vec<ApprovalTraceJson>,
    /// What the answer stands on.
    sources: Vec<SourceJson<'static>>,
    usage: TurnUsageJson,
    context: ContextNumbersJson,
    /// The assistant's own.
    #[schema(value_type = Option<Value>)]
    data: Option<JsonText>,
    /// The messages that this turn added.
    stored: Vec<StoredJson>,
    #[schema(value_type = String, format = DateTime)]
    started_at: Timestamp,
    duration_ms: u64,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StatusJson {
    Completed,
    /// It goes on when somebody decides.
    WaitingForApproval,
    /// It was not answered; the reply says so.
    Failed,
}

/// What went wrong, for programs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnErrorJson {
    code: String,
    message: String,
}

/// A tool's call and what came of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolCallTraceJson {
    id: String,
    name: String,
    #[schema(value_type = Object)]
    arguments: JsonText,
    ok: bool,
    #[schema(value_type = Option<Value>)]
    result: Option<JsonText>,
    error: Option<String>,
    duration_ms: u64,
    /// Whether it was remembered rather than looked up.
    cached: bool,
}

/// An approval, as a turn tells it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovalTraceJson {
    id: String,
    tool: String,
    #[schema(value_type = Object)]
    arguments: JsonText,
    /// What it will do, in words.
    preview: String,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    state: StateJson,
}

/// What a turn took.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnUsageJson {
    model_calls: u64,
    embedding_calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<TokenDetailsJson>,
    /// US dollars; null where a price is not known.
    cost_usd: Option<f64>,
}

/// What the model saw, in numbers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContextNumbersJson {
    messages: u64,
    tokens: u64,
    summary: u64,
    recalled: u64,
    dropped: u64,
}

/// A message that a turn added.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredJson {
    seq: u64,
    role: RoleJson,
}

/// What happens in a turn; the event's name stands beside it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum TurnEventJson {
    /// `turn.started`
    Started {
        #[schema(value_type = String, format = Uuid)]
        thread: ThreadId,
        turn: String,
        agent: String,
    },
    /// `token`
    Token { text: String },
    /// `token.restarted`: the pieces so far are void.
    Restarted {},
    /// `tool.started`
    ToolStarted {
        id: String,
        name: String,
        #[schema(value_type = Object)]
        arguments: JsonText,
    },
    /// `tool.finished`
    ToolFinished(ToolCallTraceJson),
    /// `approval.requested`
    ApprovalRequested(ApprovalTraceJson),
    /// `turn.completed` or `turn.failed`
    Ended(Box<TurnJson>),
}

impl TurnEventJson {
    /// The event as it is told; `None` for one that this door has no words for.
    pub(crate) fn of(event: TurnEvent) -> Option<Self> {
        Some(match event {
            TurnEvent::Started { thread, turn, agent } => Self::Started { thread, turn, agent },
            TurnEvent::Token { text } => Self::Token { text },
            TurnEvent::Restarted => Self::Restarted {},
            TurnEvent::ToolStarted { id, name, arguments } => Self::ToolStarted { id, name, arguments },
            TurnEvent::ToolFinished(trace) => Self::ToolFinished(trace.into()),
            TurnEvent::ApprovalRequested(trace) => Self::ApprovalRequested(trace.into()),
            TurnEvent::Completed(turn) | TurnEvent::Failed(turn) => Self::Ended(Box::new((*turn).into())),
            _ => return None,
        })
    }
}

impl From<Turn> for TurnJson {
    fn from(turn: Turn) -> Self {
        Self {
            thread: turn.thread,
            turn: turn.turn,
            agent: turn.agent,
            routed_agent: turn.routed_agent,
            confidence: turn.confidence,
            model: turn.model,
            status: match turn.status {
                TurnStatus::Completed => StatusJson::Completed,
                TurnStatus::WaitingForApproval => StatusJson::WaitingForApproval,
                TurnStatus::Failed => StatusJson::Failed,
            },
            reply: turn.reply,
            error: turn.error.map(|Failure { code, message }| TurnErrorJson { code, message }),
            tool_calls: turn.tool_calls.into_iter().map(Into::into).collect(),
            approvals: turn.approvals.into_iter().map(Into::into).collect(),
            sources: turn.sources.into_iter().map(Into::into).collect(),
            usage: turn.usage.into(),
            context: turn.context.into(),
            data: turn.data,
            stored: turn.stored.into_iter().map(Into::into).collect(),
            started_at: turn.started_at,
            duration_ms: turn.duration_ms,
        }
    }
}

impl From<ToolCallTrace> for ToolCallTraceJson {
    fn from(trace: ToolCallTrace) -> Self {
        let ToolCallTrace { id, name, arguments, ok, result, error, duration_ms, cached } = trace;
        Self { id, name, arguments, ok, result, error, duration_ms, cached }
    }
}

impl From<ApprovalTrace> for ApprovalTraceJson {
    fn from(trace: ApprovalTrace) -> Self {
        let ApprovalTrace { id, tool, arguments, preview, expires_at, state } = trace;
        Self { id, tool, arguments, preview, expires_at, state: state.into() }
    }
}

impl From<TurnUsage> for TurnUsageJson {
    fn from(usage: TurnUsage) -> Self {
        let TurnUsage { model_calls, embedding_calls, input_tokens, output_tokens, details, cost_usd } = usage;
        let details = TokenDetailsJson::of(details);
        Self { model_calls, embedding_calls, input_tokens, output_tokens, details, cost_usd }
    }
}

impl From<ContextNumbers> for ContextNumbersJson {
    fn from(numbers: ContextNumbers) -> Self {
        let ContextNumbers { messages, tokens, summary, recalled, dropped } = numbers;
        Self { messages, tokens, summary, recalled, dropped }
    }
}

impl From<StoredMessage> for StoredJson {
    fn from(message: StoredMessage) -> Self {
        Self { seq: message.seq, role: message.role.into() }
    }
}
