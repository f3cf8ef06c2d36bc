//! The rows and their stored forms: JSON of the types that dumps consist of.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use threadkeep_core::{
    Access, Content, DumpEntry, DumpedCommit, DumpedThread, IDEMPOTENCY_WINDOW_MS, Kind, Map, Message, MetadataFilter,
    Owner, Record, RecordName, RecordOwner, Result, Scope, StoreError, TenantId, Thread, ThreadId, Timestamp, codec,
    text,
};
use uuid::Uuid;

use crate::idb::Transaction;
use crate::keys::{self, index};

/// The counters of the whole store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Counters {
    /// A random id that distinguishes this store's cursors from those of other stores.
    pub(crate) incarnation: Uuid,
    /// The number of changes to all threads. Each change assigns its new value to the changed thread.
    pub(crate) stamp: u64,
    /// The highest stamp of the deletions that a sweep has removed. Cursors before this stamp are unusable.
    pub(crate) swept_stamp: u64,
    /// The last version assigned to a record of a user or a tenant.
    pub(crate) record_version: u64,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self { incarnation: Uuid::new_v4(), stamp: 0, swept_stamp: 0, record_version: 0 }
    }

    pub(crate) async fn read(transaction: &Transaction) -> Result<Self> {
        let text = transaction.get(&keys::counters()).await?;
        parse("counters", &text.ok_or_else(|| StoreError::corrupt("counters", "missing"))?)
    }

    pub(crate) fn write(&self, transaction: &Transaction) -> Result<()> {
        transaction.put(&keys::counters(), &to_text(self)?, &[])
    }

    pub(crate) fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }
}

/// A thread without its messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ThreadRow {
    pub(crate) tenant: TenantId,
    pub(crate) id: ThreadId,
    pub(crate) thread: DumpedThread,
    /// The number of its messages, without tombstones.
    pub(crate) messages: u64,
    /// The stamp of its creation or restoration. Determines the order of lists.
    pub(crate) created: u64,
    /// The stamp of its last change.
    pub(crate) stamp: u64,
}

impl ThreadRow {
    pub(crate) async fn find(transaction: &Transaction, tenant: &TenantId, id: ThreadId) -> Result<Option<Self>> {
        let text = transaction.get(&keys::thread(tenant, id)).await?;
        text.map(|text| Self::parse(&text)).transpose()
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        parse("thread", text)
    }

    pub(crate) fn write(&self, transaction: &Transaction) -> Result<()> {
        let Self { tenant, id, thread, created, stamp, .. } = self;
        let mut index_keys = vec![
            index::created(tenant, *created),
            index::recent(tenant, thread.updated_at, *id),
            index::changed(tenant, *stamp),
        ];
        index_keys.extend(thread.key.as_ref().map(|key| index::thread_key(tenant, &thread.owner, key)));
        transaction.put(&keys::thread(tenant, *id), &to_text(self)?, &index_keys)
    }

    /// Deletes the thread and all its parts.
    pub(crate) fn delete(&self, transaction: &Transaction) -> Result<()> {
        transaction.delete(&keys::thread(&self.tenant, self.id))?;
        delete_parts(transaction, &self.tenant, self.id)
    }

    pub(crate) fn is_live(&self, now: Timestamp) -> bool {
        !has_expired(self.thread.expires_at, now)
    }

    /// Whether the thread's metadata passes a filter. A thread that cannot be decoded passes only the empty filter.
    pub(crate) fn passes_filter(&self, filter: &MetadataFilter) -> bool {
        filter.is_empty()
            || codec::decode_thread(&self.thread.body).is_ok_and(|attributes| filter.matches(&attributes.metadata))
    }

    pub(crate) fn to_thread(&self) -> Result<Thread> {
        let attributes = codec::decode_thread(&self.thread.body)?;
        Ok(Thread {
            id: self.id,
            owner: self.thread.owner.clone(),
            key: self.thread.key.clone(),
            title: attributes.title,
            metadata: attributes.metadata,
            state: attributes.state,
            positions: self.thread.positions,
            message_count: self.messages,
            created_at: self.thread.created_at,
            updated_at: self.thread.updated_at,
            expires_at: self.thread.expires_at,
        })
    }
}

/// Deletes the messages, commits and records of a thread.
pub(crate) fn delete_parts(transaction: &Transaction, tenant: &TenantId, id: ThreadId) -> Result<()> {
    keys::parts_of_thread(tenant, id).iter().try_for_each(|range| transaction.delete_range(range))
}

/// Returns a thread with the scope's access to it, unless it has expired or the scope cannot access it.
pub(crate) async fn find_live(
    transaction: &Transaction,
    scope: &Scope,
    id: ThreadId,
    now: Timestamp,
) -> Result<(ThreadRow, Access)> {
    let row = ThreadRow::find(transaction, scope.tenant_id(), id).await?;
    check_live(row, scope, now)
}

pub(crate) fn check_live(row: Option<ThreadRow>, scope: &Scope, now: Timestamp) -> Result<(ThreadRow, Access)> {
    let row = row.filter(|row| row.is_live(now)).ok_or(StoreError::NotFound(Kind::Thread))?;
    match scope.access(&row.thread.owner) {
        Access::None => Err(StoreError::NotFound(Kind::Thread)),
        access => Ok((row, access)),
    }
}

/// A deleted thread. It is stored until a sweep removes it after the idempotency window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DeletedRow {
    pub(crate) tenant: TenantId,
    pub(crate) id: ThreadId,
    pub(crate) owner: Owner,
    pub(crate) deleted_at: Timestamp,
    pub(crate) stamp: u64,
}

