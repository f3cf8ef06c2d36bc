//! Keeps the vocabularies of recent searches, because a query is sent again with every letter that is typed.
//!
//! A vocabulary is used without a read only while the store's stamp is unchanged and nothing has expired. Otherwise the threads
//! are listed again, and the words of the threads that changed are read again. So words of messages that were erased are never used.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use threadkeep_core::{MetadataFilter, Scope, ThreadId, Timestamp};

use super::Vocabulary;
use super::thread_words::ThreadWords;

/// The maximum number of bytes of all vocabularies.
const MAX_BYTES: usize = 16 << 20;
/// How long a vocabulary is kept without being used, in milliseconds. Must be shorter than the period during which the id of a
/// deleted thread cannot be reused.
const IDLE_MS: i64 = 10 * 60 * 1000;

/// What a vocabulary was read for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) scope: Scope,
    pub(super) thread: Option<ThreadId>,
    pub(super) metadata: MetadataFilter,
}

/// The state of the store before a vocabulary was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) stamp: Option<u64>,
    /// [`VocabularyCache::removals`].
    pub(super) removals: u64,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    vocabulary: Vocabulary,
    validity: Validity,
    bytes: usize,
    used_at: Timestamp,
}

/// The vocabularies of recent searches.
#[derive(Debug, Default)]
pub(crate) struct VocabularyCache(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The least recently used vocabulary is the first.
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Incremented when content is removed. A vocabulary that was read before is not kept.
    removals: u64,
}

impl VocabularyCache {
    pub(super) fn removals(&self) -> u64 {
        self.lock().removals
    }

    /// Returns a vocabulary that a new read would return as well.
    pub(super) fn find_current(
        &self,
        key: &Key,
        validity: &Validity,
        now: Timestamp,
        cutoff: Option<Timestamp>,
    ) -> Option<Vocabulary> {
        let mut state = self.lock();
        state.evict_idle(now);
        let index = state.entries.iter().position(|entry| entry.key == *key)?;
        let mut entry = state.entries.remove(index)?;
        entry.used_at = now.max(entry.used_at);
        let is_current = validity.stamp.is_some()
            && entry.validity.stamp == validity.stamp
            && entry.vocabulary.is_current(now, cutoff);
        let current = is_current.then(|| entry.vocabulary.clone());
        state.entries.push_back(entry);
        current
    }

    /// Returns the words of threads as they were when they were last read.
    pub(super) fn find_outdated(&self, key: &Key) -> Vec<Arc<ThreadWords>> {
        let state = self.lock();
        let entry = state.entries.iter().find(|entry| entry.key == *key);
        entry.map_or_else(Vec::new, |entry| entry.vocabulary.0.clone())
    }

    pub(super) fn insert(&self, key: Key, vocabulary: Vocabulary, validity: Validity, now: Timestamp) {
        let bytes = vocabulary.bytes();
        let mut state = self.lock();
        state.retain(|entry| entry.key != key);
        if state.removals != validity.removals || bytes > MAX_BYTES / 4 {
            return;
        }
        state.bytes += bytes;
        state.entries.push_back(Entry { key, vocabulary, validity, bytes, used_at: now });
        while state.bytes > MAX_BYTES && state.evict_oldest() {}
    }

