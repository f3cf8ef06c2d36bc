//! An in-process cache of the newest messages of recently read threads.
//!
//! A cached thread is revalidated in the caller's scope before it is returned: the store is queried for the last cached message
//! and what follows it, one short read in place of a long one. If nothing changed, or only by appends of this manager, the
//! cached messages are valid; otherwise they are read again. So changes by other instances are never missed, and an error in
//! the cache's bookkeeping can only cost a read.
//!
//! If the store has a stamp and it did not change, the store is not queried again for a scope in which it answered before.

mod cached_thread;
#[cfg(test)]
mod conformance;
mod context;
mod context_state;
mod messages;
mod page;

pub(crate) use cached_thread::{message_bytes, part_bytes};
pub use messages::CachedMessages;
pub(crate) use page::{ExtraReads, ExtraRecords, ReadPage};

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use threadkeep_core::{
    Batch, CommitOutcome, IdempotencyKey, Kind, Message, MessagePage, MessageQuery, OrderBy, RangeEnd, Result, Scope,
    StoreError, TenantId, ThreadId, ThreadRead, ThreadRef, ThreadView, Timestamp, limits,
};

use crate::Memory;
use crate::retry::retry;
use cached_thread::CachedThread;

/// How long a thread stays cached without being read. Must be less than the days for which a deleted id cannot be reused.
const IDLE_MS: i64 = 10 * 60 * 1000;
/// Maximum number of new messages that a revalidation reads; with more of them all messages are read again.
const MAX_NEW_MESSAGES: usize = 32;

/// How the thread cache answered reads of threads' newest messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadCacheStats {
    /// Reads answered from the cache, after a revalidation where one was needed.
    pub hits: u64,
    /// Reads of all messages from the store.
    pub misses: u64,
    /// Cached threads.
    pub threads: usize,
    /// Their approximate size in bytes.
    pub bytes: usize,
}

type ThreadKey = (TenantId, ThreadId);

#[derive(Debug)]
pub(crate) struct ThreadCache {
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    threads: HashMap<ThreadKey, CachedThread>,
    /// The least recently used thread first.
    uses: BTreeMap<u64, ThreadKey>,
    last_use: u64,
    stats: ThreadCacheStats,
    /// Grows when content is removed: what was read before that is not cached.
    removals: u64,
}

impl Memory {
    /// The statistics of the thread cache since this manager was created; all 0 without a cache.
    #[must_use]
    pub fn thread_cache_stats(&self) -> ThreadCacheStats {
        self.thread_cache().map_or_else(ThreadCacheStats::default, |cache| cache.lock().stats)
    }

    /// Returns the newest messages of a thread from the cache, without a query of the store: only if the store returned them
    /// in this scope and was not written to since. For `None`, read them with [`Memory::messages`].
    #[must_use]
    pub fn cached_messages(&self, scope: &Scope, thread: ThreadId, limit: usize) -> Option<CachedMessages> {
        let (cache, stamp, now) = (self.thread_cache()?, self.store().stamp()?, self.now());
        let key = (scope.tenant_id().clone(), thread);
        let cached = cache.find_current(&key, scope, limit, stamp, now)?;
        // Reading the messages omits those that are past their retention; the cache cannot.
        let cutoff = self.options().retention.and_then(|retention| retention.cutoff(now));
        let is_outdated = |message: &Message| cutoff.is_some_and(|cutoff| message.created_at < cutoff);
        (!cached.messages().iter().any(is_outdated)).then_some(cached)
    }

    pub(crate) fn evict_thread(&self, scope: &Scope, thread: ThreadId) {
        if let Some(cache) = self.thread_cache() {
            cache.evict(&(scope.tenant_id().clone(), thread));
        }
    }

    /// Reads a page, from the cache if it is valid.
    pub(crate) async fn read_page(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        Ok(self.read_page_with(scope, thread, query, &ExtraReads::default(), now).await?.0.into_page())
    }

