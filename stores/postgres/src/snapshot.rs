//! A snapshot of the store: a connection that stays in one transaction with `REPEATABLE READ READ ONLY`.
//!
//! The connection is not from the pool, and bypasses the pooler if there is a direct URL; behind a pooler in
//! transaction mode it stays on the server connection on which `BEGIN` ran. Statements are not prepared, because such a
//! pooler does not support prepared statements. The cost is negligible, since each statement reads many rows.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use threadkeep_core::{
    ChunkSize, Consistency, Dump, DumpEntry, DumpedThread, Finding, Kind, ListedThread, OwnedRecord, Owner, Reason,
    RecordOwner, Result, Snapshot, SnapshotTotals, StoreError, TenantId, ThreadId, Timestamp, Unreadable, limits,
};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use crate::error::{self, PostgresError};
use crate::pool::{Caller, ENTER, GRACE, Parameter, Shared, enter_parameters};
use crate::row::{self, get, message_columns, signed, thread_columns, unsigned};
use crate::{dump, records};

/// Sets `statement_timeout` to the timeout of the store and disables the server's other timeouts. Some server versions
/// have only some of these settings.
const SET_TIMEOUTS: &str = "SELECT pg_catalog.set_config(s.name, \
     CASE s.name WHEN 'statement_timeout' THEN $1 ELSE '0' END, true) FROM pg_catalog.pg_settings s \
     WHERE s.name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')";

/// The maximum number of commits in a batch of threads, as a multiple of its maximum number of entries: agents make
/// several commits for an answer.
const COMMITS_PER_ENTRY: u64 = 4;

/// A connection in a transaction. The server ends the transaction when the connection is closed.
pub(crate) struct PostgresSnapshot {
    client: Client,
    /// The timeout of a statement.
    timeout: Duration,
    now: Timestamp,
    unreadable: Unreadable,
}

/// The snapshot's transaction has ended, so no further reads are possible.
#[derive(Debug)]
struct SnapshotEnded(Option<tokio_postgres::Error>);

impl fmt::Display for SnapshotEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the snapshot's transaction has ended; check the timeouts of the server (statement_timeout, \
             transaction_timeout) and of the pooler, if you use one (query_timeout, idle_transaction_timeout, \
             transaction_timeout)",
        )
    }
}

impl std::error::Error for SnapshotEnded {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.as_ref().map(|error| error as _)
    }
}

impl PostgresSnapshot {
    pub(crate) async fn open(shared: &Shared, now: Timestamp) -> error::Result<Self> {
        let (client, connection) = shared.connect_directly().await?;
        // The task ends when the client is dropped.
        tokio::spawn(connection);
        let statement_timeout = shared.options.statement_timeout;
        let snapshot = Self { client, timeout: statement_timeout + GRACE, now, unreadable: Unreadable::default() };
        let begin = snapshot.client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
        let result = tokio::time::timeout(snapshot.timeout, begin).await;
        result.map_err(|_| PostgresError::NoResponse)?.map_err(PostgresError::BeforeSend)?;
        snapshot.query(ENTER, &enter_parameters(&Caller::maintenance())).await?;
        let limit = format!("{}ms", statement_timeout.as_millis());
        snapshot.query(SET_TIMEOUTS, &[(&limit, Type::TEXT)]).await?;
        Ok(snapshot)
    }

