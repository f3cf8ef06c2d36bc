use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use threadkeep_core::{
    Change, ChangePage, CorruptRow, Effect, Message, MessageId, MessageRef, Positions, Role, Scope, TaggedNumber,
    ThreadId, limits,
};

use super::{ThreadEvent, ThreadUpdate};
use crate::messages::READ_PAGE;
use crate::retry::retry;
use crate::thread_cache::message_bytes;
use crate::{Memory, Result};

/// Maximum number of changes per read.
const MAX_CHANGES: usize = 100;

/// The update for one commit, including messages with all roles.
#[derive(Clone)]
pub(super) struct CommitUpdate {
    pub(super) change: TaggedNumber,
    pub(super) update: Arc<ThreadUpdate>,
    /// The approximate size of the messages, in bytes.
    pub(super) bytes: usize,
}

impl CommitUpdate {
    /// Returns the update restricted to messages with these `roles` (all if empty); `None` if nothing is left.
    pub(super) fn for_roles(&self, roles: &[Role]) -> Option<Arc<ThreadUpdate>> {
        let ThreadUpdate::Commit { change, tag, at, events } = &*self.update else { return None };
        if roles.is_empty() {
            return (!events.is_empty()).then(|| Arc::clone(&self.update));
        }
        let events: Vec<_> = events.iter().filter_map(|event| event_for_roles(event, roles)).collect();
        (!events.is_empty()).then(|| Arc::new(ThreadUpdate::Commit { change: *change, tag: *tag, at: *at, events }))
    }
}

fn event_for_roles(event: &ThreadEvent, roles: &[Role]) -> Option<ThreadEvent> {
    let is_wanted = |message: &Message| roles.contains(&message.content.role);
    match event {
        ThreadEvent::Appended { messages, corrupt } => {
            let messages: Vec<_> = messages.iter().filter(|message| is_wanted(message)).cloned().collect();
            let is_empty = messages.is_empty() && corrupt.is_empty();
            (!is_empty).then(|| ThreadEvent::Appended { messages, corrupt: corrupt.clone() })
        }
        ThreadEvent::Replaced { message } => is_wanted(message).then(|| event.clone()),
        other => Some(other.clone()),
    }
}

/// A page of the log.
pub(super) enum LogPage {
    /// The commits after a given change, oldest first, and the thread's current positions.
    Commits { commits: Vec<CommitUpdate>, positions: Positions },
    /// The store was restored to a state that predates the requested change.
    Reset { positions: Positions },
}

/// A thread's log, read in one scope.
pub(super) struct Log {
    pub(super) memory: Memory,
    pub(super) scope: Scope,
    pub(super) thread: ThreadId,
}

impl Log {
    /// Reads a page of the commits that follow `after`.
    pub(super) async fn read(&self, after: TaggedNumber) -> Result<LogPage> {
        self.read_at_most(after, MAX_CHANGES).await
    }

    /// Reads at most `limit` commits that follow `after`.
    pub(super) async fn read_at_most(&self, after: TaggedNumber, limit: usize) -> Result<LogPage> {
        let (store, now) = (self.memory.store(), self.memory.now());
        let read = retry(self.memory.runtime(), || {
            store.list_changes_with_messages(&self.scope, self.thread, after, limit, now)
        })
        .await?;
        let appended = read.page.appended_positions();
        match read.page {
            ChangePage::Reset { positions } => Ok(LogPage::Reset { positions }),
            ChangePage::Changes { changes, positions } => {
                let mut referenced = ReferencedMessages::default();
                referenced.by_seq.extend(read.messages.into_iter().map(|message| (message.seq, message)));
                referenced.corrupt = read.corrupt;
                if let Some(Range { start, end }) = appended {
                    self.read_range(start.max(read.read_to.saturating_add(1)), end, &mut referenced).await?;
                }
                self.read_replaced(&changes, &mut referenced).await?;
                Ok(LogPage::Commits {
                    commits: changes.into_iter().map(|change| referenced.to_update(change)).collect(),
                    positions,
                })
            }
        }
    }