    /// Reads a page, without a copy if it is cached, and `extra` if the store is queried at all. A revalidation omits the
    /// thread's records if its context state is cached too.
    pub(crate) async fn read_page_with(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        extra: &ExtraReads,
        now: Timestamp,
    ) -> Result<(ReadPage, Option<ExtraRecords>)> {
        let Some(cache) = self.thread_cache().filter(|_| is_newest_page(query)) else {
            let (page, read) = self.read_from_store(scope, thread, query, extra, false, now).await?;
            return Ok((ReadPage::Stored(Arc::new(page)), read));
        };
        let key = (scope.tenant_id().clone(), thread);
        // Taken before the read, so that a write during the read makes it outdated.
        let stamp = self.store().stamp();
        if let Some(stamp) = stamp
            && !extra.is_always_read
            && let Some(cached) = cache.find_current(&key, scope, query.limit, stamp, now)
        {
            return Ok((ReadPage::Cached(cached), None));
        }
        let (found, removals) = cache.find(&key, query.limit, now);
        if let Some(found) = found {
            let limit = (query.limit + MAX_NEW_MESSAGES).min(limits::PAGE);
            let following = MessageQuery::following(found.last_seq() - 1, limit);
            let revalidation = MessageQuery { on_corrupt: query.on_corrupt, ..following };
            let extra = extra.for_revalidation(&found);
            match self.read_from_store(scope, thread, &revalidation, &extra, stamp.is_some(), now).await {
                Ok((page, read)) => {
                    if let Some(valid) = found.revalidated(page, query.limit) {
                        let newest = valid.newest(query.limit);
                        cache.insert(key, valid.with_reader(scope, stamp, read.as_ref()), removals, now);
                        cache.lock().stats.hits += 1;
                        return Ok((ReadPage::Cached(newest), read));
                    }
                }
                Err(error) => {
                    cache.evict(&key);
                    return Err(error);
                }
            }
        }
        cache.lock().stats.misses += 1;
        let (page, read) = self.read_from_store(scope, thread, query, extra, stamp.is_some(), now).await?;
        let cached = match CachedThread::of(page, query.limit) {
            Ok(cached) => cached.with_reader(scope, stamp, read.as_ref()),
            Err(page) => {
                cache.evict(&key);
                return Ok((ReadPage::Stored(Arc::new(page)), read));
            }
        };
        let newest = cached.newest(query.limit);
        cache.insert(key, cached, removals, now);
        Ok((ReadPage::Cached(newest), read))
    }

    /// Reads a page and `extra`, and the thread's row if `needs_row`.
    async fn read_from_store(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        extra: &ExtraReads,
        needs_row: bool,
        now: Timestamp,
    ) -> Result<(MessagePage, Option<ExtraRecords>)> {
        let (store, name) = (self.store(), ThreadRef::Id(thread));
        let ExtraReads { records, lists, .. } = extra.clone();
        let wanted = ThreadRead { messages: Some(query.clone()), records, lists };
        let read = async || {
            if extra.is_empty() && !needs_row {
                return store.list_messages(scope, thread, query, now).await.map(|page| (page, None));
            }
            let view = store.read_thread(scope, &name, &wanted, now).await?;
            let Some(ThreadView { thread, page: Some(page), records, lists }) = view else {
                return Err(StoreError::NotFound(Kind::Thread));
            };
            let records = (!extra.records.is_empty()).then_some(records);
            Ok((page, Some(ExtraRecords { thread, records, lists })))
        };
        let found = match read().await {
            Err(error) if error.is_retryable() => retry(self.runtime(), read).await?,
            answer => answer?,
        };
        if let (_, Some(ExtraRecords { thread, .. })) = &found {
            self.remember_title(scope, thread);
        }
        Ok(found)
    }
}

/// Whether a query asks for the newest messages of all roles.
fn is_newest_page(query: &MessageQuery) -> bool {
    let MessageQuery { before, after, roles, order, take, limit, .. } = query;
    let is_of_all = before.is_none() && after.is_none() && roles.is_empty();
    is_of_all && *order == OrderBy::Seq && *take == RangeEnd::Newest && (1..=limits::PAGE).contains(limit)
}

