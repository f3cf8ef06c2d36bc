use std::sync::{Arc, OnceLock};

use threadkeep_core::{Content, Map, Message, MessagePage, Part, Positions, Scope, Source, Timestamp};

use super::context::LatestContext;
use super::context_state::CachedContextState;
use super::messages::{CachedMessages, DerivedValue};
use super::page::ExtraResult;

/// Maximum number of validated scopes per thread. The number is limited because a shared thread can have many users.
const MAX_VALIDATED_SCOPES: usize = 32;

/// The newest messages of a thread, and other data that is cached with them.
#[derive(Clone, Debug)]
pub(super) struct CachedThread {
    pub(super) messages: Arc<Vec<Message>>,
    /// A value that a caller derived from the messages.
    pub(super) derived: Arc<OnceLock<DerivedValue>>,
    /// Whether these are all messages in the thread.
    pub(super) is_whole: bool,
    /// The largest number of messages requested so far.
    pub(super) limit: usize,
    pub(super) positions: Positions,
    /// This `Memory` made every commit after `positions` through this change, and none of them removed content.
    pub(super) last_own_change: u64,
    /// The approximate size of all cached data of the thread, in bytes.
    pub(super) bytes: usize,
    /// The cache's use counter at the last use of this thread, which determines the order of evictions.
    pub(super) last_use: u64,
    pub(super) used_at: Timestamp,
    /// The scopes in which the store has returned the thread. Filled only if the store has a stamp.
    pub(super) validated_scopes: Vec<Scope>,
    /// When the thread expires; `None` if it does not.
    pub(super) expires_at: Option<Timestamp>,
    /// The store's stamp before the last read; `None` if the store has no stamp.
    pub(super) stamp: Option<u64>,
    pub(super) context_state: Option<CachedContextState>,
    pub(super) context: Option<LatestContext>,
    /// A scope whose user had no preferences, and the store's stamp for records before they were read.
    pub(super) without_preferences: Option<(Scope, u64)>,
}

impl CachedThread {
    /// Creates an entry from a page of newest messages. Returns an empty or damaged page as the error, because a change to it could go
    /// unnoticed.
    pub(super) fn of(page: MessagePage, limit: usize) -> Result<Self, MessagePage> {
        if !page.corrupt.is_empty() || page.messages.is_empty() {
            return Err(page);
        }
        Ok(Self::new(page.messages, !page.more, limit, page.positions))
    }

    fn new(messages: Vec<Message>, is_whole: bool, limit: usize, positions: Positions) -> Self {
        let bytes = messages.iter().map(message_bytes).sum();
        Self {
            messages: Arc::new(messages),
            derived: Arc::default(),
            is_whole,
            limit,
            positions,
            last_own_change: positions.change,
            bytes,
            last_use: 0,
            used_at: Timestamp::MIN,
            validated_scopes: Vec::new(),
            expires_at: None,
            stamp: None,
            context_state: None,
            context: None,
            without_preferences: None,
        }
    }

    /// Whether the entry contains the newest `limit` messages, or all messages of a shorter thread.
    pub(super) fn has_newest(&self, limit: usize) -> bool {
        self.is_whole || self.messages.len() >= limit
    }

    /// Whether a store with this stamp would return the same messages in a scope, because it has returned them in this scope and
    /// has not been written to since.
    pub(super) fn is_current_for(&self, scope: &Scope, stamp: u64, now: Timestamp) -> bool {
        let is_alive = self.expires_at.is_none_or(|expires_at| expires_at > now);
        is_alive && self.stamp == Some(stamp) && self.validated_scopes.contains(scope)
    }

    /// Adds a scope in which the store has just returned the thread. `stamp` is the store's stamp before that read, `read` the
    /// thread's row.
    pub(super) fn with_validated_scope(self, scope: &Scope, stamp: Option<u64>, read: Option<&ExtraResult>) -> Self {
        let (Some(stamp), Some(ExtraResult { thread, .. })) = (stamp, read) else {
            return Self { stamp: None, ..self };
        };
        let mut cached = Self { stamp: Some(stamp), expires_at: thread.expires_at, ..self };
        if !cached.validated_scopes.contains(scope) && cached.validated_scopes.len() < MAX_VALIDATED_SCOPES {
            cached.validated_scopes.push(scope.clone());
        }
        cached
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.messages.last().map_or(1, |message| message.seq)
    }

    /// Revalidates the entry with a page that starts at the last cached message, and appends the page's new messages. `None` if
    /// anything else may have changed.
    pub(super) fn revalidated(self, page: MessagePage, limit: usize) -> Option<Self> {
        let MessagePage { messages, corrupt, more, positions } = page;
        let (last, new) = messages.split_first()?;
        if more || !corrupt.is_empty() || self.messages.last() != Some(last) {
            return None;
        }
        if positions == self.positions {
            return new.is_empty().then_some(self);
        }
        let are_own_commits = self.positions.change < positions.change && positions.change <= self.last_own_change;
        let appended = positions.seq.checked_sub(self.positions.seq);
        if !are_own_commits || positions.first_seq != self.positions.first_seq || appended != Some(new.len() as u64) {
            return None;
        }
        let mut all = Vec::with_capacity(self.messages.len() + new.len());
        all.extend(self.messages.iter().cloned());
        all.extend_from_slice(new);
        let limit = self.limit.max(limit);
        let surplus = all.len().saturating_sub(limit);
        all.drain(..surplus);
        let extended = Self::new(all, self.is_whole && surplus == 0, limit, positions);
        let Self { last_own_change, validated_scopes, context_state, without_preferences, .. } = self;
        let bytes = extended.bytes + context_state.as_ref().map_or(0, CachedContextState::bytes);
        Some(Self { last_own_change, validated_scopes, context_state, without_preferences, bytes, ..extended })
    }

    pub(super) fn newest(&self, limit: usize) -> CachedMessages {
        let from = self.messages.len().saturating_sub(limit);
        CachedMessages {
            all: Arc::clone(&self.messages),
            from,
            more: !self.is_whole || from > 0,
            positions: self.positions,
            derived: Arc::clone(&self.derived),
        }
    }
}

/// The approximate size of a message in memory, in bytes.
pub(crate) fn message_bytes(message: &Message) -> usize {
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
        // Such parts are rare, and their text makes up most of their size.
        other => serde_json::to_string(other).map_or(0, |text| text.len()),
    }
}

fn map_bytes(map: &Map) -> usize {
    if map.is_empty() { 0 } else { serde_json::to_string(map).map_or(0, |text| 3 * text.len()) }
}