    async fn query(&self, sql: &str, values: &[Parameter<'_>]) -> error::Result<Vec<Row>> {
        let result = tokio::time::timeout(self.timeout, self.client.query_typed(sql, values)).await;
        Ok(result.map_err(|_| PostgresError::NoResponse)??)
    }

    /// Like [`PostgresSnapshot::query`], but any failure ends the snapshot: PostgreSQL aborts the transaction.
    async fn read(&self, sql: &str, values: &[Parameter<'_>]) -> error::Result<Vec<Row>> {
        self.query(sql, values).await.map_err(|error| {
            let ended = match error {
                PostgresError::Server(error) => SnapshotEnded(Some(error)),
                PostgresError::NoResponse => SnapshotEnded(None),
                other => return other,
            };
            let source: Option<Box<dyn std::error::Error + Send + Sync>> = Some(Box::new(ended));
            StoreError::Unavailable { reason: Reason::Closed, maybe_applied: false, source }.into()
        })
    }

    async fn list(&self, after: Option<u64>, limit: usize) -> error::Result<Vec<ListedThread>> {
        let sql = concat!(
            "SELECT ",
            thread_columns!(),
            ", t.no, t.tenant FROM threadkeep.threads t WHERE t.no > $1 AND NOT t.restoring",
            " AND (t.expires_at IS NULL OR t.expires_at > $2) ORDER BY t.no LIMIT $3"
        );
        let mut after = after.unwrap_or(0);
        loop {
            let values: [Parameter<'_>; 3] = [
                (&signed(after), Type::INT8),
                (&self.now.as_micros(), Type::INT8),
                (&signed(limit as u64), Type::INT8),
            ];
            let rows = self.read(sql, &values).await?;
            let mut listed = Vec::with_capacity(rows.len());
            for row in &rows {
                after = unsigned(row, 12)?;
                match listed_thread(row) {
                    Ok(thread) => listed.push(thread),
                    Err(PostgresError::Store(error @ StoreError::Corrupt { .. })) => {
                        let detail = format!("thread row: {error}");
                        self.unreadable.add(get(row, 0).ok().map(ThreadId), detail);
                    }
                    Err(error) => return Err(error),
                }
            }
            // An empty page would mean that there are no more threads.
            if rows.is_empty() || !listed.is_empty() {
                return Ok(listed);
            }
        }
    }

    /// Dumps as many threads as fit into `size`, in two round trips: first the threads' rows, from which their sizes are estimated,
    /// then the rest.
    async fn dump(&self, numbers: &[u64], after: Option<u64>, size: ChunkSize) -> error::Result<Vec<Dump>> {
        let threads = self.fitting_threads(numbers, after, size).await?;
        let numbers: Vec<i64> = threads.iter().map(|(number, _)| *number).collect();
        // Records and commits are in a thread's first chunk; with `after`, the first thread continues a dump.
        let (after_seq, started) = (signed(after.unwrap_or(0)), &numbers[usize::from(after.is_some())..]);
        let entry_values: [Parameter<'_>; 4] = [
            (&numbers, Type::INT8_ARRAY),
            (&after_seq, Type::INT8),
            (&signed(size.entries as u64 + 1), Type::INT8),
            (&signed(size.bytes as u64), Type::INT8),
        ];
        let first_chunk_values: [Parameter<'_>; 1] = [(&started, Type::INT8_ARRAY)];
        let (entries, records, commits) = futures::join!(
            self.read(ENTRIES, &entry_values),
            self.read(RECORDS, &first_chunk_values),
            self.read(COMMITS, &first_chunk_values),
        );
        let mut dumps = group_entries(threads, &entries?, size)?;
        let indexes: HashMap<i64, usize> =
            numbers.iter().zip(0..dumps.len()).map(|(number, index)| (*number, index)).collect();
        for row in records? {
            if let Some(index) = indexes.get(&get_number(&row)?) {
                dump::add_record(&mut dumps[*index], &row)?;
            }
        }
        for row in commits? {
            if let Some(index) = indexes.get(&get_number(&row)?) {
                dump::add_commit(&mut dumps[*index], &row)?;
            }
        }
        let dumps = dumps.into_iter().enumerate().map(|(index, mut dump)| {
            let after = after.filter(|_| index == 0);
            let positions = dump.thread.as_ref().map(|thread| thread.positions);
            dump.thread = dump.thread.filter(|_| after.is_none());
            match positions {
                Some(positions) => dump.with_lost(after.unwrap_or(0), positions),
                None => dump,
            }
        });
        Ok(dumps.collect())
    }

    /// Selects the first threads whose entries and commits fit into `size`, but at least one.
    async fn fitting_threads(
        &self,
        numbers: &[u64],
        after: Option<u64>,
        size: ChunkSize,
    ) -> error::Result<Vec<(i64, DumpedThread)>> {
        let numbers: Vec<i64> = numbers.iter().map(|number| signed(*number)).collect();
        let rows = self.read(THREADS, &[(&numbers, Type::INT8_ARRAY)]).await?;
        let rows = rows.iter().map(|row| Ok((get_number(row)?, row))).collect::<error::Result<HashMap<i64, &Row>>>()?;
        let mut fitting = Vec::new();
        let (mut entries, mut commits) = (0_u64, 0_u64);
        for number in numbers {
            let row = rows.get(&number).ok_or(StoreError::NotFound(Kind::Thread))?;
            let thread = dump::dumped_thread(row)?;
            let after = after.filter(|_| fitting.is_empty()).unwrap_or(0);
            let positions = thread.positions;
            entries += positions.seq.saturating_sub(after.max(positions.first_seq.saturating_sub(1)));
            commits += positions.change;
            let is_full = entries > size.entries as u64 || commits > size.entries as u64 * COMMITS_PER_ENTRY;
            if fitting.is_empty() || !is_full {
                fitting.push((number, thread));
            }
            if is_full {
                break;
            }
        }
        Ok(fitting)
    }

    async fn records(&self, after: Option<&OwnedRecord>, limit: usize) -> error::Result<Vec<OwnedRecord>> {
        let sql = "SELECT d.namespace, d.key, d.version, d.expires_at, d.value, d.tag, d.tenant, d.owner \
                   FROM threadkeep.documents d WHERE (d.expires_at IS NULL OR d.expires_at > $1) \
                   AND (d.tenant, d.owner, d.namespace, d.key) > ($2, $3, $4, $5) \
                   ORDER BY d.tenant, d.owner, d.namespace, d.key LIMIT $6";
        let user = after.map_or("", |after| match &after.owner {
            RecordOwner::User(user) => user.as_str(),
            _ => "",
        });
        let values: [Parameter<'_>; 6] = [
            (&self.now.as_micros(), Type::INT8),
            (&after.map_or("", |after| after.tenant.as_str()), Type::TEXT),
            (&user, Type::TEXT),
            (&after.map_or_else(String::new, |after| after.record.namespace.to_string()), Type::TEXT),
            (&after.map_or("", |after| after.record.key.as_str()), Type::TEXT),
            (&signed(limit as u64), Type::INT8),
        ];
        let rows = self.read(sql, &values).await?;
        let mut owned = Vec::with_capacity(rows.len());
        for row in &rows {
            match owned_record(row) {
                Ok(record) => owned.push(record),
                Err(PostgresError::Store(error @ StoreError::Corrupt { .. })) => {
                    self.unreadable.add(None, format!("record: {error}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(owned)
    }
}

const THREADS: &str = "SELECT t.owner, t.key, t.body, t.seq, t.change, t.first_seq, t.tag, t.created_at, t.updated_at, \
     t.expires_at, t.no AS thread_no FROM threadkeep.threads t WHERE t.no = ANY($1) AND NOT t.restoring";

/// Selects the entries of several threads, in the order of the threads, until their total size exceeds the limit.
const ENTRIES: &str = concat!(
    "SELECT ",
    message_columns!(),
    ", m.checksum, m.thread_no FROM (SELECT e.*, w.ordinal, sum(octet_length(e.body)) OVER (ORDER BY w.ordinal, e.seq",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before",
    " FROM unnest($1) WITH ORDINALITY AS w (no, ordinal) JOIN threadkeep.threads t ON t.no = w.no",
    " CROSS JOIN LATERAL (SELECT m.* FROM threadkeep.messages m WHERE m.thread_no = w.no",
    " AND m.seq > greatest(t.first_seq - 1, CASE WHEN w.ordinal = 1 THEN $2 ELSE 0 END) ORDER BY m.seq LIMIT $3) e) m",
    " WHERE coalesce(m.bytes_before, 0) < $4 ORDER BY m.ordinal, m.seq LIMIT $3"
);

const RECORDS: &str = "SELECT d.namespace, d.key, d.version, d.expires_at, d.value, d.tag, d.thread_no \
     FROM threadkeep.thread_documents d WHERE d.thread_no = ANY($1) ORDER BY d.thread_no, d.namespace, d.key";

const COMMITS: &str = "SELECT c.change, c.at, c.key, c.fingerprint, c.first_seq, c.count, c.effects, c.thread_no \
     FROM threadkeep.commits c WHERE c.thread_no = ANY($1) ORDER BY c.thread_no, c.change";

fn owned_record(row: &Row) -> error::Result<OwnedRecord> {
    let owner = match row::owner(get(row, 7)?)? {
        Owner::Tenant => RecordOwner::Tenant,
        Owner::User(user) => RecordOwner::User(user),
    };
    Ok(OwnedRecord { tenant: TenantId::from_stored(get::<&str>(row, 6)?)?, owner, record: records::record(row)? })
}

fn listed_thread(row: &Row) -> error::Result<ListedThread> {
    let tenant = TenantId::from_stored(get::<&str>(row, 13)?)?;
    Ok(ListedThread { number: unsigned(row, 12)?, tenant, thread: row::thread(row, 0)? })
}

/// Returns the number of the thread that a row belongs to.
fn get_number(row: &Row) -> error::Result<i64> {
    Ok(row.try_get("thread_no").map_err(|_| StoreError::corrupt("row", "thread_no has an unexpected type"))?)
}

/// Groups entries by thread. If the entries are incomplete, drops the threads after the thread of the last entry; the
/// next call reads them.
fn group_entries(threads: Vec<(i64, DumpedThread)>, rows: &[Row], size: ChunkSize) -> error::Result<Vec<Dump>> {
    let indexes: HashMap<i64, usize> =
        threads.iter().enumerate().map(|(index, (number, _))| (*number, index)).collect();
    let dump = |thread| Dump { thread: Some(thread), ..Dump::default() };
    let mut dumps: Vec<Dump> = threads.into_iter().map(|(_, thread)| dump(thread)).collect();
    let (mut bytes, mut last) = (0, None);
    for row in rows.iter().take(size.entries) {
        let Some(index) = indexes.get(&get_number(row)?) else { continue };
        let entry = dump::entry(row)?;
        if let DumpEntry::Message { body, .. } = &entry {
            bytes += body.len();
        }
        last = Some((*index, entry.seq()));
        dumps[*index].entries.push(entry);
    }
    if let Some((index, seq)) = last.filter(|_| rows.len() > size.entries || bytes >= size.bytes) {
        dumps.truncate(index + 1);
        let end = dumps[index].thread.as_ref().map_or(0, |thread| thread.positions.seq);
        dumps[index].next = (seq < end).then_some(seq);
    }
    Ok(dumps)
}

#[async_trait]
impl Snapshot for PostgresSnapshot {
    fn consistency(&self) -> Consistency {
        Consistency::Store
    }

    /// Snapshots do not make the server's log grow.
    fn log_growth_bytes(&self) -> Option<u64> {
        None
    }

    fn unreadable(&self) -> Vec<Finding> {
        self.unreadable.findings()
    }

    async fn totals(&self) -> Result<SnapshotTotals> {
        let sql = "SELECT count(*), coalesce(sum(t.message_count), 0)::bigint FROM threadkeep.threads t \
                   WHERE NOT t.restoring AND (t.expires_at IS NULL OR t.expires_at > $1)";
        let rows = self.read(sql, &[(&self.now.as_micros(), Type::INT8)]).await?;
        let row = rows.first().ok_or(StoreError::corrupt("row", "no count"))?;
        Ok(SnapshotTotals { threads: unsigned(row, 0)?, messages: unsigned(row, 1)? })
    }

    async fn list_threads(&self, after: Option<u64>, limit: usize) -> Result<Vec<ListedThread>> {
        limits::check_page(limit)?;
        Ok(self.list(after, limit).await?)
    }

    async fn dump_threads(&self, numbers: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>> {
        limits::check_page(size.entries)?;
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.dump(numbers, after, size).await?)
    }

    async fn list_records(&self, after: Option<&OwnedRecord>, limit: usize) -> Result<Vec<OwnedRecord>> {
        limits::check_page(limit)?;
        Ok(self.records(after, limit).await?)
    }
}

impl fmt::Debug for PostgresSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSnapshot").finish_non_exhaustive()
    }
}