    /// Reads the current versions of the messages that the changes replaced.
    async fn read_replaced(&self, changes: &[Change], referenced: &mut ReferencedMessages) -> Result<()> {
        let effects = changes.iter().flat_map(|change| &change.effects);
        let replaced: Vec<_> = effects
            .filter_map(|effect| match effect {
                Effect::Replaced { id, .. } => Some(MessageRef::Id(*id)),
                _ => None,
            })
            .collect();
        for refs in replaced.chunks(limits::PAGE) {
            let found = self.memory.find_messages(&self.scope, self.thread, refs).await?;
            referenced.by_id.extend(found.into_iter().map(|message| (message.id, message)));
        }
        Ok(())
    }

    /// Reads the messages from position `first` up to, but not including, position `end`.
    async fn read_range(&self, first: u64, end: u64, referenced: &mut ReferencedMessages) -> Result<()> {
        let mut after = Some(first - 1);
        while let Some(seq) = after.filter(|seq| seq + 1 < end) {
            let limit = usize::try_from(end - seq - 1).unwrap_or(READ_PAGE).min(READ_PAGE);
            let step = self.memory.page_after(&self.scope, self.thread, seq, limit).await?;
            let messages = step.page.messages.into_iter().filter(|message| message.seq < end);
            referenced.by_seq.extend(messages.map(|message| (message.seq, message)));
            referenced.corrupt.extend(step.page.corrupt.into_iter().filter(|row| row.seq < end));
            after = step.next;
        }
        Ok(())
    }
}

/// The messages to which a page of changes refers.
#[derive(Default)]
struct ReferencedMessages {
    by_seq: HashMap<u64, Message>,
    by_id: HashMap<MessageId, Message>,
    corrupt: Vec<CorruptRow>,
}

impl ReferencedMessages {
    fn to_update(&self, commit: Change) -> CommitUpdate {
        let tagged = commit.tagged();
        let Change { change, tag, at, effects } = commit;
        let events: Vec<_> = effects.into_iter().filter_map(|effect| self.to_event(effect)).collect();
        let bytes = events.iter().map(event_bytes).sum();
        CommitUpdate { change: tagged, update: Arc::new(ThreadUpdate::Commit { change, tag, at, events }), bytes }
    }

    fn to_event(&self, effect: Effect) -> Option<ThreadEvent> {
        match effect {
            Effect::Appended { first_seq, count } => {
                let seqs = first_seq..first_seq + count;
                let messages: Vec<_> = seqs.clone().filter_map(|seq| self.by_seq.get(&seq)).cloned().collect();
                let corrupt: Vec<_> = self.corrupt.iter().filter(|row| seqs.contains(&row.seq)).cloned().collect();
                let is_empty = messages.is_empty() && corrupt.is_empty();
                (!is_empty).then_some(ThreadEvent::Appended { messages, corrupt })
            }
            Effect::Replaced { id, .. } => {
                self.by_id.get(&id).map(|message| ThreadEvent::Replaced { message: Box::new(message.clone()) })
            }
            Effect::Erased { seq, id } => Some(ThreadEvent::Erased { seq, id }),
            Effect::Trimmed { first_seq } => Some(ThreadEvent::Trimmed { first_seq }),
            Effect::RecordPut { name, version } => Some(ThreadEvent::Record { name, version: Some(version) }),
            Effect::RecordDeleted { name } => Some(ThreadEvent::Record { name, version: None }),
            Effect::Patched => Some(ThreadEvent::Patched),
        }
    }
}

fn event_bytes(event: &ThreadEvent) -> usize {
    match event {
        ThreadEvent::Appended { messages, .. } => messages.iter().map(message_bytes).sum(),
        ThreadEvent::Replaced { message } => message_bytes(message),
        _ => 0,
    }
}
