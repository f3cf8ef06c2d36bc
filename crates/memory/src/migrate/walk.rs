//! Iterates over all data in a snapshot or store, page by page.

use std::collections::VecDeque;

use futures::stream::{self, Stream};
use threadkeep_core::{
    Backend, ChunkSize, Dump, DumpEntry, ListedThread, Namespace, OwnedRecord, Record, RecordOwner, Result, Runtime,
    Scope, Snapshot, StoreError, StoreExt, TenantId, Thread, ThreadId, ThreadRef, Timestamp, limits,
};

use super::Item;
use crate::retry::retry;

/// Maximum number of threads per page.
const THREADS_PER_PAGE: usize = 200;
/// Maximum number of records per page. It is low because a record can be large.
const RECORDS_PER_PAGE: usize = 100;
/// Approximate size of a chunk of a thread, in bytes.
const CHUNK_BYTES: usize = 2 * 1024 * 1024;
/// Maximum number of entries in a thread's first chunk, when the size of the entries is still unknown.
const FIRST_CHUNK_ENTRIES: usize = 16;
/// Maximum size of a chunk that is read from a snapshot.
const CHUNK_SIZE: ChunkSize = ChunkSize { entries: limits::PAGE, bytes: CHUNK_BYTES };

pub(super) async fn find_thread(
    runtime: &dyn Runtime,
    backend: &Backend,
    tenant: &TenantId,
    thread: &ThreadRef,
    now: Timestamp,
) -> Result<Option<Thread>> {
    let scope = Scope::Tenant(tenant.clone());
    retry(runtime, || backend.store.find_thread(&scope, thread, now)).await
}

/// Iterates over the threads in a snapshot, in the order of their creation.
pub(super) struct Threads<'a> {
    runtime: &'a dyn Runtime,
    snapshot: &'a dyn Snapshot,
    last: Option<u64>,
}

impl<'a> Threads<'a> {
    pub(super) fn of(runtime: &'a dyn Runtime, snapshot: &'a dyn Snapshot) -> Self {
        Self { runtime, snapshot, last: None }
    }

    /// Reads the next page; `None` after the last one.
    pub(super) async fn next_page(&mut self) -> Result<Option<Vec<ListedThread>>> {
        let page = retry(self.runtime, || self.snapshot.list_threads(self.last, THREADS_PER_PAGE)).await?;
        self.last = page.last().map(|last| last.number);
        Ok(Some(page).filter(|page| !page.is_empty()))
    }
}

/// Iterates over the records of users and tenants in a snapshot.
pub(super) struct Records<'a> {
    runtime: &'a dyn Runtime,
    snapshot: &'a dyn Snapshot,
    last: Option<OwnedRecord>,
}

impl<'a> Records<'a> {
    pub(super) fn of(runtime: &'a dyn Runtime, snapshot: &'a dyn Snapshot) -> Self {
        Self { runtime, snapshot, last: None }
    }

    /// Reads the next page; `None` after the last one.
    pub(super) async fn next_page(&mut self) -> Result<Option<Vec<OwnedRecord>>> {
        let mut page = retry(self.runtime, || self.snapshot.list_records(self.last.as_ref(), RECORDS_PER_PAGE)).await?;
        let Some(last) = page.last() else { return Ok(None) };
        self.last = Some(last.clone());
        page.retain(|owned| !is_store_internal(&owned.record));
        Ok(Some(page))
    }
}

/// Whether a record belongs to the store itself, such as the record of the last sweep.
fn is_store_internal(record: &Record) -> bool {
    matches!(&record.namespace, Namespace::System(name) if name == crate::sweep::NAMESPACE)
}

pub(super) fn record_item(owner: &RecordOwner, record: &Record) -> Item {
    Item::Record { owner: owner.clone(), namespace: record.namespace.clone(), key: record.key.clone() }
}

/// Iterates over the first chunks of several threads in a snapshot. One call reads as many chunks as fit.
pub(super) struct FirstChunks<'a> {
    runtime: &'a dyn Runtime,
    snapshot: &'a dyn Snapshot,
    /// The threads whose first chunk has not been read yet.
    pending: Vec<u64>,
    /// The chunks that have been read but not returned.
    ready: VecDeque<Dump>,
}

