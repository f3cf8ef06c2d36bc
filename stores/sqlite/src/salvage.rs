//! Salvages the readable data of a damaged file.
//!
//! Tables are read in the order of row numbers, skipping unreadable pages. A thread whose row is lost is rebuilt from the
//! indexes, which also contain its id, owner, key and expiry; its title, metadata and state are lost. Data that cannot be found is
//! reported as lost, never guessed. Pages that are no longer reachable from a table are not searched.

mod rebuild;

use std::collections::{BTreeMap, HashMap};
use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;

use rusqlite::{Connection, OpenFlags, Row};
use threadkeep_core::{
    ChunkSize, Dump, DumpedThread, Finding, Owner, Record, RecordOwner, Result as StoreResult, Severity, StoreError,
    TenantId, ThreadId, VerifyReport,
};

use crate::error::{Result, SqliteError};
use crate::row::{self, ThreadRow, thread_columns};
use crate::{dump, owners, records, schema, skip_damage, verify};

/// The maximum size of a chunk.
const CHUNK: ChunkSize = ChunkSize { entries: 200, bytes: 2 * 1024 * 1024 };
/// The maximum number of losses that are listed. Further losses are only counted.
const MAX_LISTED_LOSSES: usize = 1_000;

/// Reads the readable data of a damaged file. Does not modify the file.
#[derive(Debug)]
pub struct Salvage {
    connection: Connection,
    owners: HashMap<i64, (TenantId, Owner)>,
    /// The threads that are still to be read.
    threads: std::vec::IntoIter<LocatedThread>,
    current: Option<ThreadInProgress>,
    /// The row number of the last user or tenant record that was returned.
    last_record: i64,
    lost: Vec<Finding>,
    lost_count: u64,
}

/// A salvaged item.
#[derive(Debug)]
pub enum SalvagedItem {
    /// A chunk of a thread, in the form of a dump.
    Chunk {
        /// The thread's tenant.
        tenant: TenantId,
        /// The thread's id.
        thread: ThreadId,
        /// The readable data of the chunk.
        dump: Box<Dump>,
    },
    /// A record of a user or a tenant.
    Record {
        /// The tenant.
        tenant: TenantId,
        /// The record's owner.
        owner: RecordOwner,
        /// The record.
        record: Record,
    },
}

/// A thread that a table or an index of the file refers to.
#[derive(Clone, Copy, Debug)]
struct LocatedThread {
    number: i64,
    tenant_no: i64,
    id: ThreadId,
    /// Its owner, if it was found in an index.
    owner_no: Option<i64>,
    /// Whether its row can be read.
    has_row: bool,
}

/// A thread of which at least one chunk was returned.
#[derive(Debug)]
struct ThreadInProgress {
    tenant: TenantId,
    id: ThreadId,
    row: ThreadRow,
    after: Option<u64>,
}

/// Reports the damage to a file that cannot be opened as a store. Does not modify the file.
///
/// # Errors
/// `Incompatible` if the file is not a store of this version, `Unavailable` if it cannot be read at all.
pub fn examine(path: &Path) -> StoreResult<VerifyReport> {
    let connection = match open(path) {
        Err(error) if error.is_damage() && !matches!(error, SqliteError::Store(StoreError::Incompatible(_))) => {
            let detail = format!("the file cannot be read: {}", error.detail());
            let findings = vec![Finding { severity: Severity::Damage, thread: None, detail }];
            return Ok(VerifyReport { findings, ..VerifyReport::default() });
        }
        opened => opened?,
    };
    Ok(verify::examine(&connection)?)
}

fn open(path: &Path) -> Result<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // With this setting, SQLite accepts truncated files and files whose schema table is partly unreadable.
    connection.pragma_update(None, "writable_schema", true)?;
    match schema::checked_version(&connection) {
        Ok(schema::VERSION) => check_tables(&connection).map(|()| connection),
        Ok(version) => {
            let reason =
                format!("the file has schema version {version}; only version {} can be salvaged", schema::VERSION);
            Err(StoreError::Incompatible(reason).into())
        }
        Err(error) => Err(error),
    }
}

/// Checks that the schema contains all tables, because the rows of a table cannot be found without the number of its root page.
fn check_tables(connection: &Connection) -> Result<()> {
    for table in ["owners", "threads", "messages", "commits", "documents"] {
        let statement = connection.prepare(&format!("SELECT 1 FROM {table} WHERE 0"));
        if statement.is_err() {
            return Err(StoreError::corrupt("database file", format!("the schema has no table {table}")).into());
        }
    }
    Ok(())
}

