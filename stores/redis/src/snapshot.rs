//! Snapshots: copies of all threads and records in a temporary file.
//!
//! Redis has no snapshots that can be read while it is written to. A snapshot therefore reads the whole store when it is taken, thread
//! by thread. Each thread or record is consistent as of one instant, but that instant differs between them ([`Consistency::Thread`]). The
//! file has no name, so it disappears with the snapshot.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use threadkeep_core::{
    ChunkSize, Consistency, Dump, DumpEntry, Finding, Kind, ListedThread, OwnedRecord, Reason, RecordOwner, Result,
    Snapshot, SnapshotTotals, StoreError, TenantId, Thread, ThreadId, Timestamp, Unreadable, codec, limits,
};

use crate::row::has_expired;
use crate::shared::{Shared, until_written};

/// The maximum number of entries of a chunk in the file.
const CHUNK: usize = 200;

/// A snapshot in a file.
pub(crate) struct RedisSnapshot {
    file: Mutex<File>,
    threads: Vec<StoredThread>,
    records: Vec<OwnedRecord>,
    unreadable: Unreadable,
}

struct StoredThread {
    number: u64,
    tenant: TenantId,
    thread: Thread,
    /// The chunks in the file: the position before the first entry, the offset and the length.
    chunks: Vec<(u64, u64, usize)>,
}