    /// Evicts the vocabularies with words of a thread, and prevents those that are being read from being kept.
    pub(crate) fn evict(&self, thread: ThreadId) {
        let mut state = self.lock();
        state.removals += 1;
        state.retain(|entry| entry.vocabulary.0.iter().all(|words| words.thread() != thread));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No state is invalid, so a panic while the mutex was locked does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn retain(&mut self, is_kept: impl Fn(&Entry) -> bool) {
        self.entries.retain(is_kept);
        self.bytes = self.entries.iter().map(|entry| entry.bytes).sum();
    }

    fn evict_oldest(&mut self) -> bool {
        let evicted = self.entries.pop_front();
        self.bytes -= evicted.as_ref().map_or(0, |entry| entry.bytes);
        evicted.is_some()
    }

    fn evict_idle(&mut self, now: Timestamp) {
        while self.entries.front().is_some_and(|entry| entry.used_at.plus_ms(IDLE_MS) <= now) {
            self.evict_oldest();
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use threadkeep_core::{Content, Map, Message, MessageId, Owner, Positions, Role, Thread};

    use super::super::thread_words::Source;
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_millis(minute * 60_000).unwrap()
    }

    fn key(user: &str) -> Key {
        Key { scope: Scope::user("acme", user).unwrap(), thread: None, metadata: MetadataFilter::default() }
    }

    /// Returns the words of a text in the thread with this name.
    fn vocabulary(name: &str, text: &str, expires_at: Option<Timestamp>) -> Vocabulary {
        let thread = Thread {
            id: ThreadId::from_name(name.as_bytes()),
            owner: Owner::Tenant,
            key: None,
            title: None,
            metadata: Map::new(),
            state: Map::new(),
            positions: Positions::BEGINNING,
            message_count: 1,
            created_at: at(0),
            updated_at: at(0),
            expires_at,
        };
        let id = MessageId::from_name(name.as_bytes());
        let content = Content::text(Role::User, text);
        let message = Message { seq: 1, id, external_id: None, revision: 0, created_at: at(0), content };
        Vocabulary(vec![Arc::new(ThreadWords::new(Source::of(&thread, 500), &[message]))])
    }

    /// Returns the words of threads with one message each.
    pub(in super::super) fn vocabulary_of(texts: &[&str]) -> Vocabulary {
        Vocabulary(texts.iter().flat_map(|text| vocabulary(text, text, None).0).collect())
    }

    fn validity(cache: &VocabularyCache, stamp: u64) -> Validity {
        Validity { stamp: Some(stamp), removals: cache.removals() }
    }

    #[test]
    fn a_vocabulary_is_current_while_nothing_was_written_and_nothing_expired() {
        let cache = VocabularyCache::default();
        cache.insert(key("ana"), vocabulary("a", "The ledger", Some(at(5))), validity(&cache, 7), at(0));
        let find = |user: &str, stamp: Option<u64>, now, cutoff| {
            cache.find_current(&key(user), &Validity { stamp, removals: cache.removals() }, now, cutoff).is_some()
        };
        assert!(find("ana", Some(7), at(1), None) && find("ana", Some(7), at(1), Some(at(0))));
        assert!(!find("ben", Some(7), at(1), None), "another user's words");
        assert!(!find("ana", Some(8), at(1), None), "the store was written to");
        assert!(!find("ana", None, at(1), None), "the store has no stamp");
        assert!(!find("ana", Some(7), at(5), None), "the thread expired");
        assert!(!find("ana", Some(7), at(1), Some(at(1))), "the message is past its retention");
        assert_eq!(cache.find_outdated(&key("ana")).len(), 1);
        assert!(!find("ana", Some(7), at(20), None) && cache.find_outdated(&key("ana")).is_empty(), "idle");
    }

    #[test]
    fn the_words_of_removed_messages_are_dropped() {
        let cache = VocabularyCache::default();
        let before = validity(&cache, 7);
        cache.insert(key("ana"), vocabulary("a", "The ledger", None), before, at(0));
        cache.insert(key("ben"), vocabulary("b", "The ledger", None), before, at(0));
        cache.evict(ThreadId::from_name(b"a"));
        assert!(cache.find_outdated(&key("ana")).is_empty());
        assert_eq!(cache.find_outdated(&key("ben")).len(), 1);
        // A read that began before the removal.
        cache.insert(key("ana"), vocabulary("a", "The ledger", None), before, at(0));
        assert!(cache.find_outdated(&key("ana")).is_empty());
    }

    #[test]
    fn the_size_is_bounded() {
        let cache = VocabularyCache::default();
        let text: String = (0..50_000).map(|number| format!("word{number} ")).collect();
        for user in 0..20 {
            let name = format!("user {user}");
            cache.insert(key(&name), vocabulary(&name, &text, None), validity(&cache, 7), at(0));
        }
        let state = cache.lock();
        let newest: Vec<Key> =
            (0..20).map(|user| key(&format!("user {user}"))).skip(20 - state.entries.len()).collect();
        assert!((2..20).contains(&newest.len()) && state.bytes <= MAX_BYTES, "{} bytes", state.bytes);
        assert!(state.entries.iter().map(|entry| &entry.key).eq(&newest), "the least recently used are evicted first");
    }
}
