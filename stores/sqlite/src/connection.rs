use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use threadkeep_core::{Reason, StoreError, WakeUp};
use tokio::sync::broadcast;

use crate::error::Result;
use crate::private;
use crate::watch::Watch;
use crate::writer::Queue;
use crate::{Durability, SqliteOptions, index, schema};

/// Hints a slow listener may fall behind by before it is told "anything".
const WAKE_UP_BACKLOG: usize = 1024;

/// Pages (4 KiB) of the write-ahead log after which they are copied to the database. Many commits rewrite the same pages, which
/// are copied once; up to 4,062 of them a reader finds through one table: <https://sqlite.org/walformat.html>, section 2.3.
const LOG_PAGES: i64 = 4_000;

/// What all clones of a store share.
pub(crate) struct Shared {
    pub(crate) path: PathBuf,
    pub(crate) options: SqliteOptions,
    /// The one connection that writes.
    pub(crate) writer: Mutex<Connection>,
    /// Writes that wait for it.
    pub(crate) queue: Arc<Queue>,
    readers: Mutex<Vec<Connection>>,
    /// Tells whether anything was written.
    pub(crate) watch: Watch,
    /// Numbers of tenants (user `""`) and users; they never change.
    pub(crate) owners: RwLock<HashMap<String, HashMap<String, i64>>>,
    /// About how many messages a user (or else a tenant) has, by number, and the stamp of the counting.
    pub(crate) counts: Mutex<HashMap<(bool, i64), (u64, u64)>>,
    pub(crate) wake_ups: broadcast::Sender<WakeUp>,
    /// Counts this process's commits, so that the keeper sees when nobody commits.
    pub(crate) activity: AtomicU64,
    /// Whether the write-ahead log may hold erased text that a sweep had to leave there.
    pub(crate) is_log_due: AtomicBool,
    /// Distinguishes this file from a copy that went another way.
    pub(crate) incarnation: i64,
}

impl Shared {
    pub(crate) fn open(path: &Path, options: SqliteOptions) -> Result<Arc<Self>, StoreError> {
        if !options.read_only
            && let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty())
        {
            private::make_folder(folder).map_err(|error| StoreError::Unavailable {
                reason: Reason::Io,
                maybe_applied: false,
                source: Some(Box::new(error)),
            })?;
        }
        if !options.read_only {
            private::make_file(path);
        }
        Ok(Arc::new(Self::open_checked(path, options)?))
    }

    fn open_checked(path: &Path, options: SqliteOptions) -> Result<Self> {
        let mut writer = connect(path, &options)?;
        // Before anything is written: a foreign file must be left as it is.
        let version = schema::checked_version(&writer)?;
        if options.read_only {
            if version != schema::VERSION {
                let reason = format!("the file has schema {version} and is opened read-only");
                return Err(StoreError::Incompatible(reason).into());
            }
        } else {
            prepare(&mut writer, &options)?;
        }
        let incarnation = incarnation(&writer, options.read_only)?;
        Ok(Self {
            path: path.to_owned(),
            writer: Mutex::new(writer),
            queue: Arc::default(),
            readers: Mutex::default(),
            watch: Watch::of(path),
            owners: RwLock::default(),
            counts: Mutex::default(),
            wake_ups: broadcast::Sender::new(WAKE_UP_BACKLOG),
            activity: AtomicU64::new(0),
            // The process that left it may have ended.
            is_log_due: AtomicBool::new(true),
            incarnation,
            options,
        })
    }

    /// A number that is another one after a commit of anybody, this process included; `None` where SQLite does not say.
    pub(crate) fn stamp(&self) -> Option<u64> {
        self.watch.stamp()
    }

    /// As [`Shared::stamp`], but the same over what this process wrote to threads alone.
    pub(crate) fn records_stamp(&self) -> Option<u64> {
        self.watch.records_stamp()
    }

    /// Runs a read on this thread, on a connection of its own.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = lock(&self.readers).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect_reader()?,
        };
        let result = work(&connection);
        lock(&self.readers).push(connection);
        result
    }

    /// Opens a connection for one use.
    pub(crate) fn connect(&self) -> Result<Connection> {
        connect(&self.path, &self.options)
    }

    /// Opens a connection that reads.
    pub(crate) fn connect_reader(&self) -> Result<Connection> {
        let connection = connect(&self.path, &self.options)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }

    /// How long the write-ahead log is; 0 where there is none.
    pub(crate) fn log_bytes(&self) -> u64 {
        std::fs::metadata(beside(&self.path, "-wal")).map_or(0, |found| found.len())
    }

    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        if self.options.read_only { Err(StoreError::unavailable(Reason::ReadOnly)) } else { Ok(()) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// SQLite's own file beside a database.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Locks, also after a panic elsewhere: a connection rolls back by itself what was not committed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(path: &Path, options: &SqliteOptions) -> Result<Connection> {
    let mode = if options.read_only {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
    };
    // One thread at a time holds a connection, so SQLite's own locks are not needed.
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(options.busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(128);
    // Otherwise SQLite compiles a statement anew whenever a value is bound that a partial index might care about.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

fn prepare(writer: &mut Connection, options: &SqliteOptions) -> Result<()> {
    switch_to_wal(writer, options.busy_timeout)?;
    set_durability(writer, options.durability)?;
    // Erased text is overwritten, not only unlinked.
    writer.pragma_update(None, "secure_delete", true)?;
    writer.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    schema::migrate(writer)?;
    index::check_analysis(writer)
}

/// Says when commits of the connection are synced, outside a transaction.
pub(crate) fn set_durability(writer: &Connection, durability: Durability) -> Result<()> {
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Process => "NORMAL",
    };
    // Not a statement that is kept: SQLite acts on this one while it compiles it.
    Ok(writer.pragma_update(None, "synchronous", synchronous)?)
}

/// Several processes that open a new file at once meet here, and SQLite does not wait by itself at this step.
fn switch_to_wal(writer: &Connection, patience: Duration) -> Result<()> {
    let began = Instant::now();
    loop {
        let switched = writer.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match switched.map_err(crate::error::SqliteError::from) {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(_) => return Err(StoreError::unavailable(Reason::ReadOnly).into()),
            Err(error) if error.is_busy() && began.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
}

fn incarnation(connection: &Connection, read_only: bool) -> Result<i64> {
    let find = || connection.query_row("SELECT value FROM marks WHERE name = 'incarnation'", [], |row| row.get(0));
    // Looked for first, as even an insert that does nothing waits for whoever writes.
    if !read_only && find().optional()?.is_none() {
        connection.execute(
            "INSERT INTO marks (name, value) VALUES ('incarnation', ?1) ON CONFLICT DO NOTHING",
            [fresh_incarnation()],
        )?;
    }
    Ok(find()?)
}

pub(crate) fn fresh_incarnation() -> i64 {
    // 53 bits: a number that every reader of a cursor can hold.
    (uuid::Uuid::new_v4().as_u64_pair().0 >> 11) as i64
}
