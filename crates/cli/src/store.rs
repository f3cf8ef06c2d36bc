//! Opens the store that `--store` specifies.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use threadkeep::core::Reason;
use threadkeep::{Clock, Memory, StoreError};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use crate::erasures::LedgerLocation;
use crate::failure::Failure;

/// The time for which one attempt waits for another process. [`Memory`] makes eight attempts.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);
/// The schemes of Redis URLs.
pub(crate) const REDIS: &[&str] = &["redis", "rediss", "redis-cluster", "rediss-cluster"];
const FILE_NAME: &str = "threadkeep.db";

/// The location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// The URL of another backend.
    Other(String),
}

/// The purpose for which a command opens the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Read an existing store, which may be read-only.
    Read,
    /// Write to an existing store.
    Write,
    /// Write to a store, which is created if it does not exist.
    CreateOrWrite,
    /// Serve clients. The store is created if it does not exist, and its index is updated in the background.
    Serve,
}

/// An open store.
#[derive(Clone, Debug)]
pub(crate) struct OpenStore {
    pub(crate) memory: Memory,
    /// Set if the store is a SQLite file.
    pub(crate) sqlite: Option<SqliteStore>,
}

impl Location {
    /// Parses the value of `--store` or THREADKEEP_STORE, or returns the default location.
    pub(crate) fn find(given: Option<&str>) -> Result<Self> {
        match given {
            Some("") => Err(Failure::usage("--store is empty").hint("omit it to use the default store").into()),
            Some(text) => Ok(Self::parse(text)),
            None => default_file().map(Self::Sqlite),
        }
    }

    fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some(("sqlite", path)) => Self::Sqlite(PathBuf::from(path)),
            Some((scheme, _)) if is_scheme(scheme) => Self::Other(text.to_owned()),
            _ => Self::Sqlite(PathBuf::from(text)),
        }
    }

    /// Returns the file of a SQLite store.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Other(_) => None,
        }
    }

    /// Whether the store exists only in the memory of this process.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self, Self::Other(url) if url.starts_with("memory:"))
    }

    /// Returns text that identifies the store and contains no secrets: the file, or the server and the database.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Sqlite(path) => {
                // Canonicalises the folder if the file does not exist yet, so that creating the file does not change the
                // identity.
                let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                let folder = absolute.parent().and_then(|folder| folder.canonicalize().ok());
                let named = folder.zip(absolute.file_name()).map(|(folder, name)| folder.join(name));
                path.canonicalize().ok().or(named).unwrap_or(absolute).display().to_string()
            }
            Self::Other(url) => {
                let base = url.split(['?', '#']).next().unwrap_or_default();
                let (scheme, rest) = base.split_once("://").unwrap_or(("", base));
                let database = rest.rsplit_once('@').map_or(rest, |(_, database)| database);
                // Stores on one Redis server differ in the prefix of their keys.
                let query = url.split_once('?').map_or("", |(_, query)| query);
                let prefix = query.split('&').find(|pair| scheme.starts_with("redis") && pair.starts_with("prefix="));
                let prefix = prefix.map_or_else(String::new, |prefix| format!("?{prefix}"));
                format!("{}://{database}{prefix}", scheme.replace("postgresql", "postgres"))
            }
        }
    }

    /// Returns the URL of a Redis store, or `None` for other stores.
    pub(crate) fn redis_url(&self) -> Option<&str> {
        match self {
            Self::Other(url) if url.split_once("://").is_some_and(|(scheme, _)| REDIS.contains(&scheme)) => Some(url),
            _ => None,
        }
    }

    /// Whether both locations refer to the same store, as far as their text shows.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let is_same_file = match (self.file(), other.file()) {
            (Some(one), Some(other)) => {
                matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
            }
            _ => false,
        };
        is_same_file || self == other
    }

    /// Opens the store.
    pub(crate) async fn open(
        &self,
        purpose: Purpose,
        clock: Arc<dyn Clock>,
        ledger: &LedgerLocation,
    ) -> Result<OpenStore> {
        let (backend, sqlite) = match self {
            Self::Sqlite(path) => {
                let store = open_file(path, purpose)?;
                (store.backend(), Some(store))
            }
            Self::Other(url) => (threadkeep::open_backend(url).await?, None),
        };
        if let Some(durability) = backend.maintenance.durability().filter(|durability| durability.is_volatile) {
            tracing::warn!("{}", durability.description);
        }
        let mut memory = Memory::with_clock(backend, clock);
        if let Some(ledger) = ledger.ledger(self) {
            memory = memory.with_erasure_log(Arc::new(ledger));
        }
        Ok(OpenStore { memory, sqlite })
    }
}

/// Whether the text before a colon is a URL scheme. A single letter is a Windows drive.
fn is_scheme(text: &str) -> bool {
    text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-'))
}

