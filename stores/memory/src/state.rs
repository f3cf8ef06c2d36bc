//! What the store keeps.

pub(crate) mod collections;
mod commit;
pub(crate) mod read;
mod records;
mod restore;
mod snapshot;
mod sweep;
mod threads;
mod user_changes;
mod verify;

use std::collections::BTreeMap;

use threadkeep_core::{
    Access, DumpEntry, DumpedCommit, DumpedThread, IDEMPOTENCY_WINDOW_MS, IdempotencyKey, IndexEntry, Kind, MessageId,
    Namespace, Owner, Record, RecordName, RecordOwner, Result, Scope, StoreError, TenantId, Thread, ThreadId,
    Timestamp, codec,
};
use uuid::Uuid;

/// Everything that one store holds.
#[derive(Clone)]
pub(crate) struct State {
    /// Tells this store's cursors from those of any other.
    incarnation: Uuid,
    /// Grows with everything that happens to any thread; orders [`State::list_changed_threads`].
    stamp: u64,
    /// Deletions up to this stamp are no longer remembered.
    forgotten_stamp: u64,
    /// The last version given to a record of a user or a tenant.
    record_version: u64,
    tenants: BTreeMap<TenantId, Tenant>,
}

/// What belongs to one tenant.
#[derive(Clone, Default)]
struct Tenant {
    threads: BTreeMap<ThreadId, KeptThread>,
    graves: BTreeMap<ThreadId, Grave>,
    records: BTreeMap<(RecordOwner, Namespace, String), Record>,
    /// Entries by their owner, their collection's name and their id.
    entries: BTreeMap<(Owner, String, String), IndexEntry>,
    /// Threads whose last chunk has not come yet.
    unfinished: BTreeMap<ThreadId, KeptThread>,
}

/// A thread with all that belongs to it.
#[derive(Clone)]
pub(crate) struct KeptThread {
    pub(crate) row: DumpedThread,
    records: BTreeMap<RecordName, Record>,
    /// By change position: the change log and the idempotency records in one.
    commits: BTreeMap<u64, DumpedCommit>,
    /// By position.
    pub(crate) entries: BTreeMap<u64, DumpEntry>,
    /// The stamp of its coming into this store; orders [`State::list_threads`].
    first_stamp: u64,
    /// The stamp of the last thing that happened to it.
    stamp: u64,
    /// Derived from `commits`: the newest one of each key.
    commit_of_key: BTreeMap<IdempotencyKey, u64>,
    /// Derived from `entries`, tombstones included.
    seq_of_id: BTreeMap<MessageId, u64>,
    /// Derived from `entries`.
    seq_of_external_id: BTreeMap<String, u64>,
}

/// What is left of a deleted thread.
#[derive(Clone)]
struct Grave {
    owner: Owner,
    deleted_at: Timestamp,
    stamp: u64,
}

impl State {
    pub(crate) fn new() -> Self {
        Self { incarnation: Uuid::new_v4(), stamp: 0, forgotten_stamp: 0, record_version: 0, tenants: BTreeMap::new() }
    }

    /// The thread, if the scope reaches it and it has not expired, with what the caller may do.
    fn reach(&self, scope: &Scope, id: ThreadId, now: Timestamp) -> Result<(&KeptThread, Access)> {
        let kept = self.tenants.get(scope.tenant_id()).and_then(|tenant| tenant.threads.get(&id));
        let kept = kept.filter(|kept| kept.is_live(now)).ok_or(StoreError::NotFound(Kind::Thread))?;
        match scope.access(&kept.row.owner) {
            Access::None => Err(StoreError::NotFound(Kind::Thread)),
            access => Ok((kept, access)),
        }
    }

