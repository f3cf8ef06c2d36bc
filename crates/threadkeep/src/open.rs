#[cfg(feature = "sqlite")]
use threadkeep_core::Reason;
use threadkeep_core::{Backend, StoreError};
use threadkeep_memory::Memory;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text is not a URL that names a backend. It is not repeated here, as URLs may hold passwords.
    #[error("not the URL of a store: {0}")]
    Url(&'static str),
    /// The URL names a backend that this program was built without, or that does not exist.
    #[error("no backend for {scheme}: in this program (it has {available})")]
    UnknownBackend {
        /// What stands before the colon.
        scheme: String,
        /// The backends that were built in.
        available: String,
    },
    /// The backend could not be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Opens the store that a URL names, and a conversation manager over it.
///
/// - `sqlite:PATH` is one file, made where it is missing together with its folders; the path is taken as it is, without
///   slashes before or escapes in it: `sqlite:./conversations.db`, `sqlite:/var/lib/conversations.db`.
/// - `postgres://USER@HOST/DATABASE` (or `postgresql:`) is a PostgreSQL database; docs/stores.md lists what may follow.
/// - `memory:` keeps everything in this process, and loses it with it.
///
/// # Errors
/// [`OpenError`], whose variants say what to change.
pub async fn open(url: &str) -> Result<Memory, OpenError> {
    Ok(Memory::new(open_backend(url).await?))
}

/// Opens the store that a URL names, without a manager over it.
///
/// # Errors
/// As [`open`].
pub async fn open_backend(url: &str) -> Result<Backend, OpenError> {
    #[cfg_attr(
        not(any(feature = "memory", feature = "sqlite")),
        expect(unused_variables, reason = "only these two look at what follows the colon")
    )]
    let (scheme, rest) = url.split_once(':').ok_or(OpenError::Url("there is no colon, as in memory:"))?;
    match scheme {
        #[cfg(feature = "memory")]
        "memory" if rest.is_empty() => Ok(threadkeep_store_memory::MemoryStore::open()),
        #[cfg(feature = "memory")]
        "memory" => Err(OpenError::Url("nothing may follow memory:")),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => Ok(threadkeep_store_postgres::PostgresStore::open(url).await?.backend()),
        #[cfg(feature = "sqlite")]
        "sqlite" => open_sqlite(rest).await,
        _ => Err(OpenError::UnknownBackend { scheme: scheme.to_owned(), available: available().join(", ") }),
    }
}

#[cfg(feature = "sqlite")]
async fn open_sqlite(path: &str) -> Result<Backend, OpenError> {
    use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};
    if path.is_empty() {
        return Err(OpenError::Url("a path must follow sqlite:"));
    }
    // Opening may wait for another process and migrate an older file: nothing for an async thread.
    let path = std::path::PathBuf::from(path);
    let opening = tokio::task::spawn_blocking(move || SqliteStore::open(path, SqliteOptions::default()));
    match opening.await {
        Ok(store) => Ok(store?.backend()),
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(StoreError::unavailable(Reason::Closed).into()),
        },
    }
}

fn available() -> Vec<&'static str> {
    vec![
        #[cfg(feature = "sqlite")]
        "sqlite:",
        #[cfg(feature = "postgres")]
        "postgres:",
        #[cfg(feature = "memory")]
        "memory:",
    ]
}
