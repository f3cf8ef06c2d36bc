use std::sync::{Arc, OnceLock};

use threadkeep_core::{Content, Map, Message, MessagePage, Part, Positions, Scope, Source, Timestamp};

use super::carried::HeldCarried;
use super::context::MadeContext;
use super::held::{CachedMessages, Form};
use super::shared::ReadBeside;

/// Scopes that are remembered of one thread; a shared one has many users.
const READERS: usize = 32;

/// The newest messages of a thread.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    pub(super) messages: Arc<Vec<Message>>,
    /// What a reader made of them.
    pub(super) form: Arc<OnceLock<Form>>,
    /// Whether they are all of the thread's.
    pub(super) is_whole: bool,
    /// The most that was asked for.
    pub(super) limit: usize,
    pub(super) positions: Positions,
    /// Up to this change this manager made every commit after `positions`, and none took words away.
    pub(super) ours_through: u64,
    pub(super) bytes: usize,
    pub(super) used: u64,
    pub(super) used_at: Timestamp,
    /// In whose scopes the store gave it. Only kept where it may not be asked again.
    pub(super) readers: Vec<Scope>,
    /// When the thread is over, if ever.
    pub(super) expires_at: Option<Timestamp>,
    /// The store's stamp before it was last asked; `None` where it has none.
    pub(super) stamp: Option<u64>,
    /// What contexts of the thread carry on.
    pub(super) carried: Option<HeldCarried>,
    /// The context that was last made of them.
    pub(super) context: Option<MadeContext>,
    /// Whose user had no preferences, and the stamp of records before they were looked for.
    pub(super) without_preferences: Option<(Scope, u64)>,
}

impl Tail {
    /// A page of the newest messages, if it can be told from what it will look like after a change; else the page.
    pub(super) fn of(page: MessagePage, limit: usize) -> Result<Self, MessagePage> {
        if !page.corrupt.is_empty() || page.messages.is_empty() {
            return Err(page);
        }
        Ok(Self::new(page.messages, !page.more, limit, page.positions))
    }

    fn new(messages: Vec<Message>, is_whole: bool, limit: usize, positions: Positions) -> Self {
        let bytes = messages.iter().map(size).sum();
        Self {
            messages: Arc::new(messages),
            form: Arc::default(),
            is_whole,
            limit,
            positions,
            ours_through: positions.change,
            bytes,
            used: 0,
            used_at: Timestamp::MIN,
            readers: Vec::new(),
            expires_at: None,
            stamp: None,
            carried: None,
            context: None,
            without_preferences: None,
        }
    }

    pub(super) fn holds(&self, limit: usize) -> bool {
        self.is_whole || self.messages.len() >= limit
    }

    /// Whether the store, whose stamp is this, would give the same to a reader: it has answered that reader before.
    pub(super) fn is_as_stored_for(&self, scope: &Scope, stamp: u64, now: Timestamp) -> bool {
        let is_alive = self.expires_at.is_none_or(|expires_at| expires_at > now);
        is_alive && self.stamp == Some(stamp) && self.readers.contains(scope)
    }

    /// As the store gave it to a reader, with the thread's row, when its stamp was this.
    pub(super) fn shown_to(self, scope: &Scope, stamp: Option<u64>, read: Option<&ReadBeside>) -> Self {
        let (Some(stamp), Some(ReadBeside { thread, .. })) = (stamp, read) else { return Self { stamp: None, ..self } };
        let mut shown = Self { stamp: Some(stamp), expires_at: thread.expires_at, ..self };
        if !shown.readers.contains(scope) && shown.readers.len() < READERS {
            shown.readers.push(scope.clone());
        }
        shown
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.messages.last().map_or(1, |message| message.seq)
    }

    /// The tail as it stands by a page that begins with its last message; `None` where that does not tell.
    pub(super) fn continued(self, page: MessagePage, limit: usize) -> Option<Self> {
        let MessagePage { messages, corrupt, more, positions } = page;
        let (last, new) = messages.split_first()?;
        if more || !corrupt.is_empty() || self.messages.last() != Some(last) {
            return None;
        }
        if positions == self.positions {
            return new.is_empty().then_some(self);
        }
        let are_ours = self.positions.change < positions.change && positions.change <= self.ours_through;
        let appended = positions.seq.checked_sub(self.positions.seq);
        if !are_ours || positions.first_seq != self.positions.first_seq || appended != Some(new.len() as u64) {
            return None;
        }
        let mut all = Vec::with_capacity(self.messages.len() + new.len());
        all.extend(self.messages.iter().cloned());
        all.extend_from_slice(new);
        let limit = self.limit.max(limit);
        let surplus = all.len().saturating_sub(limit);
        all.drain(..surplus);
        let tail = Self::new(all, self.is_whole && surplus == 0, limit, positions);
        let Self { ours_through, readers, carried, without_preferences, .. } = self;
        let bytes = tail.bytes + carried.as_ref().map_or(0, HeldCarried::bytes);
        Some(Self { ours_through, readers, carried, without_preferences, bytes, ..tail })
    }

    pub(super) fn newest(&self, limit: usize) -> CachedMessages {
        let from = self.messages.len().saturating_sub(limit);
        CachedMessages {
            all: Arc::clone(&self.messages),
            from,
            more: !self.is_whole || from > 0,
            positions: self.positions,
            form: Arc::clone(&self.form),
        }
    }
}

/// The bytes that a message takes, about.
pub(crate) fn size(message: &Message) -> usize {
    let Content { author, parts, agent, data, sources, metadata, .. } = &message.content;
    let names = [author, agent, &message.external_id].into_iter().flatten().map(String::len).sum::<usize>();
    let parts = parts.iter().map(|part| size_of::<Part>() + part_bytes(part)).sum::<usize>();
    let sources = sources.iter().map(|source| size_of::<Source>() + source.id.len() + map_bytes(&source.fields));
    let data = data.as_ref().map_or(0, |data| data.as_str().len());
    size_of::<Message>() + names + parts + sources.sum::<usize>() + data + map_bytes(metadata)
}

pub(crate) fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text(text) | Part::Reasoning(text) => text.len(),
        // Rare, and their text is most of them.
        other => serde_json::to_string(other).map_or(0, |text| text.len()),
    }
}

fn map_bytes(map: &Map) -> usize {
    if map.is_empty() { 0 } else { serde_json::to_string(map).map_or(0, |text| 3 * text.len()) }
}