impl Salvage {
    /// Opens a file for reading and locates its owners, threads and records.
    ///
    /// # Errors
    /// `Incompatible` if the file is not a store of this version, `Corrupt` if its schema cannot be read, `Unavailable` if it
    /// cannot be opened.
    pub fn open(path: &Path) -> StoreResult<Self> {
        let connection = open(path)?;
        let mut salvage = Self {
            connection,
            owners: HashMap::new(),
            threads: Vec::new().into_iter(),
            current: None,
            last_record: 0,
            lost: Vec::new(),
            lost_count: 0,
        };
        salvage.find_owners()?;
        salvage.find_threads()?;
        salvage.find_records()?;
        Ok(salvage)
    }

    /// Returns the next readable item: the chunks of each thread in order, then the records of users and tenants.
    ///
    /// # Errors
    /// `Unavailable` if the file cannot be accessed. Damage is not an error.
    #[expect(clippy::should_implement_trait, reason = "an error ends the salvage, unlike an item of an iterator")]
    pub fn next(&mut self) -> StoreResult<Option<SalvagedItem>> {
        loop {
            if let Some(current) = self.current.take() {
                return Ok(Some(self.next_chunk(current)?));
            }
            let Some(located) = self.threads.next() else { return Ok(self.next_record()?) };
            if let Some(chunk) = self.first_chunk(located)? {
                return Ok(Some(chunk));
            }
        }
    }

    /// Returns the first losses, and the total number of losses so far.
    #[must_use]
    pub fn lost(&self) -> (&[Finding], u64) {
        (&self.lost, self.lost_count)
    }

    fn report_loss(&mut self, thread: Option<ThreadId>, detail: impl Into<String>) {
        self.lost_count += 1;
        if self.lost.len() < MAX_LISTED_LOSSES {
            self.lost.push(Finding { severity: Severity::Damage, thread, detail: detail.into() });
        }
    }

