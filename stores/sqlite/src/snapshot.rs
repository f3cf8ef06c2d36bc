//! A snapshot of the store: a connection that stays in one read transaction.
//!
//! In WAL mode readers and writers do not block each other. Writes during the snapshot stay in the write-ahead log, which
//! cannot be truncated before the snapshot ends.

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use threadkeep_core::{
    ChunkSize, Consistency, Dump, Finding, Kind, ListedThread, OwnedRecord, Owner, Reason, RecordOwner, Result,
    Snapshot, SnapshotTotals, StoreError, TenantId, ThreadId, Timestamp, Unreadable, limits,
};

use crate::connection::{Shared, lock, with_suffix};
use crate::row::{full_thread_columns, thread_columns};
use crate::{dump, error, owners, records, row, salvage, skip_damage};

/// A snapshot: a connection in a read transaction. SQLite ends the transaction when the connection is closed.
pub(crate) struct SqliteSnapshot {
    reader: Arc<Reader>,
    log: PathBuf,
    log_bytes_before: u64,
}

struct Reader {
    connection: Mutex<Connection>,
    now: Timestamp,
    unreadable: Unreadable,
}

impl SqliteSnapshot {
    pub(crate) fn open(shared: &Shared, now: Timestamp) -> error::Result<Self> {
        let connection = shared.connect_reader()?;
        let log_bytes_before = shared.log_bytes();
        connection.execute_batch("BEGIN")?;
        start_read(&connection)?;
        let reader = Arc::new(Reader { connection: Mutex::new(connection), now, unreadable: Unreadable::default() });
        Ok(Self { reader, log: with_suffix(&shared.path, "-wal"), log_bytes_before })
    }

    /// Runs a read on a blocking thread. Concurrent reads run one after the other.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, &Reader) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        let reader = Arc::clone(&self.reader);
        let work = move || Ok(work(&lock(&reader.connection), &reader)?);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let joined = runtime.spawn_blocking(work).await;
                joined.unwrap_or_else(|_| Err(StoreError::unavailable(Reason::Closed)))
            }
            Err(_) => work(),
        }
    }
}

impl fmt::Debug for SqliteSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteSnapshot").finish_non_exhaustive()
    }
}

/// Reads a row, because a SQLite transaction takes its snapshot at the first read.
pub(crate) fn start_read(connection: &Connection) -> error::Result<()> {
    Ok(connection.query_row("SELECT count(*) FROM marks", [], |_| Ok(()))?)
}

#[async_trait]
impl Snapshot for SqliteSnapshot {
    fn consistency(&self) -> Consistency {
        Consistency::Store
    }

    fn log_growth_bytes(&self) -> Option<u64> {
        let log_bytes = std::fs::metadata(&self.log).map_or(0, |metadata| metadata.len());
        Some(log_bytes.saturating_sub(self.log_bytes_before))
    }

    fn unreadable(&self) -> Vec<Finding> {
        self.reader.unreadable.findings()
    }

    async fn totals(&self) -> Result<SnapshotTotals> {
        let sql = "SELECT count(*), coalesce(sum(message_count), 0) FROM threads \
                   WHERE restoring = 0 AND (expires_at IS NULL OR expires_at > ?1)";
        self.read(move |connection, reader| {
            let count = || {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query([reader.now.as_micros()])?;
                let Some(row) = rows.next()? else { return Ok(SnapshotTotals::default()) };
                Ok(SnapshotTotals { threads: row::unsigned(row, 0)?, messages: row::unsigned(row, 1)? })
            };
            match count() {
                // Listing the threads reports the damage.
                Err(error) if error::SqliteError::is_damage(&error) => Ok(SnapshotTotals::default()),
                counted => counted,
            }
        })
        .await
    }

    async fn list_threads(&self, after: Option<u64>, limit: usize) -> Result<Vec<ListedThread>> {
        limits::check_page(limit)?;
        self.read(move |connection, reader| list_threads(connection, after, limit, reader)).await
    }

