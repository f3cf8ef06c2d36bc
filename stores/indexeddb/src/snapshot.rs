//! Snapshots. A browser ends a transaction that waits for anything else, so a snapshot is a copy of the rows in memory.

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use threadkeep_core::{
    ChunkSize, Consistency, Dump, DumpEntry, Finding, Kind, ListedThread, OwnedRecord, RecordOwner, Result, Snapshot,
    SnapshotTotals, StoreError, Timestamp, Unreadable, limits,
};

use crate::dump::Chunk;
use crate::idb::{Range, Transaction};
use crate::keys;
use crate::rows::{RecordRow, ThreadRow, has_expired};

/// How many rows are copied at once.
const BATCH: usize = 1024;

pub(crate) struct IndexedDbSnapshot {
    /// The threads by the stamp of their creation.
    threads: BTreeMap<u64, ThreadRow>,
    /// All rows by key.
    rows: BTreeMap<Vec<u8>, String>,
    now: Timestamp,
    unreadable: Unreadable,
}

impl IndexedDbSnapshot {
    /// Copies all rows in one transaction.
    pub(crate) async fn take(transaction: &Transaction, now: Timestamp) -> Result<Self> {
        let (mut rows, mut range) = (BTreeMap::new(), Range { start: Vec::new(), end: vec![u8::MAX] });
        loop {
            let read = futures::future::try_join(transaction.keys(&range, BATCH), transaction.range(&range, BATCH));
            let (keys, texts) = read.await?;
            let Some(last) = keys.last() else { break };
            range = range.after(last);
            rows.extend(keys.into_iter().zip(texts));
        }
        let all = keys::all_threads();
        let (mut threads, unreadable) = (BTreeMap::new(), Unreadable::default());
        for text in rows.range(all.start..all.end).map(|(_, text)| text) {
            match ThreadRow::parse(text) {
                Ok(row) if row.is_live(now) => {
                    threads.insert(row.created, row);
                }
                Ok(_) => {}
                Err(error) => unreadable.add(None, error.to_string()),
            }
        }
        Ok(Self { threads, rows, now, unreadable })
    }

    fn range(&self, range: Range, limit: usize) -> Vec<String> {
        self.rows.range(range.start..range.end).take(limit).map(|(_, text)| text.clone()).collect()
    }

    fn dump(&self, row: &ThreadRow, after: Option<u64>, limit: usize) -> Dump {
        let (tenant, id) = (&row.tenant, row.id);
        let mut chunk = Chunk::default();
        if after.is_none() {
            let owner = RecordOwner::Thread(id);
            chunk.records = self.range(keys::records(tenant, &owner, None, ""), usize::MAX);
            chunk.commits = self.range(keys::commits(tenant, id), usize::MAX);
        }
        let entries = keys::entries(tenant, id, after.map_or(0, |after| after.saturating_add(1)), u64::MAX);
        chunk.entries = self.range(entries, limit + 1);
        chunk.into_dump(row, after, limit)
    }
}

impl fmt::Debug for IndexedDbSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexedDbSnapshot").finish_non_exhaustive()
    }
}

#[async_trait]
impl Snapshot for IndexedDbSnapshot {
    fn consistency(&self) -> Consistency {
        Consistency::Store
    }

    fn log_growth_bytes(&self) -> Option<u64> {
        None
    }

    fn unreadable(&self) -> Vec<Finding> {
        self.unreadable.findings()
    }

    async fn totals(&self) -> Result<SnapshotTotals> {
        let readable = self.threads.values().filter(|row| row.to_thread().is_ok());
        let messages = readable.map(|row| row.messages).sum();
        Ok(SnapshotTotals { threads: self.threads.len() as u64, messages })
    }

    async fn list_threads(&self, after: Option<u64>, limit: usize) -> Result<Vec<ListedThread>> {
        limits::check_page(limit)?;
        let later = self.threads.range(after.map_or(0, |after| after.saturating_add(1))..);
        let listed = later.filter_map(|(number, row)| match row.to_thread() {
            Ok(thread) => Some(ListedThread { number: *number, tenant: row.tenant.clone(), thread }),
            Err(error) => {
                self.unreadable.add(Some(row.id), error.to_string());
                None
            }
        });
        Ok(listed.take(limit).collect())
    }

    async fn dump_threads(&self, numbers: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>> {
        limits::check_page(size.entries)?;
        let (mut dumps, mut entries, mut bytes) = (Vec::new(), size.entries, size.bytes);
        for (index, number) in numbers.iter().enumerate() {
            let row = self.threads.get(number).ok_or(StoreError::NotFound(Kind::Thread))?;
            let mut dump = self.dump(row, after.filter(|_| index == 0), entries);
            truncate_after(&mut dump, bytes);
            entries = entries.saturating_sub(dump.entries.len());
            bytes = bytes.saturating_sub(dump.entries.iter().map(text_bytes).sum());
            let is_full = dump.next.is_some() || entries == 0 || bytes == 0;
            dumps.push(dump);
            if is_full {
                break;
            }
        }
        Ok(dumps)
    }

    async fn list_records(&self, after: Option<&OwnedRecord>, limit: usize) -> Result<Vec<OwnedRecord>> {
        limits::check_page(limit)?;
        let mut range = keys::all_owned_records();
        if let Some(OwnedRecord { tenant, owner, record }) = after {
            range = range.after(&keys::record(tenant, owner, &record.namespace, &record.key));
        }
        let mut records = Vec::new();
        for (_, text) in self.rows.range(range.start..range.end) {
            match RecordRow::parse(text) {
                Ok(row) if has_expired(row.record.expires_at, self.now) => {}
                Ok(RecordRow { tenant, owner, record }) => records.push(OwnedRecord { tenant, owner, record }),
                Err(error) => self.unreadable.add(None, error.to_string()),
            }
            if records.len() == limit {
                break;
            }
        }
        Ok(records)
    }
}

fn text_bytes(entry: &DumpEntry) -> usize {
    match entry {
        DumpEntry::Message { body, .. } => body.len(),
        DumpEntry::Tombstone { .. } | DumpEntry::Lost { .. } => 0,
    }
}

/// Truncates a dump after the first entry with which it has at least the given number of bytes of text.
fn truncate_after(dump: &mut Dump, bytes: usize) {
    let mut sum = 0;
    let last_index = dump.entries.iter().position(|entry| {
        sum += text_bytes(entry);
        sum >= bytes
    });
    if let Some(last) = last_index.filter(|last| last + 1 < dump.entries.len()) {
        dump.next = Some(dump.entries[last].last_seq());
        dump.entries.truncate(last + 1);
    }
}
