//! An in-process cache of the newest messages of recently read threads.
//!
//! A cached thread is revalidated in the caller's scope before it is returned: the store is queried for the last cached message
//! and the messages that follow it, which is one short read instead of a long one. If nothing has changed since, or only through
//! this [`Memory`]'s own appends, the cached messages are still valid; otherwise they are read again. So changes by other
//! instances are never missed, and an error in the cache's bookkeeping can at worst cause an unnecessary read.
//!
//! Some stores provide a stamp, a number that changes with every write. While the stamp stays the same, a thread that the store
//! has already returned in a scope is returned in that scope without querying the store.

mod cached_thread;
#[cfg(test)]
mod conformance;
mod context;
mod context_state;
mod messages;
mod page;

pub(crate) use cached_thread::{message_bytes, part_bytes};
pub use messages::CachedMessages;
pub(crate) use page::{ExtraRequest, ExtraResult, ReadPage};

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

/// How long a thread stays cached without being read, in milliseconds. Must be shorter than the period during which the id of a
/// deleted thread cannot be reused.
const IDLE_MS: i64 = 10 * 60 * 1000;
/// Maximum number of new messages that a revalidation reads. If there are more, all messages are read again.
const MAX_NEW_MESSAGES: usize = 32;

/// Statistics of the thread cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadCacheStats {
    /// Number of reads of newest messages that were answered from the cache, with or without a revalidation.
    pub hits: u64,
    /// Number of reads of newest messages that were answered by the store alone.
    pub misses: u64,
    /// Number of cached threads.
    pub threads: usize,
    /// The approximate size of the cached threads, in bytes.
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
    /// The cached threads by [`CachedThread::last_use`], so that the least recently used thread is the first.
    by_last_use: BTreeMap<u64, ThreadKey>,
    /// A counter that is incremented with each use of a cached thread.
    last_use: u64,
    stats: ThreadCacheStats,
    /// Incremented when content is removed. The result of a read that began earlier is not cached.
    removals: u64,
}

impl Memory {
    /// The statistics of the thread cache since this `Memory` was created; all 0 without a cache.
    #[must_use]
    pub fn thread_cache_stats(&self) -> ThreadCacheStats {
        self.thread_cache().map_or_else(ThreadCacheStats::default, |cache| cache.lock().stats)
    }

    /// Returns the newest messages of a thread from the cache without querying the store. This requires that the store has returned
    /// them in this scope and has not been written to since. If it returns `None`, use [`Memory::messages`].
    #[must_use]
    pub fn cached_messages(&self, scope: &Scope, thread: ThreadId, limit: usize) -> Option<CachedMessages> {
        let (cache, stamp, now) = (self.thread_cache()?, self.store().stamp()?, self.now());
        let key = (scope.tenant_id().clone(), thread);
        let cached = cache.find_current(&key, scope, limit, stamp, now)?;
        // A regular read omits messages past their retention. The cache cannot filter messages, so it returns none.
        let cutoff = self.options().retention.and_then(|retention| retention.cutoff(now));
        let is_outdated = |message: &Message| cutoff.is_some_and(|cutoff| message.created_at < cutoff);
        (!cached.messages().iter().any(is_outdated)).then_some(cached)
    }

    /// Evicts everything that was read from a thread.
    pub(crate) fn evict_thread(&self, scope: &Scope, thread: ThreadId) {
        self.vocabularies().evict(thread);
        if let Some(cache) = self.thread_cache() {
            cache.evict(&(scope.tenant_id().clone(), thread));
        }
    }

    /// Reads a page, from the cache if the cached thread is valid.
    pub(crate) async fn read_page(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        Ok(self.read_page_with(scope, thread, query, &ExtraRequest::default(), now).await?.0.into_page())
    }

