//! Reading the state of a turn.

use std::collections::BTreeMap;

use threadkeep_core::{
    Failure, JsonText, Message, MessageId, MessageRef, Part, Role, Scope, ThreadId, Timestamp, Value, limits,
};

use super::record::{self, RunRecord, TurnKind, TurnRecord};
use super::{
    ApprovalTrace, ContextSize, RunningTurn, StoredMessage, ThreadAccess, ToolCallTrace, Turn, TurnStatus, TurnUsage,
    journal,
};
use crate::{Memory, Result};

/// The state of a turn.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TurnState {
    /// The turn is running, or was interrupted.
    Running(RunningTurn),
    /// The turn has ended, or is waiting for approval.
    NotRunning(Box<Turn>),
}

/// Finds a turn in any state: running, waiting or ended. Also finds a turn whose state changes during the call.
///
/// # Errors
/// `NotFound` if the scope cannot read the thread.
pub async fn find_turn_state(
    memory: &Memory,
    scope: &Scope,
    thread: ThreadId,
    turn: &str,
) -> Result<Option<TurnState>> {
    let access = ThreadAccess::find(memory, scope, thread).await?;
    let record = match find_record(memory, &access, turn).await? {
        None => return Ok(None),
        Some(FoundRecord::Running(record)) => {
            return Ok(Some(TurnState::Running(RunningTurn::from(record))));
        }
        Some(FoundRecord::NotRunning(record)) => record,
    };
    let messages = read_turn_messages(memory, &access, turn, record.started_at, record.messages).await?;
    let approvals: Vec<ApprovalTrace> =
        access.approvals_of_turn(memory, turn).await?.iter().map(|approval| approval.value.trace()).collect();
    let answer = messages.iter().rev().find(|message| message.content.role == Role::Assistant);
    let reply = answer.map(|message| message.plain_text().into_owned()).unwrap_or_default();
    let content = answer.map(|message| &message.content);
    Ok(Some(TurnState::NotRunning(Box::new(Turn {
        thread,
        turn: turn.to_owned(),
        agent: record.assistant,
        routed_agent: content.and_then(|content| content.agent.clone()),
        confidence: record.confidence,
        model: record.model,
        status: record.status,
        reply,
        error: record.error,
        tool_calls: trace_tool_calls(&messages),
        approvals,
        sources: content.map(|content| content.sources.clone()).unwrap_or_default(),
        usage: record.usage,
        context: record.context,
        data: content.and_then(|content| content.data.clone()),
        stored: messages.iter().map(|found| StoredMessage { seq: found.seq, role: found.content.role }).collect(),
        started_at: record.started_at,
        duration_ms: record.duration_ms,
    }))))
}

/// Creates the turn for a completion that was stopped. Nothing is stored for such a completion, so [`find_turn_state`] does not
/// find it.
#[must_use]
pub fn stopped_completion(thread: ThreadId, running: RunningTurn, now: Timestamp) -> Turn {
    let active_ms = now.as_millis() - running.started_at.as_millis();
    Turn {
        thread,
        turn: running.turn,
        agent: running.assistant,
        routed_agent: None,
        confidence: None,
        model: running.model,
        status: TurnStatus::Failed,
        reply: String::new(),
        error: Some(Failure::new("stopped", "the turn was stopped")),
        tool_calls: Vec::new(),
        approvals: Vec::new(),
        sources: Vec::new(),
        usage: TurnUsage::default(),
        context: ContextSize::default(),
        data: None,
        stored: Vec::new(),
        started_at: running.started_at,
        duration_ms: u64::try_from(active_ms).unwrap_or(0),
    }
}

/// The record of a turn.
enum FoundRecord {
    Running(RunRecord),
    NotRunning(TurnRecord),
}

/// Finds the record of a turn. Reads all run records in one call before the turn record: a turn alternates between waiting and
/// running until its turn record is written, so a turn without a run record already has its turn record.
async fn find_record(memory: &Memory, access: &ThreadAccess, turn: &str) -> Result<Option<FoundRecord>> {
    if !record::is_valid_id(turn) {
        return Ok(None);
    }
    let runs = access.runs(memory).await?;
    if let Some(active) = runs.active.filter(|run| run.value.turn == turn) {
        // A completion whose driver has ended is not resumed, and nothing is stored for it.
        let is_over = active.value.kind == TurnKind::Completion && !active.value.is_alive(memory);
        return Ok((!is_over).then_some(FoundRecord::Running(active.value)));
    }
    let Some(waiting) = runs.waiting.into_iter().find(|run| run.value.turn == turn) else {
        let found = memory.find_thread_record(&access.writer, access.thread, &record::turn_record_name(turn)).await?;
        return Ok(found.map(|record| record.value.read()).transpose()?.map(FoundRecord::NotRunning));
    };
    let record = waiting.value;
    let (model, usage) = journal::model_and_usage(memory, access, &record).await?;
    Ok(Some(FoundRecord::NotRunning(TurnRecord {
        assistant: record.assistant,
        graph: record.graph,
        version: record.version,
        model,
        status: TurnStatus::WaitingForApproval,
        error: None,
        confidence: None,
        usage,
        context: record.context,
        messages: record.messages,
        started_at: record.started_at,
        duration_ms: record.active_ms,
    })))
}

/// Reads the messages of a turn, in order. Omits messages that were erased or trimmed. `count` is the number of messages of the
/// turn, including the omitted ones.
///
/// # Errors
/// Errors from the store.
pub async fn read_turn_messages(
    memory: &Memory,
    access: &ThreadAccess,
    turn: &str,
    started_at: Timestamp,
    count: u16,
) -> Result<Vec<Message>> {
    let ids: Vec<MessageId> = (0..count).map(|number| record::message_id(turn, started_at, number)).collect();
    let mut found = Vec::new();
    for ids in ids.chunks(limits::PAGE) {
        let refs: Vec<MessageRef> = ids.iter().copied().map(MessageRef::Id).collect();
        found.extend(memory.find_messages(&access.scope, access.thread, &refs).await?);
    }
    Ok(found)
}

/// Returns the tool calls in a turn's messages, with their results. Omits calls without a result.
fn trace_tool_calls(messages: &[Message]) -> Vec<ToolCallTrace> {
    let mut results = BTreeMap::new();
    for message in messages {
        for part in &message.content.parts {
            if let Part::ToolResult(result) = part {
                results.insert(result.call_id.as_str(), (message, result));
            }
        }
    }
    let parts = messages.iter().flat_map(|message| &message.content.parts);
    let calls = parts.filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None });
    let trace = |call: &threadkeep_core::ToolCall| {
        let (message, result) = results.get(call.id.as_str())?;
        let data: Value = message.content.data.as_ref().and_then(|data| data.read().ok()).unwrap_or_default();
        let arguments = data.get("arguments").map_or_else(|| call.arguments.clone(), JsonText::from);
        let text = Value::String(result.output.clone());
        let value = JsonText::from(data.get("value").unwrap_or(&text));
        let metadata = &message.content.metadata;
        Some(ToolCallTrace {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments,
            ok: !result.is_error,
            result: (!result.is_error).then_some(value),
            error: result.is_error.then(|| result.output.clone()),
            duration_ms: metadata.get("duration_ms").and_then(Value::as_u64).unwrap_or(0),
            cached: metadata.get("cached").and_then(Value::as_bool).unwrap_or(false),
        })
    };
    calls.filter_map(trace).collect()
}
