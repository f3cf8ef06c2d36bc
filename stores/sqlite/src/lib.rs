//! The default store: conversations in a single SQLite file.
//!
//! Start with [`SqliteStore::open`]. `schema` describes the file's tables, `commit` how a thread changes, `writer` how
//! concurrent commits share one sync, and `index` how the search index follows the change log off the commit path.
//!
//! In the tables, a stamp is a sequence number that all commits and deletions of the file share. (The stamp of `watch` is a hash that
//! changes with every commit.) A mark is a row of the table `marks`: a named number, such as the last indexed stamp. Leftovers are
//! rows of deleted threads and trimmed messages that have not been removed yet; residue is bytes of removed rows that are still in
//! the file.
//!
//! Reads and uncontended commits run on the caller's thread: handing a short read to another thread costs several times as
//! much as the read itself. Long operations (catching up the index, sweeping, verifying) run on a blocking thread.
#![warn(missing_docs)]

mod background;
mod changes;
mod collections;
mod commit;
mod connection;
mod derived;
mod dump;
mod error;
mod index;
mod maintenance;
mod messages;
mod metadata;
mod owners;
mod private;
mod records;
mod residue;
mod row;
mod salvage;
mod schema;
mod scrub;
mod skip_damage;
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
pub use crate::salvage::{Salvage, SalvagedItem, examine};

/// Options for opening a store file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// When a commit counts as durable.
    pub durability: Durability,
    /// How long a write waits while another process has the file locked. Default: 5 seconds.
    pub busy_timeout: Duration,
    /// Open the file for reading only: every commit fails with `Unavailable`, and a file with an older schema cannot be opened.
    pub read_only: bool,
    /// Index new messages, and remove deleted and trimmed rows, in the background while no commits arrive. Default: true.
    pub background: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { durability: Durability::Full, busy_timeout: Duration::from_secs(5), read_only: false, background: true }
    }
}

/// When a commit counts as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When it is on disk: it survives a power failure (`synchronous=FULL`).
    Full,
    /// When it has been handed to the operating system: it survives a crash of the process, but a power failure may lose the
    /// last commits (`synchronous=NORMAL`).
    Process,
}

/// A store in a single SQLite file. Cheap to clone; dropping the last clone closes the file.
#[derive(Clone)]
pub struct SqliteStore {
    pub(crate) shared: Arc<Shared>,
}

impl SqliteStore {
    /// Opens a file, creates it and its parent directories if they are missing, and migrates a file with an older schema.
    ///
    /// # Errors
    /// `Incompatible` if it is not a Threadkeep file or was written by a later version, `Unavailable` if it cannot be opened,
    /// `Corrupt` if its pages are damaged.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self> {
        let shared = Shared::open(path.as_ref(), options)?;
        background::start(&shared);
        Ok(Self { shared })
    }

    /// Returns the store as a [`Backend`], whose interfaces are the same for all stores.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let this = Arc::new(self.clone());
        Backend { store: this.clone(), maintenance: this.clone(), search: this }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Lists the existing files of the store: the database, its write-ahead log and the log's index (`-shm`).
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let file = |suffix| connection::with_suffix(&self.shared.path, suffix);
        [file(""), file("-wal"), file("-shm")].into_iter().filter(|file| file.exists()).collect()
    }

    /// Returns the size of the write-ahead log in bytes.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.shared.log_bytes()
    }

    /// Copies the store's current state into a new file. Other callers may read and write during the copy; the write-ahead log cannot
    /// be truncated before the copy ends, and it grows with every write.
    ///
    /// `progress` is called with the number of remaining pages and the total number of pages.
    ///
    /// # Errors
    /// `Invalid` if the target exists, otherwise the errors of any read or write.
    pub fn backup_to(&self, target: &Path, progress: impl FnMut(u64, u64)) -> Result<()> {
        maintenance::backup_to(&self.shared, target, progress)
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.shared.path).finish_non_exhaustive()
    }
}
