use serde::Serialize;
use threadkeep::agent::{ApprovalTrace, ContextSize, Failure, StoredMessage, ToolCallTrace, TurnUsage};
use threadkeep::{JsonText, ThreadId, Timestamp, Turn, TurnEvent, TurnStatus};
use utoipa::ToSchema;

use crate::approval::StateJson;
use crate::message::RoleJson;
use crate::part::{SourceJson, TokenDetailsJson};

/// A turn of an assistant.
#[derive(Debug, Serialize, ToSchema)]
pub struct TurnJson {
    #[schema(value_type = String, format = Uuid)]
    thread: ThreadId,
    turn: String,
    /// The name of the assistant.
    agent: String,
    /// The agent that answered, if the assistant chose one of several agents.
    routed_agent: Option<String>,
    /// The confidence of that choice, from 0 to 1.
    confidence: Option<f64>,
    /// The model that answered.
    model: String,
    status: StatusJson,
    /// The reply to the user, which is set even if the turn failed.
    reply: String,
    error: Option<TurnErrorJson>,
    /// All tool calls of this turn, in order.
    tool_calls: Vec<ToolCallTraceJson>,
    /// The approvals that were requested, decided or replaced in this turn.
    approvals: Vec<ApprovalTraceJson>,
    /// The sources of the answer.
    sources: Vec<SourceJson<'static>>,
    usage: TurnUsageJson,
    context: ContextNumbersJson,
    /// Data of the assistant.
    #[schema(value_type = Option<Value>)]
    data: Option<JsonText>,
    /// The messages that this turn stored.
    stored: Vec<StoredJson>,
    #[schema(value_type = String, format = DateTime)]
    started_at: Timestamp,
    duration_ms: u64,
}

/// The status of a turn.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusJson {
    Completed,
    /// The turn resumes after a decision.
    WaitingForApproval,
    /// The question was not answered; the reply reports the failure.
    Failed,
}

/// The cause of a failure, for programs.
#[derive(Debug, Serialize, ToSchema)]
pub struct TurnErrorJson {
    code: String,
    message: String,
}

/// A tool call with its outcome.
#[derive(Debug, Serialize, ToSchema)]
pub struct ToolCallTraceJson {
    id: String,
    name: String,
    #[schema(value_type = Object)]
    arguments: JsonText,
    ok: bool,
    #[schema(value_type = Option<Value>)]
    result: Option<JsonText>,
    error: Option<String>,
    duration_ms: u64,
    /// Whether the result was read from a cache.
    cached: bool,
}

/// An approval of a turn.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalTraceJson {
    id: String,
    tool: String,
    #[schema(value_type = Object)]
    arguments: JsonText,
    /// A description of the call for people.
    preview: String,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    state: StateJson,
}

/// The resources used by a turn.
#[derive(Debug, Serialize, ToSchema)]
pub struct TurnUsageJson {
    model_calls: u64,
    embedding_calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<TokenDetailsJson>,
    /// The cost in US dollars; null if a price is not known.
    cost_usd: Option<f64>,
}

/// The size of the model's context.
#[derive(Debug, Serialize, ToSchema)]
pub struct ContextNumbersJson {
    messages: u64,
    tokens: u64,
    summary: u64,
    recalled: u64,
    dropped: u64,
}

/// A message that a turn stored.
#[derive(Debug, Serialize, ToSchema)]
pub struct StoredJson {
    seq: u64,
    role: RoleJson,
}

/// The data of an event of a turn. The name of the event is not part of the data.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TurnEventJson {
    /// `turn.started`
    Started {
        #[schema(value_type = String, format = Uuid)]
        thread: ThreadId,
        turn: String,
        agent: String,
    },
    /// `token`
    Token { text: String },
    /// `token.restarted`: the tokens so far are not part of the reply.
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
    /// Converts an event; `None` for an event that this API does not report.
    pub fn of(event: TurnEvent) -> Option<Self> {
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

impl From<ContextSize> for ContextNumbersJson {
    fn from(numbers: ContextSize) -> Self {
        let ContextSize { messages, tokens, summary, recalled, dropped } = numbers;
        Self { messages, tokens, summary, recalled, dropped }
    }
}

impl From<StoredMessage> for StoredJson {
    fn from(message: StoredMessage) -> Self {
        Self { seq: message.seq, role: message.role.into() }
    }
}
