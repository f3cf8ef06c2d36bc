use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use threadkeep_core::{
    Change, ChangePage, CorruptRow, Effect, Message, MessageId, MessageName, Positions, Role, Scope, Tagged, ThreadId,
    limits,
};

use super::{ThreadEvent, ThreadUpdate};
use crate::messages::READ_PAGE;
use crate::retry::repeat_simply;
use crate::tails::size;
use crate::{Memory, Result};

/// Changes that are read at a time.
const CHANGES: usize = 100;

/// One commit, as all subscribers are told it; each leaves out the roles that it does not want.
#[derive(Clone)]
pub(super) struct Told {
    pub(super) change: Tagged,
    pub(super) update: Arc<ThreadUpdate>,
    /// What its messages take, about.
    pub(super) bytes: usize,
}

impl Told {
    /// The update as a subscriber hears it: nothing where only other roles spoke, or what was said is gone by now.
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
            let is_silent = messages.is_empty() && corrupt.is_empty();
            (!is_silent).then(|| ThreadEvent::Appended { messages, corrupt: corrupt.clone() })
        }
        ThreadEvent::Replaced { message } => is_wanted(message).then(|| event.clone()),
        other => Some(other.clone()),
    }
}

/// What a look at the log gives.
pub(super) enum Read {
    /// The commits after a position, oldest first; where the thread stood at that moment.
    Commits { commits: Vec<Told>, positions: Positions },
    /// The position belongs to a lost past.
    Reset { positions: Positions },
}

/// A thread's log, as it is read in one scope.
pub(super) struct Log {
    pub(super) memory: Memory,
    pub(super) scope: Scope,
    pub(super) thread: ThreadId,
}

impl Log {
    /// Reads what comes after a position, a page at a time.
    pub(super) async fn read(&self, after: Tagged) -> Result<Read> {
        let (store, now) = (self.memory.store(), self.memory.now());
        let read = repeat_simply(self.memory.runtime(), || {
            store.list_changes_with_messages(&self.scope, self.thread, after, CHANGES, now)
        })
        .await?;
        let appended = read.page.appended();
        match read.page {
            ChangePage::Reset { positions } => Ok(Read::Reset { positions }),
            ChangePage::Changes { changes, positions } => {
                let mut mentioned = Mentioned::default();
                mentioned.by_seq.extend(read.messages.into_iter().map(|message| (message.seq, message)));
                mentioned.corrupt = read.corrupt;
                if let Some(Range { start, end }) = appended {
                    self.read_range(start.max(read.read_to.saturating_add(1)), end, &mut mentioned).await?;
                }
                self.read_replaced(&changes, &mut mentioned).await?;
                Ok(Read::Commits {
                    commits: changes.into_iter().map(|change| mentioned.tell(change)).collect(),
                    positions,
                })
            }
        }
    }

    /// Reads the messages that some changes replaced, as they stand.
    async fn read_replaced(&self, changes: &[Change], mentioned: &mut Mentioned) -> Result<()> {
        let effects = changes.iter().flat_map(|change| &change.effects);
        let replaced: Vec<_> = effects
            .filter_map(|effect| match effect {
                Effect::Replaced { id, .. } => Some(MessageName::Id(*id)),
                _ => None,
            })
            .collect();
        for names in replaced.chunks(limits::PAGE) {
            let found = self.memory.find_messages(&self.scope, self.thread, names).await?;
            mentioned.by_id.extend(found.into_iter().map(|message| (message.id, message)));
        }
        Ok(())
    }

    async fn read_range(&self, first: u64, end: u64, mentioned: &mut Mentioned) -> Result<()> {
        let mut after = Some(first - 1);
        while let Some(seq) = after.filter(|seq| seq + 1 < end) {
            let room = usize::try_from(end - seq - 1).unwrap_or(READ_PAGE).min(READ_PAGE);
            let following = self.memory.page_after(&self.scope, self.thread, seq, room).await?;
            let messages = following.page.messages.into_iter().filter(|message| message.seq < end);
            mentioned.by_seq.extend(messages.map(|message| (message.seq, message)));
            mentioned.corrupt.extend(following.page.corrupt.into_iter().filter(|row| row.seq < end));
            after = following.next;
        }
        Ok(())
    }
}

/// The messages that a page of changes speaks of.
#[derive(Default)]
struct Mentioned {
    by_seq: HashMap<u64, Message>,
    by_id: HashMap<MessageId, Message>,
    corrupt: Vec<CorruptRow>,
}

impl Mentioned {
    fn tell(&self, made: Change) -> Told {
        let tagged = made.tagged();
        let Change { change, tag, at, effects } = made;
        let events: Vec<_> = effects.into_iter().filter_map(|effect| self.event(effect)).collect();
        let bytes = events.iter().map(event_bytes).sum();
        Told { change: tagged, update: Arc::new(ThreadUpdate::Commit { change, tag, at, events }), bytes }
    }

    fn event(&self, effect: Effect) -> Option<ThreadEvent> {
        match effect {
            Effect::Appended { first_seq, count } => {
                let seqs = first_seq..first_seq + count;
                let messages: Vec<_> = seqs.clone().filter_map(|seq| self.by_seq.get(&seq)).cloned().collect();
                let corrupt: Vec<_> = self.corrupt.iter().filter(|row| seqs.contains(&row.seq)).cloned().collect();
                let is_silent = messages.is_empty() && corrupt.is_empty();
                (!is_silent).then_some(ThreadEvent::Appended { messages, corrupt })
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
        ThreadEvent::Appended { messages, .. } => messages.iter().map(size).sum(),
        ThreadEvent::Replaced { message } => size(message),
        _ => 0,
    }
}