impl<'a> FirstChunks<'a> {
    pub(super) fn of(
        runtime: &'a dyn Runtime,
        snapshot: &'a dyn Snapshot,
        pending: impl IntoIterator<Item = u64>,
    ) -> Self {
        Self { runtime, snapshot, pending: pending.into_iter().collect(), ready: VecDeque::new() }
    }

    /// Returns the first chunk of the next thread; `None` after the last thread.
    pub(super) async fn next(&mut self) -> Result<Option<Dump>> {
        if self.ready.is_empty() && !self.pending.is_empty() {
            self.ready =
                retry(self.runtime, || self.snapshot.dump_threads(&self.pending, None, CHUNK_SIZE)).await?.into();
            if self.ready.is_empty() || self.ready.len() > self.pending.len() {
                return Err(StoreError::corrupt(
                    "snapshot",
                    "it returned a different number of threads than requested",
                ));
            }
            self.pending.drain(..self.ready.len());
        }
        Ok(self.ready.pop_front())
    }

    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Dump>> {
        stream::try_unfold(self, async |mut this| Ok(this.next().await?.map(|chunk| (chunk, this))))
    }
}

/// Reads the chunk that follows position `after` in a thread of a snapshot; the first chunk if `after` is `None`.
pub(super) async fn next_chunk(
    runtime: &dyn Runtime,
    snapshot: &dyn Snapshot,
    number: u64,
    after: Option<u64>,
) -> Result<Option<Dump>> {
    let numbers = [number];
    let chunks = retry(runtime, || snapshot.dump_threads(&numbers, after, CHUNK_SIZE)).await?;
    Ok(chunks.into_iter().next())
}

/// Iterates over the current data of a thread in a store, in chunks. The number of entries per chunk adapts to their size.
pub(super) struct Chunks<'a> {
    runtime: &'a dyn Runtime,
    backend: &'a Backend,
    tenant: &'a TenantId,
    thread: ThreadId,
    limit: usize,
    after: Option<u64>,
    is_done: bool,
}

impl<'a> Chunks<'a> {
    pub(super) fn of(runtime: &'a dyn Runtime, backend: &'a Backend, tenant: &'a TenantId, thread: ThreadId) -> Self {
        Self { runtime, backend, tenant, thread, limit: FIRST_CHUNK_ENTRIES, after: None, is_done: false }
    }

    /// Reads the next chunk; `None` after the last one.
    pub(super) async fn next(&mut self) -> Result<Option<Dump>> {
        if self.is_done {
            return Ok(None);
        }
        let dump = || self.backend.maintenance.dump_thread(self.tenant, self.thread, self.after, self.limit);
        let chunk = retry(self.runtime, dump).await?;
        self.after = chunk.next;
        self.is_done = chunk.next.is_none();
        self.limit = next_limit(self.limit, entry_bytes(&chunk));
        Ok(Some(chunk))
    }
}

pub(super) fn is_message(entry: &DumpEntry) -> bool {
    matches!(entry, DumpEntry::Message { .. })
}

fn entry_bytes(chunk: &Dump) -> usize {
    let bytes = chunk.entries.iter().map(|entry| match entry {
        DumpEntry::Message { body, .. } => body.len(),
        DumpEntry::Tombstone { .. } | DumpEntry::Lost { .. } => 0,
    });
    bytes.sum()
}

/// Adapts the number of entries per chunk to their size. The number grows slowly, because the next entries may be larger.
fn next_limit(limit: usize, bytes: usize) -> usize {
    let fitting = limit.saturating_mul(CHUNK_BYTES) / bytes.max(1);
    fitting.clamp(1, limits::PAGE).min(limit * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_entries_adapts_to_their_size() {
        assert_eq!(next_limit(16, 0), 64);
        assert_eq!(next_limit(16, 16 * 400), 64);
        assert_eq!(next_limit(800, 800 * 400), 1_000);
        assert_eq!(next_limit(16, 16 * 4 * 1024 * 1024), 1);
        assert_eq!(next_limit(1, 4 * 1024 * 1024), 1);
        assert_eq!(next_limit(1, 100), 4);
    }
}