    /// Reads tenants and users from their table, and from its index if a page of the table is unreadable.
    fn find_owners(&mut self) -> Result<()> {
        let owners = &mut self.owners;
        let mut add = |row: &Row<'_>| {
            let parse = || -> Result<_> {
                Ok((row.get(0)?, TenantId::from_stored(row.get::<_, String>(1)?)?, owners::parse_owner(row.get(2)?)?))
            };
            match parse() {
                Ok((number, tenant, owner)) => drop(owners.insert(number, (tenant, owner))),
                Err(error) if error.is_damage() || matches!(error, SqliteError::Store(_)) => {}
                Err(error) => return Err(error),
            }
            Ok(ControlFlow::Continue(()))
        };
        let by_name = "SELECT no, tenant, user FROM owners ORDER BY tenant, user";
        let last = last_row_no(&self.connection, "SELECT max(no) FROM owners", by_name);
        let sql = "SELECT no, tenant, user FROM owners WHERE no BETWEEN ?1 AND ?2 ORDER BY no";
        let unread = skip_damage::read(&self.connection, sql, 1..=last, &mut add)?;
        if unread.is_empty() {
            return Ok(());
        }
        for_each_row(&self.connection, by_name, |row| add(row).map(drop))?;
        let count = self.owners.len();
        self.report_loss(None, format!("part of the table owners cannot be read; {count} owners were found"));
        Ok(())
    }

    /// Locates threads by their rows, and by the index of ids if a row is unreadable.
    fn find_threads(&mut self) -> Result<()> {
        let (mut threads, mut misread) = (BTreeMap::<i64, LocatedThread>::new(), Vec::new());
        let sql = "SELECT no, tenant_no, id FROM threads WHERE no BETWEEN ?1 AND ?2 AND restoring = 0 ORDER BY no";
        let mut unread = skip_damage::read(&self.connection, sql, 1..=last_thread_no(&self.connection), |row| {
            let number = row.get(0)?;
            match (row.get(1), row::uuid(row, 2)) {
                (Ok(tenant_no), Ok(id)) => {
                    threads.insert(
                        number,
                        LocatedThread { number, tenant_no, id: ThreadId(id), owner_no: None, has_row: true },
                    );
                }
                _ => misread.push(number..=number),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        unread.append(&mut misread);
        for range in unread {
            threads.extend(threads_in_indexes(&self.connection, &range)?);
            let (first, last) = (range.start(), range.end());
            self.report_loss(None, format!("rows {first} to {last} of the table threads cannot be read"));
        }
        self.threads = threads.into_values().collect::<Vec<_>>().into_iter();
        Ok(())
    }

    /// Collects the row numbers of each thread's records in a temporary table, so that the index of `documents` is not needed.
    fn find_records(&mut self) -> Result<()> {
        self.connection.execute_batch(
            "CREATE TEMP TABLE found_documents (no INTEGER PRIMARY KEY, owner_no INTEGER NOT NULL);
             CREATE INDEX temp.found_documents_by_owner ON found_documents (owner_no);
             BEGIN",
        )?;
        let sql = "SELECT no, kind, owner_no FROM documents WHERE no BETWEEN ?1 AND ?2 ORDER BY no";
        let last = last_record_no(&self.connection);
        let unread = skip_damage::read(&self.connection, sql, 1..=last, |row| {
            if row.get::<_, i64>(1).is_ok_and(|kind| kind == 0) {
                let mut statement =
                    self.connection.prepare_cached("INSERT INTO temp.found_documents VALUES (?1, ?2)")?;
                statement.execute([row.get::<_, i64>(0)?, row.get::<_, i64>(2)?])?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.connection.execute_batch("COMMIT")?;
        for range in unread {
            let (first, last) = (range.start(), range.end());
            self.report_loss(None, format!("rows {first} to {last} of the table documents cannot be read"));
        }
        Ok(())
    }

    /// Reads the first chunk of a thread; `None` if the thread is lost.
    fn first_chunk(&mut self, located: LocatedThread) -> Result<Option<SalvagedItem>> {
        let Some((tenant, _)) = self.owners.get(&located.tenant_no).cloned() else {
            self.report_loss(Some(located.id), "the thread is lost because its tenant cannot be read");
            return Ok(None);
        };
        let read = if located.has_row { self.read_row(located) } else { Err(None) };
        let (row, thread) = match read {
            Ok(read) => read,
            Err(error) => {
                let cause = error.map_or_else(String::new, |error: SqliteError| format!(": {}", error.detail()));
                let Some(rebuilt) = rebuild::thread(&self.connection, located, &self.owners)? else {
                    self.report_loss(Some(located.id), format!("the thread is lost{cause}"));
                    return Ok(None);
                };
                let detail = format!("the thread's row is lost, including title, metadata and state{cause}");
                self.report_loss(Some(located.id), detail);
                rebuilt
            }
        };
        let mut dump = Dump { thread: Some(thread), ..Dump::default() };
        records::salvage_thread_records(&self.connection, row.number, &mut dump)?;
        dump::read_commits(&self.connection, &row, &mut dump)?;
        self.read_entries(ThreadInProgress { tenant, id: located.id, row, after: None }, dump).map(Some)
    }

    fn read_row(&self, located: LocatedThread) -> Result<(ThreadRow, DumpedThread), Option<SqliteError>> {
        let read = || -> Result<_> {
            let sql = concat!("SELECT ", thread_columns!(), " FROM threads WHERE no = ?1");
            let mut statement = self.connection.prepare_cached(sql)?;
            let row = statement.query_row([located.number], |row| Ok(row::thread_row(row)))??;
            let owner = self.owners.get(&row.owner_no).map(|(_, owner)| owner.clone());
            let owner = owner.ok_or_else(|| StoreError::corrupt("owner", "has no name"))?;
            Ok((row, dump::read_thread(&self.connection, &row, owner)?))
        };
        match read() {
            Ok((row, _)) if row.positions.first_seq == 0 || row.positions.first_seq > row.positions.seq + 1 => {
                Err(None)
            }
            read => read.map_err(Some),
        }
    }

    fn next_chunk(&mut self, current: ThreadInProgress) -> Result<SalvagedItem> {
        self.read_entries(current, Dump::default())
    }

    fn read_entries(&mut self, current: ThreadInProgress, mut dump: Dump) -> Result<SalvagedItem> {
        let after = current.after.unwrap_or(0);
        dump::read_entries(&self.connection, &current.row, after, CHUNK, &mut dump)?;
        let dump = dump.with_lost(after, current.row.positions);
        for detail in dump.damage() {
            self.report_loss(Some(current.id), detail);
        }
        let (tenant, thread) = (current.tenant.clone(), current.id);
        self.current = dump.next.map(|next| ThreadInProgress { after: Some(next), ..current });
        Ok(SalvagedItem::Chunk { tenant, thread, dump: Box::new(dump) })
    }

    fn next_record(&mut self) -> Result<Option<SalvagedItem>> {
        let (mut item, mut lost) = (None, Vec::new());
        let last = last_record_no(&self.connection);
        let sql = records::ALL_BY_NUMBER;
        skip_damage::read(&self.connection, sql, self.last_record + 1..=last, |row| {
            self.last_record = row.get(0)?;
            match records::read_owner_record(row) {
                Ok(None) => {}
                Ok(Some((owner_no, record))) => match self.owners.get(&owner_no) {
                    Some((tenant, owner)) => {
                        let owner = match owner.clone() {
                            Owner::Tenant => RecordOwner::Tenant,
                            Owner::User(user) => RecordOwner::User(user),
                        };
                        item = Some(SalvagedItem::Record { tenant: tenant.clone(), owner, record });
                        return Ok(ControlFlow::Break(()));
                    }
                    None => lost.push("a record is lost because its owner cannot be read".to_owned()),
                },
                Err(error) if error.is_damage() => lost.push(format!("record: {}", error.detail())),
                Err(error) => return Err(error),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for detail in lost {
            self.report_loss(None, detail);
        }
        Ok(item)
    }
}

/// Calls `visit` with each row up to the first damage.
fn for_each_row(connection: &Connection, sql: &str, mut visit: impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
    let mut walk = || {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            visit(row)?;
        }
        Ok(())
    };
    match walk() {
        Err(error) if SqliteError::is_damage(&error) => Ok(()),
        result => result,
    }
}

/// Returns the number that a statement selects; 0 if it cannot be read.
fn read_number(connection: &Connection, sql: &str) -> i64 {
    let number = connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
    number.ok().flatten().unwrap_or(0)
}

/// Returns the highest number that a thread has or had.
pub(crate) fn last_thread_no(connection: &Connection) -> i64 {
    let sources = [
        "SELECT seq FROM sqlite_sequence WHERE name = 'threads'",
        "SELECT max(no) FROM threads",
        "SELECT max(position) >> 32 FROM messages",
        "SELECT max(position) >> 32 FROM commits",
    ];
    sources.iter().map(|sql| read_number(connection, sql)).max().unwrap_or(0)
}

/// Returns the highest row number of a table. If the end of the table cannot be read, returns the highest row number in the index that
/// the statement `by_index` scans.
fn last_row_no(connection: &Connection, max: &str, by_index: &str) -> i64 {
    let mut last = read_number(connection, max);
    if last == 0 {
        // Errors are ignored, because the rest of the index cannot be read in any other way.
        drop(for_each_row(connection, by_index, |row| {
            last = last.max(row.get(0)?);
            Ok(())
        }));
    }
    last
}

/// Returns the highest row number of a record.
pub(crate) fn last_record_no(connection: &Connection) -> i64 {
    let by_name = "SELECT no FROM documents ORDER BY kind, owner_no, namespace, key";
    last_row_no(connection, "SELECT max(no) FROM documents", by_name)
}

/// Returns the ids of the threads in a range of row numbers, according to the index of ids.
pub(crate) fn thread_ids(connection: &Connection, range: &RangeInclusive<i64>) -> Vec<ThreadId> {
    threads_in_indexes(connection, range).unwrap_or_default().into_values().map(|located| located.id).collect()
}

/// Locates the threads in a range of row numbers by the indexes of ids and of owners.
fn threads_in_indexes(connection: &Connection, range: &RangeInclusive<i64>) -> Result<BTreeMap<i64, LocatedThread>> {
    let mut threads = BTreeMap::new();
    for_each_row(connection, "SELECT no, tenant_no, id FROM threads ORDER BY tenant_no, id", |row| {
        let number: i64 = row.get(0)?;
        if range.contains(&number) {
            let (tenant_no, id) = (row.get(1)?, ThreadId(row::uuid(row, 2)?));
            threads.insert(number, LocatedThread { number, tenant_no, id, owner_no: None, has_row: false });
        }
        Ok(())
    })?;
    for_each_row(connection, "SELECT no, owner_no FROM threads INDEXED BY threads_by_owner", |row| {
        if let Some(thread) = threads.get_mut(&row.get(0)?) {
            thread.owner_no = row.get(1)?;
        }
        Ok(())
    })?;
    Ok(threads)
}