impl DeletedRow {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        parse("deleted thread", text)
    }

    pub(crate) fn write(&self, transaction: &Transaction) -> Result<()> {
        let index_keys = [index::deleted(&self.tenant, self.stamp)];
        transaction.put(&keys::deleted(&self.tenant, self.id), &to_text(self)?, &index_keys)
    }
}

/// A record with its owner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordRow {
    pub(crate) tenant: TenantId,
    pub(crate) owner: RecordOwner,
    pub(crate) record: Record,
}

impl RecordRow {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        parse("record", text)
    }

    pub(crate) fn key(&self) -> Vec<u8> {
        keys::record(&self.tenant, &self.owner, &self.record.namespace, &self.record.key)
    }

    pub(crate) fn write(&self, transaction: &Transaction) -> Result<()> {
        let mut index_keys: Vec<Vec<u8>> = self.record.expires_at.map(index::expiry).into_iter().collect();
        if let RecordOwner::Thread(thread) = &self.owner {
            let driver = RecordName::driver();
            if self.record.namespace == driver.namespace && self.record.key == driver.key {
                index_keys.push(index::driven(&self.tenant, *thread));
            }
        }
        transaction.put(&self.key(), &to_text(self)?, &index_keys)
    }
}

/// Notes that an owner has data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KnownOwner {
    pub(crate) tenant: TenantId,
    pub(crate) owner: Owner,
}

impl KnownOwner {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        parse("owner", text)
    }

    /// Notes an owner, and its tenant.
    pub(crate) fn add(transaction: &Transaction, tenant: &TenantId, owner: &Owner) -> Result<()> {
        for owner in [&Owner::Tenant, owner] {
            let row = Self { tenant: tenant.clone(), owner: owner.clone() };
            transaction.put(&keys::known_owner(tenant, owner), &to_text(&row)?, &[])?;
        }
        Ok(())
    }
}

/// An entry of a collection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CollectionRow {
    pub(crate) owner: Owner,
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) fields: Map,
    /// The model and the vector.
    pub(crate) embedding: Option<(String, Vec<f32>)>,
}

pub(crate) fn write_commit(
    transaction: &Transaction,
    tenant: &TenantId,
    id: ThreadId,
    commit: &DumpedCommit,
) -> Result<()> {
    let index_keys = [index::idempotency(tenant, id, &commit.key)];
    transaction.put(&keys::commit(tenant, id, commit.change), &to_text(commit)?, &index_keys)
}

/// Writes a message or tombstone. `content` is the decoded body of a message; `None` if it cannot be decoded.
pub(crate) fn write_entry(
    transaction: &Transaction,
    tenant: &TenantId,
    thread: ThreadId,
    entry: &DumpEntry,
    content: Option<&Content>,
) -> Result<()> {
    let mut index_keys = Vec::new();
    match entry {
        DumpEntry::Message { id, external_id, .. } => {
            index_keys.push(index::message(tenant, thread, *id));
            index_keys.extend(external_id.as_ref().map(|external_id| index::external(tenant, thread, external_id)));
            let terms = content.map(|content| text::indexed_terms(&content.plain_text())).unwrap_or_default();
            index_keys.extend(terms.iter().map(|term| index::term(tenant, term)));
        }
        DumpEntry::Tombstone { id, .. } => index_keys.push(index::message(tenant, thread, *id)),
        DumpEntry::Lost { .. } => return Ok(()),
    }
    transaction.put(&keys::entry(tenant, thread, entry.seq()), &to_text(entry)?, &index_keys)
}

/// Writes an entry with the text of a dump.
pub(crate) fn write_dumped_entry(
    transaction: &Transaction,
    tenant: &TenantId,
    thread: ThreadId,
    entry: &DumpEntry,
) -> Result<()> {
    let content = match entry {
        DumpEntry::Message { body, .. } => codec::decode_content(body).ok(),
        DumpEntry::Tombstone { .. } | DumpEntry::Lost { .. } => None,
    };
    write_entry(transaction, tenant, thread, entry, content.as_ref())
}

pub(crate) fn parse_entry(text: &str) -> Result<DumpEntry> {
    parse("message", text)
}

pub(crate) fn parse_commit(text: &str) -> Result<DumpedCommit> {
    parse("commit", text)
}

/// Decodes the message in an entry; `None` for a tombstone and for lost positions.
pub(crate) fn decode(entry: &DumpEntry) -> Option<Result<Message>> {
    match entry {
        DumpEntry::Tombstone { .. } | DumpEntry::Lost { .. } => None,
        DumpEntry::Message { seq, id, external_id, revision, created_at, body, .. } => {
            Some(codec::decode_content(body).map(|content| Message {
                seq: *seq,
                id: *id,
                external_id: external_id.clone(),
                revision: *revision,
                created_at: *created_at,
                content,
            }))
        }
    }
}

pub(crate) fn parse<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| StoreError::corrupt(what, error.to_string()))
}

pub(crate) fn to_text<T: Serialize>(row: &T) -> Result<String> {
    serde_json::to_string(row).map_err(|error| StoreError::invalid("row", error.to_string()))
}

/// Whether a thread or record has expired, even if no sweep has removed it yet.
pub(crate) fn has_expired(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_some_and(|expires_at| expires_at <= now)
}

/// Whether `at` is before the start of the idempotency window.
pub(crate) fn is_beyond_window(at: Timestamp, now: Timestamp) -> bool {
    at.plus_ms(IDEMPOTENCY_WINDOW_MS) < now
}
