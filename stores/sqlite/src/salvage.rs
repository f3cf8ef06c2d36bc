//! What can still be read of a damaged file.
//!
//! Rows are walked by their numbers, around pages that cannot be read. A thread whose own row is lost is put together from the
//! indexes, which hold its id, owner, key and expiry again; its title, metadata and state are lost with the row. Nothing is
//! guessed: what no page says is lost and named. Pages that nothing leads to any more are not searched.

mod rebuilt;

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
use crate::{around, dump, owners, records, schema, verify};

/// What a chunk holds at most.
const CHUNK: ChunkSize = ChunkSize { entries: 200, bytes: 2 * 1024 * 1024 };
/// Losses that are told one by one; more are only counted.
const TOLD: usize = 1_000;

/// Reads what can be read of a damaged file, which stays as it is.
#[derive(Debug)]
pub struct Salvage {
    connection: Connection,
    owners: HashMap<i64, (TenantId, Owner)>,
    threads: std::vec::IntoIter<Found>,
    /// The thread that is being read.
    current: Option<Current>,
    /// The last record of an owner that was given.
    last_record: i64,
    lost: Vec<Finding>,
    lost_count: u64,
}

/// Something that was brought out.
#[derive(Debug)]
pub enum Salvaged {
    /// A chunk of a thread, as a dump gives it.
    Chunk {
        /// The thread's tenant.
        tenant: TenantId,
        /// The thread's id.
        thread: ThreadId,
        /// What could be read.
        dump: Box<Dump>,
    },
    /// A record of a user or a tenant.
    Record {
        /// The tenant.
        tenant: TenantId,
        /// Whose.
        owner: RecordOwner,
        /// The record.
        record: Record,
    },
}

/// A thread that the file knows of.
#[derive(Clone, Copy, Debug)]
struct Found {
    no: i64,
    tenant_no: i64,
    id: ThreadId,
    /// Its owner, where an index says so.
    owner_no: Option<i64>,
    /// Whether its own row can be read.
    has_row: bool,
}

/// A thread on its way out.
#[derive(Debug)]
struct Current {
    tenant: TenantId,
    id: ThreadId,
    row: ThreadRow,
    after: Option<u64>,
}