    async fn dump_threads(&self, numbers: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>> {
        limits::check_page(size.entries)?;
        let numbers = numbers.to_vec();
        self.read(move |connection, _| dump_threads(connection, &numbers, after, size)).await
    }

    async fn list_records(&self, after: Option<&OwnedRecord>, limit: usize) -> Result<Vec<OwnedRecord>> {
        limits::check_page(limit)?;
        let after = after.cloned();
        self.read(move |connection, reader| list_records(connection, after.as_ref(), limit, reader)).await
    }
}

/// Lists threads in the order of their numbers. `CROSS JOIN` makes SQLite read `threads` first.
fn list_threads(
    connection: &Connection,
    after: Option<u64>,
    limit: usize,
    reader: &Reader,
) -> error::Result<Vec<ListedThread>> {
    let sql = concat!(
        "SELECT ",
        full_thread_columns!(),
        ", t.no, tenant.tenant FROM threads t CROSS JOIN owners o ON o.no = t.owner_no",
        " CROSS JOIN owners tenant ON tenant.no = t.tenant_no",
        " WHERE t.no BETWEEN ?1 AND ?2 AND t.restoring = 0 ORDER BY t.no"
    );
    let (first, last) = (to_i64(after.unwrap_or(0)).saturating_add(1), salvage::last_thread_no(connection));
    let mut listed = Vec::new();
    let unread = skip_damage::read_with_key_column(connection, (sql, 11), first..=last, |row| {
        match read_listed_thread(row) {
            Ok(thread) if thread.thread.expires_at.is_some_and(|expires_at| expires_at <= reader.now) => {}
            Ok(thread) => listed.push(thread),
            Err(error) if error.is_damage() => {
                let id = row::uuid(row, 0).ok().map(ThreadId);
                reader.unreadable.add(id, format!("thread row: {}", error.detail()));
            }
            Err(error) => return Err(error),
        }
        Ok(if listed.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    for range in unread {
        for thread in salvage::thread_ids(connection, &range) {
            reader.unreadable.add(Some(thread), "the thread's row cannot be read");
        }
        let (first, last) = (range.start(), range.end());
        reader.unreadable.add(None, format!("rows {first} to {last} of the table threads cannot be read"));
    }
    Ok(listed)
}

fn read_listed_thread(row: &Row<'_>) -> error::Result<ListedThread> {
    let (number, tenant) = (row::unsigned(row, 11)?, TenantId::from_stored(row::text(row, 12)?)?);
    Ok(ListedThread { number, tenant, thread: row::thread(row)? })
}

fn dump_threads(
    connection: &Connection,
    numbers: &[u64],
    mut after: Option<u64>,
    mut size: ChunkSize,
) -> error::Result<Vec<Dump>> {
    let sql = concat!("SELECT ", thread_columns!(), " FROM threads WHERE no = ?1 AND restoring = 0");
    let mut statement = connection.prepare_cached(sql)?;
    let mut dumps = Vec::new();
    for thread_number in numbers {
        let mut rows = statement.query([to_i64(*thread_number)])?;
        let row = rows.next()?.map(row::thread_row).transpose()?.ok_or(StoreError::NotFound(Kind::Thread))?;
        let dump = dump::read_chunk(connection, &row, after.take(), size)?;
        size.entries = size.entries.saturating_sub(dump.entries.len());
        size.bytes = size.bytes.saturating_sub(dump_bytes(&dump));
        let is_full = dump.next.is_some() || size.entries == 0 || size.bytes == 0;
        dumps.push(dump);
        if is_full {
            break;
        }
    }
    Ok(dumps)
}

/// Returns the approximate size of a chunk in bytes.
fn dump_bytes(dump: &Dump) -> usize {
    /// The size of a commit, without its key.
    const COMMIT_BYTES: usize = 100;
    let entries: usize = dump.entries.iter().map(dump::text_bytes).sum();
    let records: usize = dump.records.iter().map(|record| record.value.as_str().len()).sum();
    entries + records + dump.commits.len() * COMMIT_BYTES
}

fn list_records(
    connection: &Connection,
    after: Option<&OwnedRecord>,
    limit: usize,
    reader: &Reader,
) -> error::Result<Vec<OwnedRecord>> {
    let sql = "SELECT d.namespace, d.key, d.version, d.expires_at, d.value, d.tag, o.tenant, o.user \
               FROM documents d CROSS JOIN owners o ON o.no = d.owner_no \
               WHERE d.kind = 1 AND (d.expires_at IS NULL OR d.expires_at > ?1) AND (d.owner_no, d.namespace, d.key) > \
               (coalesce((SELECT no FROM owners WHERE tenant = ?2 AND user = ?3), 0), ?4, ?5) \
               ORDER BY d.owner_no, d.namespace, d.key";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![
        reader.now.as_micros(),
        after.map(|after| after.tenant.as_str()),
        after.map(|after| match &after.owner {
            RecordOwner::User(user) => user.as_str(),
            _ => "",
        }),
        after.map(|after| after.record.namespace.to_string()).unwrap_or_default(),
        after.map(|after| after.record.key.as_str()).unwrap_or_default(),
    ])?;
    let mut owned = Vec::new();
    while owned.len() < limit {
        match rows.next() {
            Ok(None) => break,
            Ok(Some(row)) => match read_owned_record(row) {
                Ok(record) => owned.push(record),
                Err(error) if error.is_damage() => reader.unreadable.add(None, format!("record: {}", error.detail())),
                Err(error) => return Err(error),
            },
            Err(error) => {
                let error = error::SqliteError::from(error);
                if !error.is_damage() {
                    return Err(error);
                }
                reader.unreadable.add(None, format!("records of users and tenants: {}", error.detail()));
                break;
            }
        }
    }
    Ok(owned)
}

fn read_owned_record(row: &Row<'_>) -> error::Result<OwnedRecord> {
    let owner = match owners::parse_owner(row.get(7)?)? {
        Owner::Tenant => RecordOwner::Tenant,
        Owner::User(user) => RecordOwner::User(user),
    };
    Ok(OwnedRecord { tenant: TenantId::from_stored(row::text(row, 6)?)?, owner, record: records::read_record(row)? })
}

fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
