//! The ends of threads that were read lately, kept in this process.
//!
//! A tail is shown only after the store said, in the caller's scope, where the thread stands: it is asked for the last
//! message that is held and for what follows, which is one short read in place of a long one. If nothing changed, or nothing
//! but what this manager itself appended, the tail holds; otherwise it is read anew. So what another instance did is never
//! missed, and a mistake can only cost a read.
//!
//! Where the store has a stamp, and nobody wrote since, it is not asked again for a scope that it has answered before.

mod carried;
#[cfg(test)]
mod conformance;
mod context;
mod held;
mod shared;
mod tail;

pub use held::CachedMessages;
pub(crate) use shared::{Beside, ReadBeside, Shared};
pub(crate) use tail::{part_bytes, size};

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use threadkeep_core::{
    Batch, CommitOutcome, IdempotencyKey, Kind, Message, MessagePage, MessageQuery, OrderBy, RangeEnd, Result, Scope,
    StoreError, TenantId, ThreadId, ThreadName, ThreadRead, ThreadView, Timestamp, limits,
};

use crate::Memory;
use crate::retry::repeat_simply;
use tail::Tail;

/// How long a tail is kept that nobody asks for. It must stay below the days within which a deleted id cannot come back.
const IDLE_MS: i64 = 10 * 60 * 1000;
/// New messages that one look takes in; with more the tail is read anew.
const AHEAD: usize = 32;

/// What became of reads that the tails could answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadCacheStats {
    /// Reads answered from here, after one look at where the thread stands.
    pub hits: u64,
    /// Reads that went to the store for all of it.
    pub misses: u64,
    /// Threads that are held.
    pub threads: usize,
    /// Bytes that they take, about.
    pub bytes: usize,
}

type Key = (TenantId, ThreadId);

#[derive(Debug)]
pub(crate) struct Tails {
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tails: HashMap<Key, Tail>,
    /// The least lately used first.
    uses: BTreeMap<u64, Key>,
    last_use: u64,
    figures: ThreadCacheStats,
    /// Grows when words are taken away: who read before that keeps nothing of it.
    removals: u64,
}

impl Memory {
    /// What became of reads since this manager was made; all 0 where it keeps no tails.
    #[must_use]
    pub fn tail_figures(&self) -> ThreadCacheStats {
        self.tails().map_or_else(ThreadCacheStats::default, |tails| tails.lock().figures)
    }

    /// The newest messages of a thread, where they are held in memory and are known to be so still: nobody wrote to the store
    /// since it gave them in this scope. Whoever is given nothing reads the messages.
    #[must_use]
    pub fn held_messages(&self, scope: &Scope, thread: ThreadId, limit: usize) -> Option<CachedMessages> {
        let (tails, stamp, now) = (self.tails()?, self.store().stamp()?, self.now());
        let key = (scope.tenant_id().clone(), thread);
        let held = tails.held_without_asking(&key, scope, limit, stamp, now)?;
        // What is too old is left out by whoever reads the messages.
        let cutoff = self.options().retention.and_then(|retention| retention.cutoff(now));
        let is_outdated = |message: &Message| cutoff.is_some_and(|cutoff| message.created_at < cutoff);
        (!held.messages().iter().any(is_outdated)).then_some(held)
    }

    pub(crate) fn forget_tail(&self, scope: &Scope, thread: ThreadId) {
        if let Some(tails) = self.tails() {
            tails.remove(&(scope.tenant_id().clone(), thread));
        }
    }

    /// Reads a page, from a tail where one holds.
    pub(crate) async fn read_page(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        Ok(self.read_shared(scope, thread, query, &Beside::default(), now).await?.0.into_page())
    }

