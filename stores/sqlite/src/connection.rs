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
use crate::watch::CommitWatch;
use crate::writer::Queue;
use crate::{Durability, SqliteOptions, index, schema};

/// The number of wake-ups that are buffered for a slow subscriber. A subscriber that falls further behind receives
/// [`WakeUp::Unspecified`] instead.
const WAKE_UP_BACKLOG: usize = 1024;

/// The number of pages (4 KiB) in the write-ahead log that triggers a checkpoint. It is high, because commits often rewrite the same
/// pages and a checkpoint copies each page only once. It is below 4,062, because readers find up to that many pages with a single
/// hash table: <https://sqlite.org/walformat.html>, section 2.3.
const LOG_PAGES: i64 = 4_000;

/// State shared by all clones of a store.
pub(crate) struct Shared {
    pub(crate) path: PathBuf,
    pub(crate) options: SqliteOptions,
    /// The only connection that writes.
    pub(crate) writer: Mutex<Connection>,
    /// Writes waiting for that connection.
    pub(crate) queue: Arc<Queue>,
    /// Idle connections for reading.
    readers: Mutex<Vec<Connection>>,
    pub(crate) watch: CommitWatch,
    /// Cached numbers of owners, by tenant and user. The tenant itself is the user `""`. Numbers never change.
    pub(crate) owners: RwLock<HashMap<String, HashMap<String, i64>>>,
    /// Cached approximate message counts, with the stamp at the time of counting. The key is the number of a user or tenant, and whether
    /// it is a user.
    pub(crate) counts: Mutex<HashMap<(bool, i64), (u64, u64)>>,
    pub(crate) wake_ups: broadcast::Sender<WakeUp>,
    /// The number of writes by this process. The background thread uses it to detect idle periods.
    pub(crate) activity: AtomicU64,
    /// Whether the write-ahead log may still contain erased text because a sweep could not truncate it.
    pub(crate) is_wal_truncation_due: AtomicBool,
    /// A random number that distinguishes this file from copies of it, because their histories diverge.
    pub(crate) incarnation: i64,
}

impl Shared {
    pub(crate) fn open(path: &Path, options: SqliteOptions) -> Result<Arc<Self>, StoreError> {
        if !options.read_only
            && let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty())
        {
            private::create_folder(folder).map_err(|error| StoreError::Unavailable {
                reason: Reason::Io,
                maybe_applied: false,
                source: Some(Box::new(error)),
            })?;
        }
        if !options.read_only {
            private::create_file(path);
        }
        Ok(Arc::new(Self::open_checked(path, options)?))
    }

    fn open_checked(path: &Path, options: SqliteOptions) -> Result<Self> {
        let mut writer = connect(path, &options)?;
        // The version is checked before the first write, because a file of another application must not be modified.
        let version = schema::checked_version(&writer)?;
        if options.read_only {
            if version != schema::VERSION {
                let reason = format!(
                    "the file has schema version {version} and cannot be migrated to {} in read-only mode",
                    schema::VERSION
                );
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
            watch: CommitWatch::new(path),
            owners: RwLock::default(),
            counts: Mutex::default(),
            wake_ups: broadcast::Sender::new(WAKE_UP_BACKLOG),
            activity: AtomicU64::new(0),
            // A process that has ended may not have truncated the write-ahead log.
            is_wal_truncation_due: AtomicBool::new(true),
            incarnation,
            options,
        })
    }

    /// Returns a number that changes with every commit of any process; `None` if it cannot be determined now.
    pub(crate) fn stamp(&self) -> Option<u64> {
        self.watch.stamp()
    }

    /// Like [`Shared::stamp`], but does not change with this process's commits that write only threads.
    pub(crate) fn records_stamp(&self) -> Option<u64> {
        self.watch.records_stamp()
    }

    /// Runs a read on the current thread with a connection from the pool.
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

    /// Opens a connection outside the pool.
    pub(crate) fn connect(&self) -> Result<Connection> {
        connect(&self.path, &self.options)
    }

    /// Opens a connection that can only read.
    pub(crate) fn connect_reader(&self) -> Result<Connection> {
        let connection = connect(&self.path, &self.options)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }

    /// Returns the size of the write-ahead log; 0 if there is none.
    pub(crate) fn log_bytes(&self) -> u64 {
        std::fs::metadata(with_suffix(&self.path, "-wal")).map_or(0, |metadata| metadata.len())
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

/// Returns the path of a file that SQLite stores next to a database, such as `-wal`.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Locks a mutex, even if it is poisoned: after a panic, a connection rolls back its uncommitted transaction.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(path: &Path, options: &SqliteOptions) -> Result<Connection> {
    let mode = if options.read_only {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
    };
    // Only one thread at a time uses a connection, so SQLite's own mutexes are not needed.
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(options.busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(128);
    // Without this setting, SQLite recompiles a statement whenever a bound value could affect the choice of a partial index.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

fn prepare(writer: &mut Connection, options: &SqliteOptions) -> Result<()> {
    switch_to_wal(writer, options.busy_timeout)?;
    set_durability(writer, options.durability)?;
    // With this setting, SQLite overwrites erased text instead of only unlinking it.
    writer.pragma_update(None, "secure_delete", true)?;
    writer.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    schema::migrate(writer)?;
    index::check_analysis(writer)
}

/// Sets when commits of the connection are synced. Must be called outside a transaction.
pub(crate) fn set_durability(writer: &Connection, durability: Durability) -> Result<()> {
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Process => "NORMAL",
    };
    // The statement is not cached, because SQLite applies this pragma when it compiles the statement.
    Ok(writer.pragma_update(None, "synchronous", synchronous)?)
}

/// Switches the file to WAL mode. Retries while the file is busy, because several processes may open a new file simultaneously, and
/// SQLite does not apply the busy timeout here.
fn switch_to_wal(writer: &Connection, timeout: Duration) -> Result<()> {
    let started = Instant::now();
    loop {
        let switched = writer.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match switched.map_err(crate::error::SqliteError::from) {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(_) => return Err(StoreError::unavailable(Reason::ReadOnly).into()),
            Err(error) if error.is_busy() && started.elapsed() < timeout => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
}

fn incarnation(connection: &Connection, read_only: bool) -> Result<i64> {
    let find = || connection.query_row("SELECT value FROM marks WHERE name = 'incarnation'", [], |row| row.get(0));
    // The number is read first, because even an insert without effect would wait for the write lock.
    if !read_only && find().optional()?.is_none() {
        connection.execute(
            "INSERT INTO marks (name, value) VALUES ('incarnation', ?1) ON CONFLICT DO NOTHING",
            [new_incarnation()],
        )?;
    }
    Ok(find()?)
}

pub(crate) fn new_incarnation() -> i64 {
    // 53 bits, which a JSON number represents exactly.
    (uuid::Uuid::new_v4().as_u64_pair().0 >> 11) as i64
}
