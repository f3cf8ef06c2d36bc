//! Snapshots of the whole state.

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use threadkeep_core::{
    ChunkSize, Consistency, Dump, DumpEntry, Finding, Kind, ListedThread, OwnedRecord, Result, Snapshot,
    SnapshotTotals, StoreError, TenantId, ThreadId, Timestamp, Unreadable, limits,
};

use crate::state::State;

/// A snapshot: a copy of the whole state.
pub(crate) struct MemorySnapshot {
    state: State,
    now: Timestamp,
    /// The threads by the stamp of their creation.
    threads: BTreeMap<u64, (TenantId, ThreadId)>,
    unreadable: Unreadable,
}

impl MemorySnapshot {
    pub(crate) fn new(state: State, now: Timestamp) -> Self {
        Self { threads: state.threads_by_creation(now), state, now, unreadable: Unreadable::default() }
    }
}

impl fmt::Debug for MemorySnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySnapshot").finish_non_exhaustive()
    }
}

#[async_trait]
impl Snapshot for MemorySnapshot {
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
        let threads = self.threads.values().filter_map(|(tenant, id)| self.state.get_thread(tenant, *id).ok());
        let messages = threads.map(|thread| thread.message_count).sum();
        Ok(SnapshotTotals { threads: self.threads.len() as u64, messages })
    }

    async fn list_threads(&self, after: Option<u64>, limit: usize) -> Result<Vec<ListedThread>> {
        limits::check_page(limit)?;
        let later = self.threads.range(after.map_or(0, |after| after.saturating_add(1))..);
        let listed = later.filter_map(|(number, (tenant, id))| match self.state.get_thread(tenant, *id) {
            Ok(thread) => Some(ListedThread { number: *number, tenant: tenant.clone(), thread }),
            Err(error) => {
                self.unreadable.add(Some(*id), error.to_string());
                None
            }
        });
        Ok(listed.take(limit).collect())
    }

    async fn dump_threads(&self, numbers: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>> {
        limits::check_page(size.entries)?;
        let (mut dumps, mut entries, mut bytes) = (Vec::new(), size.entries, size.bytes);
        for (index, number) in numbers.iter().enumerate() {
            let (tenant, id) = self.threads.get(number).ok_or(StoreError::NotFound(Kind::Thread))?;
            let after = after.filter(|_| index == 0);
            let mut dump = self.state.dump_thread(tenant, *id, after, entries)?;
            truncate_after(&mut dump, bytes);
            entries = entries.saturating_sub(dump.entries.len());
            bytes = bytes.saturating_sub(entry_bytes(&dump));
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
        Ok(self.state.list_owned_records(after, limit, self.now))
    }
}

fn entry_bytes(dump: &Dump) -> usize {
    dump.entries.iter().map(text_bytes).sum()
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
