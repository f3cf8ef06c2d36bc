//! Keeps conversations in one SQLite file: the store that one gets by default.
//!
//! Start with [`SqliteStore::open`]. `schema` says what stands in the file, `commit` how a thread changes, `writer` how
//! concurrent commits share one sync, `index` how search follows the log off the commit path.
//!
//! Reads and an uncontended commit run on the caller's own thread: handing a short read to another thread costs several
//! times the read. What may take long (catching up the index, sweeping, verifying) moves to a blocking thread.
#![warn(missing_docs)]

mod around;
mod changes;
mod collections;
mod commit;
mod connection;
mod derived;
mod dump;
mod error;
mod index;
mod keeper;
mod maintenance;
mod messages;
mod owners;
mod private;
mod records;
mod residue;
mod row;
mod salvage;
mod schema;
mod scrub;
mod snapshot;
mod store;
mod sweep;
mod threads;
mod verify;
mod view;
mod watch;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use threadkeep_core::{Backend, Result};

use crate::connection::Shared;
pub use crate::salvage::{Salvage, Salvaged, examine};

/// How a file is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// When a commit counts as done.
    pub durability: Durability,
    /// How long a write waits for another process that holds the file. Default 5 seconds.
    pub busy_timeout: Duration,
    /// Never write: every commit answers `Unavailable`, and nothing is migrated.
    pub read_only: bool,
    /// Index new messages and remove leftovers in the background while nobody commits. Default yes.
    pub background: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { durability: Durability::Full, busy_timeout: Duration::from_secs(5), read_only: false, background: true }
    }
}

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When it is on the disk: it survives a power cut (`synchronous=FULL`).
    Full,
    /// When the system has it: it survives a crash of the program, and a power cut may take the last commits
    /// (`synchronous=NORMAL`).
    Process,
}

/// A store in one SQLite file. Cheap to clone; the file is closed with the last clone.
#[derive(Clone)]
pub struct SqliteStore {
    pub(crate) shared: Arc<Shared>,
}

impl SqliteStore {
    /// Opens a file, making it and its folders where they are missing, and brings an older one up to date.
    ///
    /// # Errors
    /// `Incompatible` when it is not a Threadkeep file or was written by a later version, `Unavailable` when it cannot
    /// be opened, `Corrupt` when its pages are damaged.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self> {
        let shared = Shared::open(path.as_ref(), options)?;
        keeper::start(&shared);
        Ok(Self { shared })
    }

    /// All that this store offers, as everyone holds it.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let this = Arc::new(self.clone());
        Backend { store: this.clone(), maintenance: this.clone(), search: this }
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// The files that hold data: the database and SQLite's write-ahead log and its index beside it.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let beside = |suffix| connection::beside(&self.shared.path, suffix);
        [beside(""), beside("-wal"), beside("-shm")].into_iter().filter(|file| file.exists()).collect()
    }

    /// How many bytes the write-ahead log beside the file has.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.shared.log_bytes()
    }

    /// Copies the whole store as it is now into a new file while others read and write, however much they write: the
    /// write-ahead log is not emptied until then and grows meanwhile.
    ///
    /// `progress` hears how many pages remain and how many there are.
    ///
    /// # Errors
    /// `Invalid` when the target is there already, otherwise as for any read and write.
    pub fn backup_to(&self, target: &Path, progress: impl FnMut(u64, u64)) -> Result<()> {
        maintenance::backup_to(&self.shared, target, progress)
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.shared.path).finish_non_exhaustive()
    }
}
