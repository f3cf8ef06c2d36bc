//! Closing a run that will not be resumed. This voids the run's open approvals, adds error results for its calls, and deletes its
//! journal.

use threadkeep_core::{Failure, PutRecord, RecordName, RecordState, Timestamp};

use super::record::{self, RunRecord, TURN_RETENTION_MS, TurnKind, TurnRecord};
use super::{
    ApprovalState, ThreadAccess, TurnStatus, TurnUsage, Versioned, error_result_draft, journal, lock, notice_draft,
};
use crate::{Memory, MemoryError, Result};

/// Closes the run that is stored as the record `name`. Pending approvals get the state `state`. Without a `failure`, the turn's
/// error is derived from `state`. Does nothing if others decide on a pending approval or close the run at the same time.
///
/// # Errors
/// Errors from the store.
pub async fn close(
    memory: &Memory,
    access: &ThreadAccess,
    name: &RecordName,
    run: &Versioned<RunRecord>,
    state: ApprovalState,
    failure: Option<Failure>,
) -> Result<()> {
    let record = &run.value;
    let batch = memory.batch().require(name.clone(), RecordState::Version(run.version));
    let mut batch = if record::is_active(&name.key) { lock::release(batch) } else { batch.delete(name.clone()) };
    let mut drafts = Vec::new();
    let mut previews = Vec::new();
    for mut approval in access.approvals_of_turn(memory, &record.turn).await? {
        let condition = RecordState::Version(approval.version);
        let value = &mut approval.value;
        let closed = match value.state {
            ApprovalState::Pending => state,
            ApprovalState::Claimed => ApprovalState::OutcomeUnknown,
            _ => continue,
        };
        value.state = closed;
        if !value.is_question {
            drafts.push(error_result_draft(&record.turn, &value.call_id, &closed.refusal_text(None)));
        }
        previews.push(value.preview.clone());
        batch = batch.require(record::approval_name(&value.id), condition).put(value.record(memory.now())?);
    }
    let failure =
        failure.unwrap_or_else(|| Failure::new(format!("approval_{}", error_code(state)), state.refusal_text(None)));
    drafts.push(notice_draft(&record.turn, &failure_text(&failure, &previews)));
    let drafts = record.with_question(drafts, false);
    for number in 1..=record.entries {
        batch = batch.delete(record::entry_name(&record.turn, number));
    }
    let messages = record.messages + u16::try_from(drafts.len()).unwrap_or(u16::MAX);
    for (draft, number) in drafts.into_iter().zip(record.messages..) {
        let id = record::message_id(&record.turn, record.started_at, number);
        batch = batch.append(record.mark_if_ephemeral(draft).with_id(id));
    }
    // A run must be closed even if its journal cannot be read.
    let usage = journal::model_and_usage(memory, access, record).await;
    let usage = usage.unwrap_or_else(|_| (record.model.clone(), TurnUsage::of([], record.embedding_calls)));
    let turn_record = turn_record(record, usage, failure, messages, memory.now());
    let expires_at = Some(memory.now().plus_ms(TURN_RETENTION_MS));
    batch = batch.put(PutRecord {
        name: record::turn_record_name(&record.turn),
        value: turn_record.to_json()?,
        expires_at,
    });
    match batch.commit(&access.writer, access.thread).await {
        Err(error) if is_concurrent_change(&error) => Ok(()),
        result => result.map(drop),
    }
}

/// Ends an interrupted turn that will not be resumed. Closes a run as failed with the code `interrupted`. For a completion, which
/// stores nothing until its end, only releases the lock of the thread.
///
/// # Errors
/// Errors from the store.
pub async fn interrupt(memory: &Memory, access: &ThreadAccess, interrupted: &Versioned<RunRecord>) -> Result<()> {
    if interrupted.value.kind == TurnKind::Completion {
        return lock::release_abandoned(memory, access, interrupted).await;
    }
    let failure = Failure::new("interrupted", "the program ended before the question was answered");
    close(memory, access, &record::active_name(), interrupted, ApprovalState::Void, Some(failure)).await
}

/// Whether the commit failed because others decided on an approval or closed the run at the same time.
fn is_concurrent_change(error: &MemoryError) -> bool {
    record::is_run_conflict(error) || record::is_approval_conflict(error)
}

const fn error_code(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Expired => "expired",
        ApprovalState::Void => "replaced",
        _ => "closed",
    }
}

/// The text of the message that reports the failure.
fn failure_text(failure: &Failure, previews: &[String]) -> String {
    let previews: Vec<String> = previews.iter().map(|preview| format!("`{preview}`")).collect();
    match previews.is_empty() {
        true => failure.message.clone(),
        false => format!("{}: {}", previews.join(", "), failure.message),
    }
}

fn turn_record(
    record: &RunRecord,
    (model, usage): (String, TurnUsage),
    failure: Failure,
    messages: u16,
    now: Timestamp,
) -> TurnRecord {
    TurnRecord {
        assistant: record.assistant.clone(),
        graph: record.graph.clone(),
        version: record.version,
        model,
        status: TurnStatus::Failed,
        error: Some(failure),
        confidence: None,
        usage,
        context: record.context,
        messages,
        started_at: record.started_at,
        duration_ms: u64::try_from(now.as_millis() - record.started_at.as_millis()).unwrap_or(0),
    }
}