fn open_file(path: &Path, purpose: Purpose) -> Result<SqliteStore> {
    let cannot_open = || format!("the store {} cannot be opened", path.display());
    if path.as_os_str().is_empty() {
        return Err(Failure::usage("missing file name after sqlite:").hint("use sqlite:FILE").into());
    }
    if path.is_dir() {
        let hint = format!("specify a file in it, such as {}", path.join(FILE_NAME).display());
        return Err(Failure::user_error(format!("{} is a folder", path.display())).hint(hint).into());
    }
    if !matches!(purpose, Purpose::CreateOrWrite | Purpose::Serve) && !path.exists() {
        let hint = "`threadkeep import FILE` creates a store; --store or THREADKEEP_STORE selects another one";
        return Err(Failure::user_error(format!("store {} not found", path.display())).hint(hint).into());
    }
    // Other commands end soon, and the next search updates the index.
    let background = purpose == Purpose::Serve;
    let options = SqliteOptions { busy_timeout: BUSY_TIMEOUT, background, ..SqliteOptions::default() };
    match SqliteStore::open(path, options.clone()) {
        Err(error) if purpose == Purpose::Read && is_unwritable(&error) => {
            let for_reading = SqliteOptions { read_only: true, ..options };
            SqliteStore::open(path, for_reading).map_err(|_| error).with_context(cannot_open)
        }
        opened => opened.with_context(cannot_open),
    }
}

fn is_unwritable(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { reason: Reason::ReadOnly | Reason::Io, .. })
}

/// Returns the platform's folder for this program's data, or `None` without a home folder.
pub(crate) fn data_folder() -> Option<PathBuf> {
    data_folder_from(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
}

fn default_file() -> Result<PathBuf> {
    let folder = data_folder().ok_or_else(|| {
        Failure::usage("no home folder for the default store").hint("specify a file with --store or THREADKEEP_STORE")
    })?;
    Ok(folder.join(FILE_NAME))
}

fn data_folder_from(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let home = |rest: &str| variable("HOME").map(|home| PathBuf::from(home).join(rest));
    let data = if cfg!(windows) {
        variable("APPDATA").map(PathBuf::from)
    } else if cfg!(target_os = "macos") {
        home("Library/Application Support")
    } else {
        // The XDG specification says to ignore relative paths.
        let given = variable("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        given.or_else(|| home(".local/share"))
    };
    data.map(|folder| folder.join("threadkeep"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_without_a_scheme_are_sqlite_files() {
        let file = |path: &str| Location::Sqlite(PathBuf::from(path));
        for (text, location) in [
            ("notes.db", file("notes.db")),
            ("./a:b.db", file("./a:b.db")),
            ("C:\\notes.db", file("C:\\notes.db")),
            ("sqlite:notes.db", file("notes.db")),
            ("sqlite:a:b.db", file("a:b.db")),
            ("sqlite:/data/notes.db", file("/data/notes.db")),
            ("memory:", Location::Other("memory:".to_owned())),
            ("postgres://host/db", Location::Other("postgres://host/db".to_owned())),
        ] {
            assert_eq!(Location::parse(text), location, "{text}");
        }
    }

    #[test]
    fn identities_are_stable_and_contain_no_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let file = Location::Sqlite(folder.path().join("notes.db"));
        let before = file.identity();
        std::fs::write(folder.path().join("notes.db"), "").unwrap();
        assert_eq!(file.identity(), before);
        let database = |url: &str| Location::Other(url.to_owned()).identity();
        assert_eq!(database("postgresql://ana:s3cret@host:5432/db?x=s3cret"), "postgres://host:5432/db");
        assert_eq!(database("postgres://host:5432/db"), "postgres://host:5432/db");
        assert_eq!(database("redis-cluster://u:s3cret@a,b?prefix=x&wait_replicas=1"), "redis-cluster://a,b?prefix=x");
        assert_eq!(database("redis://u:s3cret@a/1"), "redis://a/1");
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn default_store_is_in_the_data_folder() {
        let folder = |xdg: &str, home: &str| {
            data_folder_from(|name| match name {
                "XDG_DATA_HOME" if !xdg.is_empty() => Some(OsString::from(xdg)),
                "HOME" if !home.is_empty() => Some(OsString::from(home)),
                _ => None,
            })
        };
        assert_eq!(folder("/data", "/home/ana"), Some(PathBuf::from("/data/threadkeep")));
        assert_eq!(folder("relative", "/home/ana"), Some(PathBuf::from("/home/ana/.local/share/threadkeep")));
        assert_eq!(folder("", "/home/ana"), Some(PathBuf::from("/home/ana/.local/share/threadkeep")));
        assert_eq!(folder("", ""), None);
    }
}