    /// Reads a page, without a copy where it is held; and with it what is wanted beside, where the store is asked at all. Of a
    /// page that is held, and only looked after, records are left out where what contexts carry on is held too.
    pub(crate) async fn read_shared(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        beside: &Beside,
        now: Timestamp,
    ) -> Result<(Shared, Option<ReadBeside>)> {
        let Some(tails) = self.tails().filter(|_| is_tail(query)) else {
            let (page, read) = self.read_from_store(scope, thread, query, beside, false, now).await?;
            return Ok((Shared::Read(Arc::new(page)), read));
        };
        let key = (scope.tenant_id().clone(), thread);
        // Before anything is read: what is written from now on makes it another one.
        let stamp = self.store().stamp();
        if let Some(stamp) = stamp
            && !beside.is_always_read
            && let Some(held) = tails.held_without_asking(&key, scope, query.limit, stamp, now)
        {
            return Ok((Shared::Held(held), None));
        }
        let (found, removals) = tails.find(&key, query.limit, now);
        if let Some(tail) = found {
            let limit = (query.limit + AHEAD).min(limits::PAGE);
            let look =
                MessageQuery { on_corrupt: query.on_corrupt, ..MessageQuery::following(tail.last_seq() - 1, limit) };
            match self.read_from_store(scope, thread, &look, &beside.of_a_look(&tail), stamp.is_some(), now).await {
                Ok((page, read)) => {
                    if let Some(tail) = tail.continued(page, query.limit) {
                        let held = tail.newest(query.limit);
                        tails.keep(key, tail.shown_to(scope, stamp, read.as_ref()), removals, now);
                        tails.lock().figures.hits += 1;
                        return Ok((Shared::Held(held), read));
                    }
                }
                Err(error) => {
                    tails.remove(&key);
                    return Err(error);
                }
            }
        }
        tails.lock().figures.misses += 1;
        let (page, read) = self.read_from_store(scope, thread, query, beside, stamp.is_some(), now).await?;
        let tail = match Tail::of(page, query.limit) {
            Ok(tail) => tail.shown_to(scope, stamp, read.as_ref()),
            Err(page) => {
                tails.remove(&key);
                return Ok((Shared::Read(Arc::new(page)), read));
            }
        };
        let held = tail.newest(query.limit);
        tails.keep(key, tail, removals, now);
        Ok((Shared::Held(held), read))
    }

    /// Reads a page with what is wanted beside it, and with the thread's row where nothing is.
    async fn read_from_store(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        beside: &Beside,
        needs_row: bool,
        now: Timestamp,
    ) -> Result<(MessagePage, Option<ReadBeside>)> {
        let (store, name) = (self.store(), ThreadName::Id(thread));
        let Beside { records, lists, .. } = beside.clone();
        let wanted = ThreadRead { messages: Some(query.clone()), records, lists };
        let read = async || {
            if beside.is_empty() && !needs_row {
                return store.list_messages(scope, thread, query, now).await.map(|page| (page, None));
            }
            let view = store.read_thread(scope, &name, &wanted, now).await?;
            let Some(ThreadView { thread, page: Some(page), records, lists }) = view else {
                return Err(StoreError::NotFound(Kind::Thread));
            };
            let records = (!beside.records.is_empty()).then_some(records);
            Ok((page, Some(ReadBeside { thread, records, lists })))
        };
        let found = match read().await {
            Err(error) if error.is_retryable() => repeat_simply(self.runtime(), read).await?,
            answer => answer?,
        };
        if let (_, Some(ReadBeside { thread, .. })) = &found {
            self.note_title(scope, thread);
        }
        Ok(found)
    }
}

fn is_tail(query: &MessageQuery) -> bool {
    let MessageQuery { before, after, roles, order, take, limit, .. } = query;
    let is_of_all = before.is_none() && after.is_none() && roles.is_empty();
    is_of_all && *order == OrderBy::Seq && *take == RangeEnd::Newest && (1..=limits::PAGE).contains(limit)
}

