//! What can be seen of a thread's turns and approvals without the assistant that makes them.

use threadkeep_core::{DocumentName, Scope, ThreadId};
use threadkeep_memory::Memory;

use crate::place::Place;
use crate::{Approval, Result, record};

/// A turn that is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningTurn {
    /// Its id.
    pub turn: String,
    /// The assistant that answers.
    pub assistant: String,
}

/// Finds the turn that is on its way in a thread. Its driver may be gone; [`crate::Agent::resume`] goes on with it then.
///
/// # Errors
/// `NotFound` where the scope does not reach the thread.
pub async fn find_running_turn(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<Option<RunningTurn>> {
    let place = Place::find(memory, scope, thread).await?;
    let active = place.runs(memory).await?.active;
    Ok(active.map(|run| RunningTurn { turn: run.value.turn, assistant: run.value.assistant }))
}

/// All approvals of a thread that are kept, oldest first. Those that are over are kept for 30 days.
///
/// # Errors
/// `NotFound` where the scope does not reach the thread.
pub async fn list_approvals(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<Vec<Approval>> {
    let place = Place::find(memory, scope, thread).await?;
    let found = place.approvals(memory).await?;
    let mut approvals: Vec<Approval> = found.into_iter().map(|approval| approval.value).collect();
    approvals.sort_by(|one, other| (one.requested_at, &one.id).cmp(&(other.requested_at, &other.id)));
    Ok(approvals)
}

/// Finds an approval of a thread by its id.
///
/// # Errors
/// `NotFound` where the scope does not reach the thread.
pub async fn find_approval(memory: &Memory, scope: &Scope, thread: ThreadId, id: &str) -> Result<Option<Approval>> {
    let place = Place::find(memory, scope, thread).await?;
    // A name that no document can have names no approval either.
    if id.is_empty() || id.len() > 100 || id.chars().any(char::is_control) {
        return Ok(None);
    }
    let found = memory.find_thread_document(&place.writer, thread, &record::approval(id)).await?;
    Ok(found.map(|document| document.value.read()).transpose()?)
}

/// The approval that a document of a thread keeps, by its id; `None` for any other document.
#[must_use]
pub fn approval_id(name: &DocumentName) -> Option<&str> {
    (name.namespace == record::approvals()).then_some(name.key.as_str())
}
