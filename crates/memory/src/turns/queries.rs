//! What can be seen of a thread's turns and approvals without the assistant that makes them.

use threadkeep_core::{DrivenThread, Failure, Owner, RecordName, Scope, ThreadId, Timestamp, limits};

use super::record::{self, RunRecord, TurnKind};
use super::{Approval, ApprovalState, ThreadAccess, closing, lock};
use crate::retry::retry;
use crate::{Memory, Result};

/// A turn that is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningTurn {
    /// Its id.
    pub turn: String,
    /// What drives it.
    pub kind: TurnKind,
    /// The assistant that answers; empty where a model does.
    pub assistant: String,
    /// What speaks, by its name.
    pub model: String,
    /// When it began.
    pub started_at: Timestamp,
}

impl From<RunRecord> for RunningTurn {
    fn from(record: RunRecord) -> Self {
        let RunRecord { turn, kind, assistant, model, started_at, .. } = record;
        Self { turn, kind, assistant, model, started_at }
    }
}

/// Finds the turn that is on its way in a thread. Its driver may be gone.
///
/// # Errors
/// `NotFound` where the scope does not reach the thread.
pub async fn find_running_turn(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<Option<RunningTurn>> {
    let access = ThreadAccess::find(memory, scope, thread).await?;
    let active = access.runs(memory).await?.active;
    Ok(active.map(|run| run.value.into()))
}

/// A turn whose driver is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterruptedTurn {
    /// Whose it is: on this scope's behalf it was asked.
    pub scope: Scope,
    /// The thread.
    pub thread: ThreadId,
    /// Its id.
    pub turn: String,
    /// What drove it.
    pub kind: TurnKind,
    /// The assistant that answers; empty where a model did.
    pub assistant: String,
}

/// Lists turns of all tenants that were cut off, by a crash or a restart, and that nobody has gone on with yet: an
/// assistant's agent resumes a run, and [`remove_interrupted_completion`] frees the thread of a call of a model. It looks at the turns that are on their way, and at nothing else. A driver on another
/// machine is believed to be there for half a minute after its last sign.
///
/// # Errors
/// Those of the store. A run that cannot be read is left out, and logged.
pub async fn list_interrupted_turns(memory: &Memory) -> Result<Vec<InterruptedTurn>> {
    let maintenance = &memory.backend().maintenance;
    let (mut cut, mut after) = (Vec::new(), None);
    loop {
        let now = memory.now();
        let page =
            retry(memory.runtime(), || maintenance.list_driven_threads(after.as_ref(), limits::PAGE, now))
                .await?;
        cut.extend(page.iter().filter_map(|driven| cut_turn(memory, driven)));
        if page.len() < limits::PAGE {
            return Ok(cut);
        }
        after = page.into_iter().next_back();
    }
}

fn cut_turn(memory: &Memory, driven: &DrivenThread) -> Option<InterruptedTurn> {
    let record = driven.record.value.read::<RunRecord>();
    let record = record.inspect_err(|error| tracing::warn!(%error, thread = %driven.thread, "a run cannot be read"));
    let record = record.ok().filter(|record| !record.is_alive(memory))?;
    let scope = match record.asker.as_ref().unwrap_or(&driven.owner) {
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

/// Frees the thread of a call of a model whose driver is gone. Nothing was stored of it, and nothing is: the model is not asked
/// again. A turn that is driven, and one of an assistant, is left alone.
///
/// # Errors
/// `NotFound` where the scope does not reach the thread; those of the store.
pub async fn remove_interrupted_completion(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<()> {
    let access = ThreadAccess::find(memory, scope, thread).await?;
    let active = access.runs(memory).await?.active;
    let is_left = |run: &RunRecord| run.kind == TurnKind::Completion && !run.is_alive(memory);
    match active.filter(|active| is_left(&active.value)) {
        Some(left) => lock::release_abandoned(memory, &access, &left).await,
        None => Ok(()),
    }
}

/// Ends a turn that waits for an approval: what it waits for is void, and it is told as failed with the code `stopped`.
/// Tells whether the turn waited; of a decision that is made at the same time one counts.
///
/// # Errors
/// `NotFound` where the scope does not reach the thread.
pub async fn stop_waiting_turn(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str) -> Result<bool> {
    let access = ThreadAccess::find(memory, scope, thread).await?;
    let waiting = access.runs(memory).await?.waiting.into_iter().find(|run| run.value.turn == turn);
    let Some(waiting) = waiting else { return Ok(false) };
    let failure = Failure::new("stopped", "the turn was stopped");
    closing::close(memory, &access, &record::waiting(turn), &waiting, ApprovalState::Replaced, Some(failure)).await?;
    Ok(true)
}

/// All approvals of a thread that are kept, oldest first. Those that are over are kept for 30 days.
///
/// # Errors
/// `NotFound` where the scope does not reach the thread.
pub async fn list_approvals(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<Vec<Approval>> {
    let access = ThreadAccess::find(memory, scope, thread).await?;
    let found = access.approvals(memory).await?;
    let mut approvals: Vec<Approval> = found.into_iter().map(|approval| approval.value).collect();
    approvals.sort_by(|one, other| (one.requested_at, &one.id).cmp(&(other.requested_at, &other.id)));
    Ok(approvals)
}

/// Finds an approval of a thread by its id.
///
/// # Errors
/// `NotFound` where the scope does not reach the thread.
pub async fn find_approval(memory: &Memory, scope: &Scope, thread: ThreadId, id: &str) -> Result<Option<Approval>> {
    let access = ThreadAccess::find(memory, scope, thread).await?;
    if !record::is_name(id) {
        return Ok(None);
    }
    let found = memory.find_thread_record(&access.writer, thread, &record::approval(id)).await?;
    Ok(found.map(|record| record.value.read()).transpose()?)
}

/// The approval that a record of a thread keeps, by its id; `None` for any other record.
#[must_use]
pub fn approval_id(name: &RecordName) -> Option<&str> {
    (name.namespace == record::approvals()).then_some(name.key.as_str())
}
