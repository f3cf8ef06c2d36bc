//! Passes this [`crate::Memory`]'s own commits to its feeds, so that subscribers need not read them from the log.

use std::sync::Arc;

use threadkeep_core::{Batch, CommitOutcome, Message, MonotonicTime, NewMessage, Scope, Timestamp};

use super::feed::{Feed, OwnCommit};
use super::log::CommitUpdate;
use super::{ThreadEvent, ThreadUpdate};
use crate::retry::RetryOutcome;
use crate::thread_cache::{message_bytes, removes_content};

/// A commit that has started, and the feeds of its thread.
pub(crate) struct PendingCommit {
    /// The feeds in the scope of the commit. If the commit succeeds, that scope is allowed to read the thread.
    same_scope: Vec<Arc<Feed>>,
    /// The feeds in other scopes. Their subscribers read the log, because only the store knows what those scopes can read.
    other_scopes: Vec<Arc<Feed>>,
    started_at: MonotonicTime,
    /// The outcome; `Unknown` until the commit ends, because the commit may be cancelled.
    outcome: OwnCommit,
}

impl PendingCommit {
    pub(super) fn begin(scope: &Scope, feeds: Vec<Arc<Feed>>, started_at: MonotonicTime) -> Self {
        let (same_scope, other_scopes): (Vec<_>, _) = feeds.into_iter().partition(|feed| feed.scope == *scope);
        same_scope.iter().for_each(|feed| feed.begin_commit());
        Self { same_scope, other_scopes, started_at, outcome: OwnCommit::Unknown }
    }

    /// Sets the outcome, which is passed to the feeds when the `PendingCommit` is dropped.
    pub(crate) fn end(mut self, batch: &Batch, retried: &RetryOutcome<CommitOutcome>, now: Timestamp) {
        self.outcome = match &retried.result {
            // The outcome is that of an earlier commit with the same key, whose time is unknown.
            Ok(outcome) if outcome.replayed => OwnCommit::Unknown,
            Ok(outcome) if removes_content(batch) => OwnCommit::Removal(outcome.change),
            Ok(outcome) if self.same_scope.is_empty() => OwnCommit::NumberOnly(outcome.change),
            Ok(outcome) => {
                update_from_batch(batch, outcome, now).map_or(OwnCommit::NumberOnly(outcome.change), OwnCommit::Update)
            }
            Err(error) if error.maybe_applied() => OwnCommit::Unknown,
            Err(_) => OwnCommit::Failed,
        };
    }
}

impl Drop for PendingCommit {
    fn drop(&mut self) {
        for feed in &self.other_scopes {
            let outcome = match &self.outcome {
                OwnCommit::Update(update) => OwnCommit::NumberOnly(update.change.number),
                outcome => outcome.clone(),
            };
            feed.end_commit(outcome, false, self.started_at);
        }
        for feed in &self.same_scope {
            feed.end_commit(self.outcome.clone(), true, self.started_at);
        }
    }
}

/// Creates the update for a commit that was just made, identical to that from the log. `None` if it depends on more than the batch.
fn update_from_batch(batch: &Batch, outcome: &CommitOutcome, now: Timestamp) -> Option<CommitUpdate> {
    let depends_on_the_thread = removes_content(batch) || !batch.delete.is_empty() || batch.patch.expires_at.is_some();
    if depends_on_the_thread {
        return None;
    }
    let mut events = Vec::new();
    let mut bytes = 0;
    if !batch.append.is_empty() {
        let appended = (outcome.first_seq..).zip(&batch.append);
        let messages: Vec<_> = appended.map(|(seq, message)| as_stored(seq, message)).collect();
        bytes = messages.iter().map(message_bytes).sum();
        events.push(ThreadEvent::Appended { messages, corrupt: Vec::new() });
    }
    let put = batch.put.iter().map(|put| put.name.clone());
    events.extend(put.map(|name| ThreadEvent::Record { name, version: Some(outcome.change) }));
    if !batch.patch.is_empty() {
        events.push(ThreadEvent::Patched);
    }
    let update = Arc::new(ThreadUpdate::Commit { change: outcome.change, tag: outcome.tag, at: now, events });
    Some(CommitUpdate { change: outcome.tagged(), update, bytes })
}

fn as_stored(seq: u64, message: &NewMessage) -> Message {
    let NewMessage { id, external_id, created_at, content } = message.clone();
    Message { seq, id, external_id, revision: 0, created_at, content }
}
