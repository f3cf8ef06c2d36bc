//! Commits of this manager, handed to those who listen without a look at the log.

use std::sync::Arc;

use threadkeep_core::{Batch, CommitOutcome, Message, MonotonicTime, NewMessage, Scope, Timestamp};

use super::feed::{Feed, Made};
use super::log::Told;
use super::{ThreadEvent, ThreadUpdate};
use crate::retry::Attempted;
use crate::tails::{size, takes_words_away};

/// A commit that has begun, and the feeds of its thread.
pub(crate) struct UnderWay {
    /// In the scope that commits: the store's answer says that it reaches the thread.
    same_scope: Vec<Arc<Feed>>,
    /// They ask the store, which knows what their scope may see.
    other_scopes: Vec<Arc<Feed>>,
    began: MonotonicTime,
    /// What became of it; as long as nobody says, whoever asked for it may have gone away.
    made: Made,
}

impl UnderWay {
    pub(super) fn begin(scope: &Scope, feeds: Vec<Arc<Feed>>, began: MonotonicTime) -> Self {
        let (same_scope, other_scopes): (Vec<_>, _) = feeds.into_iter().partition(|feed| feed.scope == *scope);
        same_scope.iter().for_each(|feed| feed.begin_commit());
        Self { same_scope, other_scopes, began, made: Made::Perhaps }
    }

    /// Tells the feeds what became of it.
    pub(crate) fn end(mut self, batch: &Batch, attempted: &Attempted<CommitOutcome>, now: Timestamp) {
        self.made = match &attempted.result {
            // What is told as made before was made at another moment.
            Ok(outcome) if outcome.replayed => Made::Perhaps,
            Ok(outcome) if takes_words_away(batch) => Made::Removal(outcome.change),
            Ok(outcome) if self.same_scope.is_empty() => Made::Change(outcome.change),
            Ok(outcome) => told(batch, outcome, now).map_or(Made::Change(outcome.change), Made::Told),
            Err(error) if error.maybe_applied() => Made::Perhaps,
            Err(_) => Made::Nothing,
        };
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        for feed in &self.other_scopes {
            let made = match &self.made {
                Made::Told(told) => Made::Change(told.change.number),
                made => made.clone(),
            };
            feed.end_commit(made, false, self.began);
        }
        for feed in &self.same_scope {
            feed.end_commit(self.made.clone(), true, self.began);
        }
    }
}

/// What the log would tell of a commit that was made just now; `None` where the batch alone does not say it.
fn told(batch: &Batch, outcome: &CommitOutcome, now: Timestamp) -> Option<Told> {
    let depends_on_the_thread = takes_words_away(batch) || !batch.delete.is_empty() || batch.patch.expires_at.is_some();
    if depends_on_the_thread {
        return None;
    }
    let mut events = Vec::new();
    let mut bytes = 0;
    if !batch.append.is_empty() {
        let placed = (outcome.first_seq..).zip(&batch.append);
        let messages: Vec<_> = placed.map(|(seq, message)| as_stored(seq, message)).collect();
        bytes = messages.iter().map(size).sum();
        events.push(ThreadEvent::Appended { messages, corrupt: Vec::new() });
    }
    let put = batch.put.iter().map(|put| put.name.clone());
    events.extend(put.map(|name| ThreadEvent::Record { name, version: Some(outcome.change) }));
    if !batch.patch.is_empty() {
        events.push(ThreadEvent::Patched);
    }
    let update = Arc::new(ThreadUpdate::Commit { change: outcome.change, tag: outcome.tag, at: now, events });
    Some(Told { change: outcome.tagged(), update, bytes })
}

fn as_stored(seq: u64, message: &NewMessage) -> Message {
    let NewMessage { id, external_id, created_at, content } = message.clone();
    Message { seq, id, external_id, revision: 0, created_at, content }
}