impl ThreadCache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, state: Mutex::default() }
    }

    /// Finds messages that are valid without a query of the store.
    fn find_current(
        &self,
        key: &ThreadKey,
        scope: &Scope,
        limit: usize,
        stamp: u64,
        now: Timestamp,
    ) -> Option<CachedMessages> {
        let mut state = self.lock();
        let is_current = |cached: &&CachedThread| cached.is_current_for(scope, stamp, now) && cached.has_newest(limit);
        let cached = state.threads.get(key).filter(is_current)?;
        let (newest, used_at) = (cached.newest(limit), cached.used_at.max(now));
        state.touch(key, used_at);
        state.stats.hits += 1;
        Some(newest)
    }

    /// Finds a thread to be revalidated. Also returns the current number of removals.
    fn find(&self, key: &ThreadKey, limit: usize, now: Timestamp) -> (Option<CachedThread>, u64) {
        let mut state = self.lock();
        state.evict_idle(now);
        let found = state.threads.get(key).filter(|cached| cached.has_newest(limit));
        (found.cloned(), state.removals)
    }

    /// Caches a thread, unless content was removed since `removals` was read.
    fn insert(&self, key: ThreadKey, cached: CachedThread, removals: u64, now: Timestamp) {
        let mut state = self.lock();
        state.evict(&key);
        if state.removals != removals || cached.bytes > self.capacity / 4 {
            return;
        }
        state.last_use += 1;
        let last_use = state.last_use;
        state.uses.insert(last_use, key.clone());
        state.stats.bytes += cached.bytes;
        state.threads.insert(key, CachedThread { last_use, used_at: now, ..cached });
        state.evict_to(self.capacity);
        state.stats.threads = state.threads.len();
    }

    /// Evicts a thread, and keeps reads that are in progress from being cached.
    pub(crate) fn evict(&self, key: &ThreadKey) {
        let mut state = self.lock();
        state.removals += 1;
        state.evict(key);
    }

    /// Evicts the thread before a commit that removes content, so that no read returns the content after the commit.
    pub(crate) fn before_commit(&self, key: &ThreadKey, batch: &Batch) {
        if removes_content(batch) {
            self.evict(key);
        }
    }

    pub(crate) fn after_commit(&self, key: &ThreadKey, batch: &Batch, outcome: Option<&CommitOutcome>) {
        if removes_content(batch) || batch.patch.expires_at.is_some() {
            self.evict(key);
        } else if let Some(outcome) = outcome
            && !batch.is_empty()
            && let Some(cached) = self.lock().threads.get_mut(key)
        {
            // The commit that a caller's key replays may be another instance's, from another batch.
            let is_own = !outcome.replayed || matches!(batch.key, IdempotencyKey::Generated(_));
            if is_own && cached.own_through + 1 == outcome.change {
                cached.own_through = outcome.change;
            }
            if let Some(context_state) = &mut cached.context_state {
                context_state.extend_over(batch, outcome);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Cached data is validated before it is returned, so a panic while the lock was held does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a batch erases, replaces or trims messages.
pub(crate) fn removes_content(batch: &Batch) -> bool {
    !batch.erase.is_empty() || !batch.replace.is_empty() || batch.trim_below.is_some()
}

impl State {
    fn evict(&mut self, key: &ThreadKey) {
        if let Some(evicted) = self.threads.remove(key) {
            self.uses.remove(&evicted.last_use);
            self.stats.bytes -= evicted.bytes;
        }
        self.stats.threads = self.threads.len();
    }

    fn touch(&mut self, key: &ThreadKey, now: Timestamp) {
        self.last_use += 1;
        let last_use = self.last_use;
        if let Some(cached) = self.threads.get_mut(key) {
            self.uses.remove(&cached.last_use);
            (cached.last_use, cached.used_at) = (last_use, now);
            self.uses.insert(last_use, key.clone());
        }
    }

    fn evict_to(&mut self, capacity: usize) {
        while self.stats.bytes > capacity && self.evict_oldest() {}
    }

    /// Evicts the least recently used thread. Returns whether there was one.
    fn evict_oldest(&mut self) -> bool {
        let oldest = self.uses.first_key_value().map(|(_, key)| key.clone());
        oldest.inspect(|key| self.evict(key)).is_some()
    }

    fn evict_idle(&mut self, now: Timestamp) {
        let is_idle = |cached: &CachedThread| cached.used_at.plus_ms(IDLE_MS) <= now;
        while self.uses.first_key_value().and_then(|(_, key)| self.threads.get(key)).is_some_and(is_idle) {
            self.evict_oldest();
        }
    }
}
