//! Caches threads as this process last read or wrote them, so that a commit does not have to read first, and a read of the newest messages
//! knows their positions.
//!
//! The cache may be out of date. The function that writes a commit compares the revision, and writes nothing in that case; a read compares it,
//! too, and is repeated.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use threadkeep_core::{Batch, RecordName, TaggedNumber, TenantId, ThreadId, Timestamp};

use crate::row::{Row, has_expired};

/// The maximum number of known threads.
const MAX_ROWS: usize = 8_192;
/// The maximum size of the title, metadata and state of a known thread, in bytes.
const MAX_BODY: usize = 4_096;
/// The maximum number of known records of a thread.
const MAX_RECORDS: usize = 16;

/// The version of a record, and when it expires; `None` if the record does not exist.
type KnownVersion = Option<(TaggedNumber, Option<Timestamp>)>;

/// A thread at one revision.
#[derive(Clone)]
pub(crate) struct KnownRow {
    pub(crate) revision: String,
    pub(crate) row: Row,
    /// The records that this process has written.
    records: HashMap<RecordName, KnownVersion>,
}

impl KnownRow {
    /// Returns the version of a record at a time; `None` if it is not known.
    pub(crate) fn version(&self, name: &RecordName, now: Timestamp) -> Option<Option<TaggedNumber>> {
        let known = self.records.get(name)?;
        Some(known.filter(|(_, expires_at)| !has_expired(*expires_at, now)).map(|(version, _)| version))
    }
}

/// A bounded cache of threads. When it is full, it is cleared.
#[derive(Default)]
pub(crate) struct KnownRows(Mutex<HashMap<(TenantId, ThreadId), KnownRow>>);

impl KnownRows {
    fn rows(&self) -> MutexGuard<'_, HashMap<(TenantId, ThreadId), KnownRow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns a thread. A commit that succeeds puts it back.
    pub(crate) fn take(&self, tenant: &TenantId, thread: ThreadId) -> Option<KnownRow> {
        self.rows().remove(&(tenant.clone(), thread))
    }

    /// Returns the row of a thread and its revision.
    pub(crate) fn find(&self, tenant: &TenantId, thread: ThreadId) -> Option<(String, Row)> {
        self.rows().get(&(tenant.clone(), thread)).map(|known| (known.revision.clone(), known.row.clone()))
    }

    pub(crate) fn remove(&self, tenant: &TenantId, thread: ThreadId) {
        self.take(tenant, thread);
    }

    /// Notes a thread that was read.
    pub(crate) fn note_read(&self, tenant: &TenantId, thread: ThreadId, revision: &str, row: &Row) {
        let key = (tenant.clone(), thread);
        let mut rows = self.rows();
        if rows.get(&key).is_some_and(|known| known.revision == revision) || !is_small(row) {
            return;
        }
        let known = KnownRow { revision: revision.to_owned(), row: row.clone(), records: HashMap::new() };
        insert(&mut rows, key, known);
    }

    /// Notes a thread that was written by a commit. `before` is what was known of it, if the commit followed directly.
    pub(crate) fn note_commit(
        &self,
        (tenant, thread): (&TenantId, ThreadId),
        before: Option<KnownRow>,
        (revision, row): (String, Row),
        batch: &Batch,
        version: TaggedNumber,
    ) {
        if !is_small(&row) {
            return;
        }
        let mut records = before.map(|known| known.records).unwrap_or_default();
        if records.len() + batch.put.len() + batch.delete.len() > MAX_RECORDS {
            records.clear();
        }
        records.extend(batch.put.iter().map(|put| (put.name.clone(), Some((version, put.expires_at)))));
        records.extend(batch.delete.iter().map(|name| (name.clone(), None)));
        insert(&mut self.rows(), (tenant.clone(), thread), KnownRow { revision, row, records });
    }
}

fn is_small(row: &Row) -> bool {
    row.thread.as_ref().is_some_and(|thread| thread.body.len() <= MAX_BODY)
        && row.gaps.len() <= MAX_RECORDS
        && row.graves.len() <= MAX_RECORDS
}

fn insert(rows: &mut HashMap<(TenantId, ThreadId), KnownRow>, key: (TenantId, ThreadId), known: KnownRow) {
    if rows.len() >= MAX_ROWS {
        rows.clear();
    }
    rows.insert(key, known);
}