    /// The threads that the scope has in full, expired ones left out.
    pub(crate) fn full_threads<'a>(
        &'a self,
        scope: &'a Scope,
        now: Timestamp,
    ) -> impl Iterator<Item = (ThreadId, &'a KeptThread)> {
        self.live_threads(scope, Access::Full, now)
    }

    fn live_threads<'a>(
        &'a self,
        scope: &'a Scope,
        least: Access,
        now: Timestamp,
    ) -> impl Iterator<Item = (ThreadId, &'a KeptThread)> {
        let threads = self.tenants.get(scope.tenant_id()).into_iter().flat_map(|tenant| &tenant.threads);
        threads
            .filter(move |(_, kept)| kept.is_live(now) && scope.access(&kept.row.owner) >= least)
            .map(|(id, kept)| (*id, kept))
    }

    /// The threads that a search looks through: those that the scope has in full, or one that it may read.
    pub(crate) fn searched_threads<'a>(
        &'a self,
        scope: &'a Scope,
        only: Option<ThreadId>,
        now: Timestamp,
    ) -> impl Iterator<Item = (ThreadId, &'a KeptThread)> {
        let least = if only.is_some() { Access::Append } else { Access::Full };
        self.live_threads(scope, least, now).filter(move |(id, _)| only.is_none_or(|only| only == *id))
    }

    fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }
}

impl KeptThread {
    fn new(row: DumpedThread, stamp: u64) -> Self {
        Self {
            row,
            records: BTreeMap::new(),
            commits: BTreeMap::new(),
            entries: BTreeMap::new(),
            first_stamp: stamp,
            stamp,
            commit_of_key: BTreeMap::new(),
            seq_of_id: BTreeMap::new(),
            seq_of_external_id: BTreeMap::new(),
        }
    }

    pub(crate) fn is_live(&self, now: Timestamp) -> bool {
        !has_expired(self.row.expires_at, now)
    }

    fn to_thread(&self, id: ThreadId) -> Result<Thread> {
        let words = codec::decode_thread(&self.row.body)?;
        let messages = self.entries.values().filter(|entry| matches!(entry, DumpEntry::Message { .. }));
        Ok(Thread {
            id,
            owner: self.row.owner.clone(),
            key: self.row.key.clone(),
            title: words.title,
            metadata: words.metadata,
            state: words.state,
            positions: self.row.positions,
            message_count: messages.count() as u64,
            created_at: self.row.created_at,
            updated_at: self.row.updated_at,
            expires_at: self.row.expires_at,
        })
    }

    fn insert_entry(&mut self, entry: DumpEntry) {
        let seq = entry.seq();
        match &entry {
            DumpEntry::Message { id, external_id, .. } => {
                self.seq_of_id.insert(*id, seq);
                if let Some(external_id) = external_id {
                    self.seq_of_external_id.insert(external_id.clone(), seq);
                }
            }
            DumpEntry::Tombstone { id, .. } => {
                self.seq_of_id.insert(*id, seq);
            }
            DumpEntry::Lost { .. } => return,
        }
        self.entries.insert(seq, entry);
    }

    fn remove_entry(&mut self, seq: u64) {
        match self.entries.remove(&seq) {
            Some(DumpEntry::Message { id, external_id, .. }) => {
                self.seq_of_id.remove(&id);
                if let Some(external_id) = external_id {
                    self.seq_of_external_id.remove(&external_id);
                }
            }
            Some(DumpEntry::Tombstone { id, .. }) => {
                self.seq_of_id.remove(&id);
            }
            Some(DumpEntry::Lost { .. }) | None => {}
        }
    }

    fn insert_commit(&mut self, commit: DumpedCommit) {
        self.commit_of_key.insert(commit.key.clone(), commit.change);
        self.commits.insert(commit.change, commit);
    }

    fn remove_commit(&mut self, change: u64) {
        if let Some(commit) = self.commits.remove(&change)
            && self.commit_of_key.get(&commit.key) == Some(&change)
        {
            self.commit_of_key.remove(&commit.key);
        }
    }
}

/// Whether something is over, swept or not.
fn has_expired(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_some_and(|expires_at| expires_at <= now)
}

/// Whether what happened at `at` is longer ago than it has to be remembered.
fn is_beyond_window(at: Timestamp, now: Timestamp) -> bool {
    at.plus_ms(IDEMPOTENCY_WINDOW_MS) < now
}
