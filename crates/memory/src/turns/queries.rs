//! Queries about turns and approvals, which need no assistant.

use threadkeep_core::{DrivenThread, Failure, Owner, RecordName, Scope, ThreadId, Timestamp, limits};

use super::record::{self, PendingQuestion, RunRecord, TurnKind, TurnRecord};
use super::{Approval, ApprovalState, ThreadAccess, closing, lock};
use crate::retry::retry;
use crate::{Memory, Result};

/// A running or interrupted turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningTurn {
    /// The id of the turn.
    pub turn: String,
    /// The kind of turn.
    pub kind: TurnKind,
    /// The assistant; empty for a completion.
    pub assistant: String,
    /// The name of the model.
    pub model: String,
    /// When the turn started.
    pub started_at: Timestamp,
    /// The user's message, as long as the thread does not contain it.
    pub pending_question: Option<PendingQuestion>,
}

impl From<RunRecord> for RunningTurn {
    fn from(record: RunRecord) -> Self {
        let RunRecord { turn, kind, assistant, model, started_at, pending_question, .. } = record;
        Self { turn, kind, assistant, model, started_at, pending_question }
    }
}

/// Finds the turn that holds the lock of a thread. It may be interrupted.
///
/// # Errors
/// `NotFound` if the scope cannot read the thread.
pub async fn find_running_turn(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<Option<RunningTurn>> {
    let access = ThreadAccess::find(memory, scope, thread).await?;
    let active = access.runs(memory).await?.active;
    Ok(active.map(|run| run.value.into()))
}

/// A turn whose driver has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterruptedTurn {
    /// The scope of the turn's requester.
    pub scope: Scope,
    /// The thread.
    pub thread: ThreadId,
    /// The id of the turn.
    pub turn: String,
    /// The kind of turn.
    pub kind: TurnKind,
    /// The assistant; empty for a completion.
    pub assistant: String,
}

/// Lists the turns of all tenants that were interrupted by a crash or a restart and have not been resumed yet.
///
/// An assistant's agent resumes a run. For a completion, [`remove_interrupted_completion`] releases the lock of the thread. The
/// cost depends only on the number of running turns. A driver on another machine is considered alive until its lease ends
/// ([`super::LEASE`]).
///
/// # Errors
/// Errors from the store. A run record that cannot be decoded is omitted and logged.
pub async fn list_interrupted_turns(memory: &Memory) -> Result<Vec<InterruptedTurn>> {
    let maintenance = &memory.backend().maintenance;
    let (mut interrupted, mut after) = (Vec::new(), None);
    loop {
        let now = memory.now();
        let page =
            retry(memory.runtime(), || maintenance.list_driven_threads(after.as_ref(), limits::PAGE, now)).await?;
        interrupted.extend(page.iter().filter_map(|driven| as_interrupted_turn(memory, driven)));
        if page.len() < limits::PAGE {
            return Ok(interrupted);
        }
        after = page.into_iter().next_back();
    }
}

/// Returns the turn that holds the lock of a thread; `None` if its driver is alive or its record cannot be decoded.
fn as_interrupted_turn(memory: &Memory, driven: &DrivenThread) -> Option<InterruptedTurn> {
    let record = driven.record.value.read::<RunRecord>();
    let record =
        record.inspect_err(|error| tracing::warn!(%error, thread = %driven.thread, "failed to decode a run record"));
    let record = record.ok().filter(|record| !record.is_alive(memory))?;
    let scope = match record.requester.as_ref().unwrap_or(&driven.owner) {
        Owner::User(user) => Scope::User(driven.tenant.clone(), user.clone()),
        Owner::Tenant => Scope::Tenant(driven.tenant.clone()),
    };
    Some(InterruptedTurn {
        scope,
        thread: driven.thread,
        turn: record.turn,
        kind: record.kind,
        assistant: record.assistant,
    })
}

/// Releases the lock of an interrupted completion. The model is not called again, and nothing is stored. Does nothing for a
/// completion that is running, or for a run.
///
/// # Errors
/// `NotFound` if the scope cannot read the thread; errors from the store.
pub async fn remove_interrupted_completion(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<()> {
    let access = ThreadAccess::find(memory, scope, thread).await?;
    let active = access.runs(memory).await?.active;
    let is_interrupted = |run: &RunRecord| run.kind == TurnKind::Completion && !run.is_alive(memory);
    match active.filter(|active| is_interrupted(&active.value)) {
        Some(interrupted) => lock::release_abandoned(memory, &access, &interrupted).await,
        None => Ok(()),
    }
}

/// Ends a turn that is waiting for approval: voids the request and stores the turn as failed with the code `stopped`.
///
/// Returns whether the turn was waiting. If a decision is made at the same time, only one of the two takes effect.
///
/// # Errors
/// `NotFound` if the scope cannot read the thread.
pub async fn stop_waiting_turn(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str) -> Result<bool> {
    let access = ThreadAccess::find(memory, scope, thread).await?;
    let waiting = access.runs(memory).await?.waiting.into_iter().find(|run| run.value.turn == turn);
    let Some(waiting) = waiting else { return Ok(false) };
    let failure = Failure::new("stopped", "the turn was stopped");
    closing::close(memory, &access, &record::waiting_name(turn), &waiting, ApprovalState::Void, Some(failure)).await?;
    Ok(true)
}

/// Lists the approvals in a thread, oldest first. Finished approvals are retained for 30 days.
///
/// # Errors
/// `NotFound` if the scope cannot read the thread.
pub async fn list_approvals(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<Vec<Approval>> {
    let access = ThreadAccess::find(memory, scope, thread).await?;
    let found = access.approvals(memory).await?;
    let mut approvals: Vec<Approval> = found.into_iter().map(|approval| approval.value).collect();
    approvals.sort_by(|a, b| (a.requested_at, &a.id).cmp(&(b.requested_at, &b.id)));
    Ok(approvals)
}

/// Finds an approval in a thread by its id.
///
/// # Errors
/// `NotFound` if the scope cannot read the thread.
pub async fn find_approval(memory: &Memory, scope: &Scope, thread: ThreadId, id: &str) -> Result<Option<Approval>> {
    let access = ThreadAccess::find(memory, scope, thread).await?;
    if !record::is_valid_id(id) {
        return Ok(None);
    }
    let found = memory.find_thread_record(&access.writer, thread, &record::approval_name(id)).await?;
    Ok(found.map(|record| record.value.read()).transpose()?)
}

/// Returns the id of the approval that the record with this name stores; `None` if the record does not store an approval.
#[must_use]
pub fn approval_id(name: &RecordName) -> Option<&str> {
    (name.namespace == record::approval_namespace()).then_some(name.key.as_str())
}

/// Returns the id of the ended turn that the record with this name stores; `None` if the record does not store one.
#[must_use]
pub fn ended_turn_id(name: &RecordName) -> Option<&str> {
    (*name == record::turn_record_name(&name.key)).then_some(name.key.as_str())
}

/// Finds the record of a turn that has ended. [`super::find_turn_state`] also reads the messages of the turn.
///
/// # Errors
/// `NotFound` if the scope cannot read the thread.
pub async fn find_ended_turn(memory: &Memory, scope: &Scope, thread: ThreadId, id: &str) -> Result<Option<TurnRecord>> {
    let access = ThreadAccess::find(memory, scope, thread).await?;
    if !record::is_valid_id(id) {
        return Ok(None);
    }
    let found = memory.find_thread_record(&access.writer, thread, &record::turn_record_name(id)).await?;
    Ok(found.map(|record| record.value.read()).transpose()?)
}