impl Shared {
    pub(crate) async fn snapshot(&self, now: Timestamp) -> Result<RedisSnapshot> {
        self.connections.ensure_complete().await?;
        let file = tempfile::tempfile().map_err(io_error)?;
        let mut writer = Writer { file: BufWriter::new(file), offset: 0 };
        let (mut listed, mut records) = (Vec::new(), Vec::new());
        let unreadable = Unreadable::default();
        let mut after = None;
        loop {
            let tenants = self.list_tenants(after.as_ref(), limits::PAGE).await?;
            for tenant in &tenants {
                listed.extend(self.list_all_created(tenant).await?);
                self.add_records(tenant, now, &mut records).await?;
            }
            after = tenants.last().cloned();
            if tenants.len() < limits::PAGE {
                break;
            }
        }
        listed.sort();
        let mut threads = Vec::new();
        for (_, tenant, thread) in listed {
            let number = threads.len() as u64 + 1;
            match self.copy_thread(&mut writer, number, &tenant, thread, now).await {
                Ok(stored) => threads.extend(stored),
                Err(StoreError::Corrupt { what, detail }) => unreadable.add(Some(thread), format!("{what}: {detail}")),
                Err(StoreError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let file = writer.file.into_inner().map_err(|error| io_error(error.into_error()))?;
        Ok(RedisSnapshot { file: Mutex::new(file), threads, records, unreadable })
    }

    /// Lists the threads of a tenant with their creation numbers.
    async fn list_all_created(&self, tenant: &TenantId) -> Result<Vec<(u64, TenantId, ThreadId)>> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.list_created(tenant, after.take()).await?;
            let threads = page.iter().map(|(id, score)| (score.parse().unwrap_or(0), tenant.clone(), *id));
            all.extend(threads);
            match page.last() {
                Some((id, score)) if page.len() == limits::PAGE => after = Some((score.clone(), *id)),
                _ => return Ok(all),
            }
        }
    }

    async fn add_records(&self, tenant: &TenantId, now: Timestamp, records: &mut Vec<OwnedRecord>) -> Result<()> {
        for owner in self.all_owners(tenant).await? {
            let base = self.keys.owner(tenant, &owner);
            let record_owner = match &owner {
                threadkeep_core::Owner::Tenant => RecordOwner::Tenant,
                threadkeep_core::Owner::User(user) => RecordOwner::User(user.clone()),
            };
            let mut from = b"-".to_vec();
            loop {
                let (page, last) = self.read_records(&base, &from, b"+", limits::PAGE).await?;
                let live = page.into_iter().filter(|record| !has_expired(record.expires_at, now));
                records.extend(live.map(|record| OwnedRecord {
                    tenant: tenant.clone(),
                    owner: record_owner.clone(),
                    record,
                }));
                match last {
                    Some(last) => from = [b"(".as_slice(), &last].concat(),
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Copies a thread into the file. Starts over if the thread changes between chunks. Returns `None` if it has expired or was deleted.
    async fn copy_thread(
        &self,
        writer: &mut Writer,
        number: u64,
        tenant: &TenantId,
        thread: ThreadId,
        now: Timestamp,
    ) -> Result<Option<StoredThread>> {
        until_written!({
            let first = self.dump_thread(tenant, thread, None, CHUNK).await?;
            let Some(row) = first.thread.clone() else { return Ok(Some(None)) };
            if has_expired(row.expires_at, now) {
                return Ok(Some(None));
            }
            let attributes = codec::decode_thread(&row.body)?;
            let (mut chunks, mut messages) = (Vec::new(), 0);
            let (mut after, mut dump) = (0, first);
            loop {
                messages += dump.entries.iter().filter(|entry| matches!(entry, DumpEntry::Message { .. })).count();
                chunks.push(writer.add(after, &dump)?);
                let Some(next) = dump.next else { break };
                after = next;
                dump = self.dump_thread(tenant, thread, Some(next), CHUNK).await?;
            }
            // A thread in several chunks may have changed between them.
            let again = if chunks.len() > 1 { self.dump_thread(tenant, thread, None, 1).await?.thread } else { None };
            if again.is_some_and(|again| again != row) {
                return Ok(None);
            }
            let thread = Thread {
                id: thread,
                owner: row.owner,
                key: row.key,
                title: attributes.title,
                metadata: attributes.metadata,
                state: attributes.state,
                positions: row.positions,
                message_count: messages as u64,
                created_at: row.created_at,
                updated_at: row.updated_at,
                expires_at: row.expires_at,
            };
            Ok(Some(Some(StoredThread { number, tenant: tenant.clone(), thread, chunks })))
        })
    }
}

struct Writer {
    file: BufWriter<File>,
    offset: u64,
}

impl Writer {
    fn add(&mut self, after: u64, dump: &Dump) -> Result<(u64, u64, usize)> {
        let json = serde_json::to_vec(dump).map_err(|error| io_error(error.into()))?;
        self.file.write_all(&json).map_err(io_error)?;
        let offset = self.offset;
        self.offset += json.len() as u64;
        Ok((after, offset, json.len()))
    }
}

fn io_error(error: io::Error) -> StoreError {
    StoreError::Unavailable { reason: Reason::Io, maybe_applied: false, source: Some(Box::new(error)) }
}

impl RedisSnapshot {
    fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_chunk(&self, (_, offset, length): (u64, u64, usize)) -> Result<Dump> {
        let mut file = self.file();
        file.seek(SeekFrom::Start(offset)).map_err(io_error)?;
        let mut json = Vec::with_capacity(length);
        BufReader::new(&mut *file).take(length as u64).read_to_end(&mut json).map_err(io_error)?;
        serde_json::from_slice(&json).map_err(|error| StoreError::corrupt("snapshot", error.to_string()))
    }

    /// Reads a chunk of a thread, of at most the given size.
    fn read_thread(&self, stored: &StoredThread, after: Option<u64>, size: ChunkSize) -> Result<Dump> {
        let from = after.unwrap_or(0);
        let mut result = Dump::default();
        let mut bytes = 0;
        let start = stored.chunks.partition_point(|(before, ..)| *before <= from).saturating_sub(1);
        for (index, chunk) in stored.chunks.iter().enumerate().skip(start) {
            let dump = self.read_chunk(*chunk)?;
            if after.is_none() && index == 0 {
                result.thread = dump.thread;
                result.records = dump.records;
                result.commits = dump.commits;
            }
            for entry in dump.entries {
                if after.is_some() && entry.last_seq() <= from {
                    continue;
                }
                if result.entries.len() >= size.entries || bytes >= size.bytes && !result.entries.is_empty() {
                    result.next = result.entries.last().map(DumpEntry::last_seq);
                    return Ok(result);
                }
                bytes += text_bytes(&entry);
                result.entries.push(entry);
            }
        }
        Ok(result)
    }
}

fn text_bytes(entry: &DumpEntry) -> usize {
    match entry {
        DumpEntry::Message { body, .. } => body.len(),
        DumpEntry::Tombstone { .. } | DumpEntry::Lost { .. } => 0,
    }
}

impl fmt::Debug for RedisSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSnapshot").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Snapshot for RedisSnapshot {
    fn consistency(&self) -> Consistency {
        Consistency::Thread
    }

    fn log_growth_bytes(&self) -> Option<u64> {
        None
    }

    fn unreadable(&self) -> Vec<Finding> {
        self.unreadable.findings()
    }

    async fn totals(&self) -> Result<SnapshotTotals> {
        let messages = self.threads.iter().map(|stored| stored.thread.message_count).sum();
        Ok(SnapshotTotals { threads: self.threads.len() as u64, messages })
    }

    async fn list_threads(&self, after: Option<u64>, limit: usize) -> Result<Vec<ListedThread>> {
        limits::check_page(limit)?;
        let start = self.threads.partition_point(|stored| after.is_some_and(|after| stored.number <= after));
        let listed = self.threads[start..].iter().take(limit).map(|stored| ListedThread {
            number: stored.number,
            tenant: stored.tenant.clone(),
            thread: stored.thread.clone(),
        });
        Ok(listed.collect())
    }

    async fn dump_threads(&self, numbers: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>> {
        limits::check_page(size.entries)?;
        let (mut dumps, mut rest) = (Vec::new(), size);
        for (index, number) in numbers.iter().enumerate() {
            let found = self.threads.binary_search_by_key(number, |stored| stored.number);
            let stored = found.map(|index| &self.threads[index]).map_err(|_| StoreError::NotFound(Kind::Thread))?;
            let dump = self.read_thread(stored, after.filter(|_| index == 0), rest)?;
            rest.entries = rest.entries.saturating_sub(dump.entries.len());
            rest.bytes = rest.bytes.saturating_sub(dump.entries.iter().map(text_bytes).sum());
            let is_full = dump.next.is_some() || rest.entries == 0 || rest.bytes == 0;
            dumps.push(dump);
            if is_full {
                break;
            }
        }
        Ok(dumps)
    }

    async fn list_records(&self, after: Option<&OwnedRecord>, limit: usize) -> Result<Vec<OwnedRecord>> {
        limits::check_page(limit)?;
        let name = |owned: &OwnedRecord| {
            let OwnedRecord { tenant, owner, record } = owned;
            (tenant.clone(), owner.as_owner(), record.namespace.clone(), record.key.clone())
        };
        let start = match after {
            None => 0,
            Some(after) => self.records.iter().position(|owned| name(owned) == name(after)).map_or(0, |at| at + 1),
        };
        Ok(self.records[start..].iter().take(limit).cloned().collect())
    }
}
