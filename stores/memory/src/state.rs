//! The data of the store.

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
    MetadataFilter, Namespace, Owner, Record, RecordName, RecordOwner, Result, Scope, StoreError, TenantId, Thread,
    ThreadId, Timestamp, codec,
};
use uuid::Uuid;

/// All data of one store.
#[derive(Clone)]
pub(crate) struct State {
    /// A random id that distinguishes this store's cursors from those of other stores.
    incarnation: Uuid,
    /// A counter of the changes to all threads. Each change assigns its new value to the changed thread. Determines the order of
    /// [`State::list_changed_threads`].
    stamp: u64,
    /// The highest stamp of the deletions that a sweep has removed. Cursors before this stamp are unusable.
    swept_stamp: u64,
    /// The last version assigned to a record of a user or a tenant.
    record_version: u64,
    tenants: BTreeMap<TenantId, Tenant>,
}

/// The data of one tenant.
#[derive(Clone, Default)]
struct Tenant {
    threads: BTreeMap<ThreadId, StoredThread>,
    deleted: BTreeMap<ThreadId, DeletedThread>,
    records: BTreeMap<(RecordOwner, Namespace, String), Record>,
    /// Entries of collections by owner, collection name and id.
    entries: BTreeMap<(Owner, String, String), IndexEntry>,
    /// Threads that are being restored: their last chunk has not been received.
    unfinished: BTreeMap<ThreadId, StoredThread>,
}

/// A thread and all its data.
#[derive(Clone)]
pub(crate) struct StoredThread {
    pub(crate) row: DumpedThread,
    records: BTreeMap<RecordName, Record>,
    /// The change log and the idempotency records, by change.
    commits: BTreeMap<u64, DumpedCommit>,
    /// The messages and tombstones, by position.
    pub(crate) entries: BTreeMap<u64, DumpEntry>,
    /// The stamp of its creation or restoration. Determines the order of [`State::list_threads`].
    first_stamp: u64,
    /// The stamp of its last change.
    stamp: u64,
    /// Derived from `commits`: the newest change of each key.
    change_of_key: BTreeMap<IdempotencyKey, u64>,
    /// Derived from `entries`: the positions of messages and tombstones.
    seq_of_id: BTreeMap<MessageId, u64>,
    /// Derived from `entries`: the positions of messages with an external id.
    seq_of_external_id: BTreeMap<String, u64>,
}

/// A deleted thread. It is stored until a sweep removes it after the idempotency window.
#[derive(Clone)]
struct DeletedThread {
    owner: Owner,
    deleted_at: Timestamp,
    stamp: u64,
}

impl State {
    pub(crate) fn new() -> Self {
        Self { incarnation: Uuid::new_v4(), stamp: 0, swept_stamp: 0, record_version: 0, tenants: BTreeMap::new() }
    }

    /// Returns a thread with the scope's access to it, unless the thread has expired or the scope cannot access it.
    fn find_live(&self, scope: &Scope, id: ThreadId, now: Timestamp) -> Result<(&StoredThread, Access)> {
        let stored = self.tenants.get(scope.tenant_id()).and_then(|tenant| tenant.threads.get(&id));
        let stored = stored.filter(|stored| stored.is_live(now)).ok_or(StoreError::NotFound(Kind::Thread))?;
        match scope.access(&stored.row.owner) {
            Access::None => Err(StoreError::NotFound(Kind::Thread)),
            access => Ok((stored, access)),
        }
    }

    /// Returns the threads to which the scope has full access, without expired threads.
    pub(crate) fn threads_with_full_access<'a>(
        &'a self,
        scope: &'a Scope,
        now: Timestamp,
    ) -> impl Iterator<Item = (ThreadId, &'a StoredThread)> {
        self.live_threads(scope, Access::Full, now)
    }

    fn live_threads<'a>(
        &'a self,
        scope: &'a Scope,
        min_access: Access,
        now: Timestamp,
    ) -> impl Iterator<Item = (ThreadId, &'a StoredThread)> {
        let threads = self.tenants.get(scope.tenant_id()).into_iter().flat_map(|tenant| &tenant.threads);
        threads
            .filter(move |(_, stored)| stored.is_live(now) && scope.access(&stored.row.owner) >= min_access)
            .map(|(id, stored)| (*id, stored))
    }

    /// Returns the threads that a search includes: those with full access, or the thread `only` if the scope can read it.
    pub(crate) fn searched_threads<'a>(
        &'a self,
        scope: &'a Scope,
        only: Option<ThreadId>,
        now: Timestamp,
    ) -> impl Iterator<Item = (ThreadId, &'a StoredThread)> {
        let min_access = if only.is_some() { Access::Append } else { Access::Full };
        self.live_threads(scope, min_access, now).filter(move |(id, _)| only.is_none_or(|only| only == *id))
    }

    fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }
}

impl StoredThread {
    /// Whether the thread's metadata passes a filter. A thread that cannot be decoded passes only the empty filter.
    pub(crate) fn passes_filter(&self, filter: &MetadataFilter) -> bool {
        filter.is_empty()
            || codec::decode_thread(&self.row.body).is_ok_and(|attributes| filter.matches(&attributes.metadata))
    }

    fn new(row: DumpedThread, stamp: u64) -> Self {
        Self {
            row,
            records: BTreeMap::new(),
            commits: BTreeMap::new(),
            entries: BTreeMap::new(),
            first_stamp: stamp,
            stamp,
            change_of_key: BTreeMap::new(),
            seq_of_id: BTreeMap::new(),
            seq_of_external_id: BTreeMap::new(),
        }
    }

    pub(crate) fn is_live(&self, now: Timestamp) -> bool {
        !has_expired(self.row.expires_at, now)
    }

    fn to_thread(&self, id: ThreadId) -> Result<Thread> {
        let attributes = codec::decode_thread(&self.row.body)?;
        let messages = self.entries.values().filter(|entry| matches!(entry, DumpEntry::Message { .. }));
        Ok(Thread {
            id,
            owner: self.row.owner.clone(),
            key: self.row.key.clone(),
            title: attributes.title,
            metadata: attributes.metadata,
            state: attributes.state,
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
        self.change_of_key.insert(commit.key.clone(), commit.change);
        self.commits.insert(commit.change, commit);
    }

    fn remove_commit(&mut self, change: u64) {
        if let Some(commit) = self.commits.remove(&change)
            && self.change_of_key.get(&commit.key) == Some(&change)
        {
            self.change_of_key.remove(&commit.key);
        }
    }
}

/// Whether a thread or record has expired, even if no sweep has removed it yet.
fn has_expired(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_some_and(|expires_at| expires_at <= now)
}

/// Whether `at` is before the start of the idempotency window.
fn is_beyond_window(at: Timestamp, now: Timestamp) -> bool {
    at.plus_ms(IDEMPOTENCY_WINDOW_MS) < now
}