/// Says how far the damage of a file goes that cannot be opened as a store. Changes nothing.
///
/// # Errors
/// `Incompatible` for a file that is no store of this version, `Unavailable` when it cannot be read at all.
pub fn examine(path: &Path) -> StoreResult<VerifyReport> {
    let connection = match open(path) {
        Err(error) if error.is_damage() && !matches!(error, SqliteError::Store(StoreError::Incompatible(_))) => {
            let detail = format!("nothing of the file can be read: {}", error.told());
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
    // Otherwise SQLite refuses a file that is shorter than it says, and one whose list of tables cannot be read to its end.
    connection.pragma_update(None, "writable_schema", true)?;
    match schema::checked_version(&connection) {
        Ok(schema::VERSION) => check_tables(&connection).map(|()| connection),
        Ok(version) => {
            let reason = format!("the file has schema {version}, and only {} can be salvaged", schema::VERSION);
            Err(StoreError::Incompatible(reason).into())
        }
        Err(error) => Err(error),
    }
}

/// Without the place of a table nothing leads to its rows.
fn check_tables(connection: &Connection) -> Result<()> {
    for table in ["owners", "threads", "messages", "commits", "documents"] {
        let found = connection.prepare(&format!("SELECT 1 FROM {table} WHERE 0"));
        if found.is_err() {
            return Err(
                StoreError::corrupt("database file", format!("it does not say where the table {table} is")).into()
            );
        }
    }
    Ok(())
}

impl Salvage {
    /// Opens a file for reading and looks at which threads it knows of.
    ///
    /// # Errors
    /// `Incompatible` for a file that is no store of this version, `Corrupt` when it does not say where its tables are,
    /// `Unavailable` when it cannot be opened.
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

    /// Gives the next thing that can be read: the chunks of each thread in order, then the records of users and tenants.
    ///
    /// # Errors
    /// `Unavailable` when the disk or another process stands in the way; damage is no error.
    #[expect(clippy::should_implement_trait, reason = "an error here ends it, which an iterator's items do not say")]
    pub fn next(&mut self) -> StoreResult<Option<Salvaged>> {
        loop {
            if let Some(current) = self.current.take() {
                return Ok(Some(self.next_chunk(current)?));
            }
            let Some(found) = self.threads.next() else { return Ok(self.next_record()?) };
            if let Some(chunk) = self.first_chunk(found)? {
                return Ok(Some(chunk));
            }
        }
    }

    /// What is lost so far: the first of it, and how much there is.
    #[must_use]
    pub fn lost(&self) -> (&[Finding], u64) {
        (&self.lost, self.lost_count)
    }

    fn lose(&mut self, thread: Option<ThreadId>, detail: impl Into<String>) {
        self.lost_count += 1;
        if self.lost.len() < TOLD {
            self.lost.push(Finding { severity: Severity::Damage, thread, detail: detail.into() });
        }
    }

    /// Tenants and users: from their table, and from its index where a page of the table is lost.
    fn find_owners(&mut self) -> Result<()> {
        let owners = &mut self.owners;
        let mut add = |row: &Row<'_>| {
            let names = || -> Result<_> {
                Ok((row.get(0)?, TenantId::from_stored(row.get::<_, String>(1)?)?, owners::owner(row.get(2)?)?))
            };
            match names() {
                Ok((no, tenant, owner)) => drop(owners.insert(no, (tenant, owner))),
                Err(error) if error.is_damage() || matches!(error, SqliteError::Store(_)) => {}
                Err(error) => return Err(error),
            }
            Ok(ControlFlow::Continue(()))
        };
        let by_name = "SELECT no, tenant, user FROM owners ORDER BY tenant, user";
        let last = last_of(&self.connection, "SELECT max(no) FROM owners", by_name);
        let sql = "SELECT no, tenant, user FROM owners WHERE no BETWEEN ?1 AND ?2 ORDER BY no";
        let unread = around::read(&self.connection, sql, 1..=last, &mut add)?;
        if unread.is_empty() {
            return Ok(());
        }
        each(&self.connection, by_name, |row| add(row).map(drop))?;
        let known = self.owners.len();
        self.lose(None, format!("a part of the table owners cannot be read; {known} owners are known"));
        Ok(())
    }

    /// Threads: by their rows, and by the index of their ids where a row is lost.
    fn find_threads(&mut self) -> Result<()> {
        let (mut found, mut misread) = (BTreeMap::<i64, Found>::new(), Vec::new());
        let sql = "SELECT no, tenant_no, id FROM threads WHERE no BETWEEN ?1 AND ?2 AND restoring = 0 ORDER BY no";
        let mut unread = around::read(&self.connection, sql, 1..=last_thread_no(&self.connection), |row| {
            let no = row.get(0)?;
            match (row.get(1), row::uuid(row, 2)) {
                (Ok(tenant_no), Ok(id)) => {
                    found.insert(no, Found { no, tenant_no, id: ThreadId(id), owner_no: None, has_row: true });
                }
                _ => misread.push(no..=no),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        unread.append(&mut misread);
        for range in unread {
            found.extend(by_id(&self.connection, &range)?);
            let (first, last) = (range.start(), range.end());
            self.lose(None, format!("rows {first} to {last} of the table threads cannot be read"));
        }
        self.threads = found.into_values().collect::<Vec<_>>().into_iter();
        Ok(())
    }

    /// Notes whose each record is, so that the table's index is not needed.
    fn find_records(&mut self) -> Result<()> {
        self.connection.execute_batch(
            "CREATE TEMP TABLE found_documents (no INTEGER PRIMARY KEY, owner_no INTEGER NOT NULL);
             CREATE INDEX temp.found_documents_by_owner ON found_documents (owner_no);
             BEGIN",
        )?;
        let sql = "SELECT no, kind, owner_no FROM documents WHERE no BETWEEN ?1 AND ?2 ORDER BY no";
        let last = last_record_no(&self.connection);
        let unread = around::read(&self.connection, sql, 1..=last, |row| {
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
            self.lose(None, format!("rows {first} to {last} of the table documents cannot be read"));
        }
        Ok(())
    }

    /// The first chunk of a thread; `None` when nothing of it can be told.
    fn first_chunk(&mut self, found: Found) -> Result<Option<Salvaged>> {
        let Some((tenant, _)) = self.owners.get(&found.tenant_no).cloned() else {
            self.lose(Some(found.id), "the thread's tenant cannot be read: all of it is lost");
            return Ok(None);
        };
        let read = if found.has_row { self.read_row(found) } else { Err(None) };
        let (row, thread) = match read {
            Ok(read) => read,
            Err(error) => {
                let why = error.map_or_else(String::new, |error: SqliteError| format!(": {}", error.told()));
                let Some(rebuilt) = rebuilt::thread(&self.connection, found, &self.owners)? else {
                    self.lose(Some(found.id), format!("the thread cannot be read: all of it is lost{why}"));
                    return Ok(None);
                };
                let detail = format!("the thread's own row is lost: title, metadata and state with it{why}");
                self.lose(Some(found.id), detail);
                rebuilt
            }
        };
        let mut dump = Dump { thread: Some(thread), ..Dump::default() };
        records::found_of_thread(&self.connection, row.no, &mut dump)?;
        dump::read_commits(&self.connection, &row, &mut dump)?;
        self.entries(Current { tenant, id: found.id, row, after: None }, dump).map(Some)
    }

    fn read_row(&self, found: Found) -> Result<(ThreadRow, DumpedThread), Option<SqliteError>> {
        let read = || -> Result<_> {
            let sql = concat!("SELECT ", thread_columns!(), " FROM threads WHERE no = ?1");
            let mut statement = self.connection.prepare_cached(sql)?;
            let row = statement.query_row([found.no], |row| Ok(row::thread_row(row)))??;
            let owner = self.owners.get(&row.owner_no).map(|(_, owner)| owner.clone());
            let owner = owner.ok_or_else(|| StoreError::corrupt("owner", "of no name"))?;
            Ok((row, dump::read_thread(&self.connection, &row, owner)?))
        };
        match read() {
            Ok((row, _)) if row.positions.first_seq == 0 || row.positions.first_seq > row.positions.seq + 1 => {
                Err(None)
            }
            read => read.map_err(Some),
        }
    }

    fn next_chunk(&mut self, current: Current) -> Result<Salvaged> {
        self.entries(current, Dump::default())
    }

    fn entries(&mut self, current: Current, mut dump: Dump) -> Result<Salvaged> {
        let after = current.after.unwrap_or(0);
        dump::read_entries(&self.connection, &current.row, after, CHUNK, &mut dump)?;
        let dump = dump.with_lost(after, current.row.positions);
        for detail in dump.damage() {
            self.lose(Some(current.id), detail);
        }
        let (tenant, thread) = (current.tenant.clone(), current.id);
        self.current = dump.next.map(|next| Current { after: Some(next), ..current });
        Ok(Salvaged::Chunk { tenant, thread, dump: Box::new(dump) })
    }

    fn next_record(&mut self) -> Result<Option<Salvaged>> {
        let (mut given, mut lost) = (None, Vec::new());
        let last = last_record_no(&self.connection);
        let sql = records::ALL_BY_NUMBER;
        around::read(&self.connection, sql, self.last_record + 1..=last, |row| {
            self.last_record = row.get(0)?;
            match records::of_owner(row) {
                Ok(None) => {}
                Ok(Some((owner_no, record))) => match self.owners.get(&owner_no) {
                    Some((tenant, owner)) => {
                        let owner = match owner.clone() {
                            Owner::Tenant => RecordOwner::Tenant,
                            Owner::User(user) => RecordOwner::User(user),
                        };
                        given = Some(Salvaged::Record { tenant: tenant.clone(), owner, record });
                        return Ok(ControlFlow::Break(()));
                    }
                    None => lost.push("a document's owner cannot be read".to_owned()),
                },
                Err(error) if error.is_damage() => lost.push(format!("a document: {}", error.told())),
                Err(error) => return Err(error),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for detail in lost {
            self.lose(None, detail);
        }
        Ok(given)
    }
}

/// Shows rows until there are no more, or one cannot be read.
fn each(connection: &Connection, sql: &str, mut show: impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
    let mut walk = || {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            show(row)?;
        }
        Ok(())
    };
    match walk() {
        Err(error) if SqliteError::is_damage(&error) => Ok(()),
        result => result,
    }
}

/// The highest number that a statement gives, 0 where it cannot be read.
fn last_no(connection: &Connection, sql: &str) -> i64 {
    let no = connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
    no.ok().flatten().unwrap_or(0)
}

/// The highest number that a thread has or had.
pub(crate) fn last_thread_no(connection: &Connection) -> i64 {
    let sources = [
        "SELECT seq FROM sqlite_sequence WHERE name = 'threads'",
        "SELECT max(no) FROM threads",
        "SELECT max(position) >> 32 FROM messages",
        "SELECT max(position) >> 32 FROM commits",
    ];
    sources.iter().map(|sql| last_no(connection, sql)).max().unwrap_or(0)
}

/// The highest number in a table; where its end cannot be read, the highest that an index knows, walked by `by_index`.
fn last_of(connection: &Connection, max: &str, by_index: &str) -> i64 {
    let mut last = last_no(connection, max);
    if last == 0 {
        // What of the index cannot be read cannot be told.
        drop(each(connection, by_index, |row| {
            last = last.max(row.get(0)?);
            Ok(())
        }));
    }
    last
}

/// The highest number that a record has.
pub(crate) fn last_record_no(connection: &Connection) -> i64 {
    let by_name = "SELECT no FROM documents ORDER BY kind, owner_no, namespace, key";
    last_of(connection, "SELECT max(no) FROM documents", by_name)
}

/// The ids of threads whose rows lie in a range of numbers, by the index of ids.
pub(crate) fn thread_ids(connection: &Connection, range: &RangeInclusive<i64>) -> Vec<ThreadId> {
    by_id(connection, range).unwrap_or_default().into_values().map(|found| found.id).collect()
}

/// Threads by the indexes of ids and of owners, which hold both and the number.
fn by_id(connection: &Connection, range: &RangeInclusive<i64>) -> Result<BTreeMap<i64, Found>> {
    let mut found = BTreeMap::new();
    each(connection, "SELECT no, tenant_no, id FROM threads ORDER BY tenant_no, id", |row| {
        let no: i64 = row.get(0)?;
        if range.contains(&no) {
            let (tenant_no, id) = (row.get(1)?, ThreadId(row::uuid(row, 2)?));
            found.insert(no, Found { no, tenant_no, id, owner_no: None, has_row: false });
        }
        Ok(())
    })?;
    each(connection, "SELECT no, owner_no FROM threads INDEXED BY threads_by_owner", |row| {
        if let Some(found) = found.get_mut(&row.get(0)?) {
            found.owner_no = row.get(1)?;
        }
        Ok(())
    })?;
    Ok(found)
}