impl Tails {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, state: Mutex::default() }
    }

    /// Messages that need no look at the store.
    fn held_without_asking(
        &self,
        key: &Key,
        scope: &Scope,
        limit: usize,
        stamp: u64,
        now: Timestamp,
    ) -> Option<CachedMessages> {
        let mut state = self.lock();
        let is_shown = |tail: &&Tail| tail.is_as_stored_for(scope, stamp, now) && tail.holds(limit);
        let tail = state.tails.get(key).filter(is_shown)?;
        let (held, used_at) = (tail.newest(limit), tail.used_at.max(now));
        state.touch(key, used_at);
        state.figures.hits += 1;
        Some(held)
    }

    fn find(&self, key: &Key, limit: usize, now: Timestamp) -> (Option<Tail>, u64) {
        let mut state = self.lock();
        state.drop_idle(now);
        let found = state.tails.get(key).filter(|tail| tail.holds(limit));
        (found.cloned(), state.removals)
    }

    /// Keeps a tail that was read when there had been so many removals.
    fn keep(&self, key: Key, tail: Tail, removals: u64, now: Timestamp) {
        let mut state = self.lock();
        state.remove(&key);
        if state.removals != removals || tail.bytes > self.capacity / 4 {
            return;
        }
        state.last_use += 1;
        let used = state.last_use;
        state.uses.insert(used, key.clone());
        state.figures.bytes += tail.bytes;
        state.tails.insert(key, Tail { used, used_at: now, ..tail });
        state.make_room(self.capacity);
        state.figures.threads = state.tails.len();
    }

    /// Forgets a thread's words.
    pub(crate) fn remove(&self, key: &Key) {
        let mut state = self.lock();
        state.removals += 1;
        state.remove(key);
    }

    /// Forgets before words are taken away, so that nobody is shown them when that has happened.
    pub(crate) fn before_commit(&self, key: &Key, batch: &Batch) {
        if takes_words_away(batch) {
            self.remove(key);
        }
    }

    pub(crate) fn after_commit(&self, key: &Key, batch: &Batch, outcome: Option<&CommitOutcome>) {
        if takes_words_away(batch) || batch.patch.expires_at.is_some() {
            self.remove(key);
        } else if let Some(outcome) = outcome
            && !batch.is_empty()
            && let Some(tail) = self.lock().tails.get_mut(key)
        {
            // What is told again for a given key was perhaps committed by another instance, from another batch.
            let is_ours = !outcome.replayed || matches!(batch.key, IdempotencyKey::Minted(_));
            if is_ours && tail.ours_through + 1 == outcome.change {
                tail.ours_through = outcome.change;
            }
            if let Some(carried) = &mut tail.carried {
                carried.follow(batch, outcome);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // What was kept is looked at before it is shown, whatever happened to another thread that held the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn takes_words_away(batch: &Batch) -> bool {
    !batch.erase.is_empty() || !batch.replace.is_empty() || batch.trim_below.is_some()
}

impl State {
    fn remove(&mut self, key: &Key) {
        if let Some(tail) = self.tails.remove(key) {
            self.uses.remove(&tail.used);
            self.figures.bytes -= tail.bytes;
        }
        self.figures.threads = self.tails.len();
    }

    fn touch(&mut self, key: &Key, now: Timestamp) {
        self.last_use += 1;
        let last_use = self.last_use;
        if let Some(tail) = self.tails.get_mut(key) {
            self.uses.remove(&tail.used);
            (tail.used, tail.used_at) = (last_use, now);
            self.uses.insert(last_use, key.clone());
        }
    }

    fn make_room(&mut self, capacity: usize) {
        while self.figures.bytes > capacity && self.drop_oldest() {}
    }

    fn drop_oldest(&mut self) -> bool {
        let oldest = self.uses.first_key_value().map(|(_, key)| key.clone());
        oldest.inspect(|key| self.remove(key)).is_some()
    }

    fn drop_idle(&mut self, now: Timestamp) {
        let is_idle = |tail: &Tail| tail.used_at.plus_ms(IDLE_MS) <= now;
        while self.uses.first_key_value().and_then(|(_, key)| self.tails.get(key)).is_some_and(is_idle) {
            self.drop_oldest();
        }
    }
}