    /// Reads a page, which is not copied if it is cached. Also reads `extra`, but only if the store has to be queried. A
    /// revalidation does not read the thread's records if the context state is cached.
    pub(crate) async fn read_page_with(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        extra: &ExtraRequest,
        now: Timestamp,
    ) -> Result<(ReadPage, Option<ExtraResult>)> {
        let Some(cache) = self.thread_cache().filter(|_| is_newest_page(query)) else {
            let (page, read) = self.read_from_store(scope, thread, query, extra, false, now).await?;
            return Ok((ReadPage::Stored(Arc::new(page)), read));
        };
        let key = (scope.tenant_id().clone(), thread);
        // The stamp is read first, so that it is outdated if the store is written to during the read.
        let stamp = self.store().stamp();
        if let Some(stamp) = stamp
            && !extra.reads_even_if_cached
            && let Some(cached) = cache.find_current(&key, scope, query.limit, stamp, now)
        {
            return Ok((ReadPage::Cached(cached), None));
        }
        let (found, removals) = cache.find_for_revalidation(&key, query.limit, now);
        if let Some(found) = found {
            let limit = (query.limit + MAX_NEW_MESSAGES).min(limits::PAGE);
            let following = MessageQuery::following(found.last_seq() - 1, limit);
            let revalidation = MessageQuery { on_corrupt: query.on_corrupt, ..following };
            let extra = extra.for_revalidation(&found);
            match self.read_from_store(scope, thread, &revalidation, &extra, stamp.is_some(), now).await {
                Ok((page, read)) => {
                    if let Some(valid) = found.revalidated(page, query.limit) {
                        let newest = valid.newest(query.limit);
                        cache.insert(key, valid.with_validated_scope(scope, stamp, read.as_ref()), removals, now);
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
            Ok(cached) => cached.with_validated_scope(scope, stamp, read.as_ref()),
            Err(page) => {
                cache.evict(&key);
                return Ok((ReadPage::Stored(Arc::new(page)), read));
            }
        };
        let newest = cached.newest(query.limit);
        cache.insert(key, cached, removals, now);
        Ok((ReadPage::Cached(newest), read))
    }

    /// Reads a page, `extra`, and the thread's row if `extra` is not empty or `needs_row` is set.
    async fn read_from_store(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        extra: &ExtraRequest,
        needs_row: bool,
        now: Timestamp,
    ) -> Result<(MessagePage, Option<ExtraResult>)> {
        let (store, thread_ref) = (self.store(), ThreadRef::Id(thread));
        let ExtraRequest { records, lists, .. } = extra.clone();
        let request = ThreadRead { messages: Some(query.clone()), records, lists };
        let read = async || {
            if extra.is_empty() && !needs_row {
                return store.list_messages(scope, thread, query, now).await.map(|page| (page, None));
            }
            let view = store.read_thread(scope, &thread_ref, &request, now).await?;
            let Some(ThreadView { thread, page: Some(page), records, lists }) = view else {
                return Err(StoreError::NotFound(Kind::Thread));
            };
            let records = (!extra.records.is_empty()).then_some(records);
            Ok((page, Some(ExtraResult { thread, records, lists })))
        };
        let found = match read().await {
            Err(error) if error.is_retryable() => retry(self.runtime(), read).await?,
            answer => answer?,
        };
        if let (_, Some(ExtraResult { thread, .. })) = &found {
            self.remember_title(scope, thread);
        }
        Ok(found)
    }
}

/// Whether a query requests the newest messages, with all roles.
fn is_newest_page(query: &MessageQuery) -> bool {
    let MessageQuery { before, after, roles, order, take, limit, .. } = query;
    let is_unfiltered = before.is_none() && after.is_none() && roles.is_empty();
    is_unfiltered && *order == OrderBy::Seq && *take == RangeEnd::Newest && (1..=limits::PAGE).contains(limit)
}

impl ThreadCache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, state: Mutex::default() }
    }

    /// Finds messages that are valid without querying the store.
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

    /// Finds a thread, which the caller must revalidate. Also returns the current number of removals.
    fn find_for_revalidation(&self, key: &ThreadKey, limit: usize, now: Timestamp) -> (Option<CachedThread>, u64) {
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
        state.by_last_use.insert(last_use, key.clone());
        state.stats.bytes += cached.bytes;
        state.threads.insert(key, CachedThread { last_use, used_at: now, ..cached });
        state.evict_to(self.capacity);
        state.stats.threads = state.threads.len();
    }

    /// Evicts a thread, and prevents the results of reads in progress from being cached.
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
            // If the caller supplied the key, a replayed commit may have been made by another instance, from a different batch.
            let is_own = !outcome.replayed || matches!(batch.key, IdempotencyKey::Generated(_));
            if is_own && cached.last_own_change + 1 == outcome.change {
                cached.last_own_change = outcome.change;
            }
            if let Some(context_state) = &mut cached.context_state {
                context_state.extend_validity(batch, outcome);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Cached data is validated before it is returned, so a panic while the mutex was locked does no harm.
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
            self.by_last_use.remove(&evicted.last_use);
            self.stats.bytes -= evicted.bytes;
        }
        self.stats.threads = self.threads.len();
    }

    fn touch(&mut self, key: &ThreadKey, now: Timestamp) {
        self.last_use += 1;
        let last_use = self.last_use;
        if let Some(cached) = self.threads.get_mut(key) {
            self.by_last_use.remove(&cached.last_use);
            (cached.last_use, cached.used_at) = (last_use, now);
            self.by_last_use.insert(last_use, key.clone());
        }
    }

    fn evict_to(&mut self, capacity: usize) {
        while self.stats.bytes > capacity && self.evict_oldest() {}
    }

    /// Evicts the least recently used thread. Returns whether there was one.
    fn evict_oldest(&mut self) -> bool {
        let oldest = self.by_last_use.first_key_value().map(|(_, key)| key.clone());
        oldest.inspect(|key| self.evict(key)).is_some()
    }

    fn evict_idle(&mut self, now: Timestamp) {
        let is_idle = |cached: &CachedThread| cached.used_at.plus_ms(IDLE_MS) <= now;
        while self.by_last_use.first_key_value().and_then(|(_, key)| self.threads.get(key)).is_some_and(is_idle) {
            self.evict_oldest();
        }
    }
}
