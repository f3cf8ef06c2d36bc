#[cfg(feature = "sqlite")]
use threadkeep_core::Reason;
use threadkeep_core::{Backend, StoreError};
use threadkeep_memory::Memory;

/// An error that prevents opening a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text is not a store URL. The message does not contain the URL, which may contain a password.
    #[error("invalid store URL: {0}")]
    Url(&'static str),
    /// The backend does not exist, or this program was built without it.
    #[error("unknown backend `{scheme}:`; this program supports {available}")]
    UnknownBackend {
        /// The scheme: the text before the colon.
        scheme: String,
        /// The supported schemes, separated by commas.
        available: String,
    },
    /// The backend could not be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Opens the store at a URL and creates a [`Memory`] on top of it.
///
/// - `sqlite:PATH` is a file. If it does not exist, it is created with its folders. The path is used literally, without a
///   leading `//` and without percent-encoding: `sqlite:./conversations.db`, `sqlite:/var/lib/conversations.db`.
/// - `postgres://USER@HOST/DATABASE` (or `postgresql:`) is a PostgreSQL database; docs/stores.md lists the parameters.
/// - `redis://HOST:PORT` is a Redis server, `redis-cluster://HOST:PORT,HOST:PORT` a Redis Cluster; `rediss://` and
///   `rediss-cluster://` are the same over TLS. docs/stores.md lists the parameters.
/// - `memory:` stores everything in the memory of this process. The data is lost when the process ends.
///
/// # Errors
/// [`OpenError`]: the URL is invalid, its backend is not supported, or the backend cannot open the store.
pub async fn open(url: &str) -> Result<Memory, OpenError> {
    Ok(Memory::new(open_backend(url).await?))
}

/// Opens the store at a URL, without a [`Memory`].
///
/// # Errors
/// Like [`open`].
pub async fn open_backend(url: &str) -> Result<Backend, OpenError> {
    #[cfg_attr(
        not(any(feature = "memory", feature = "sqlite")),
        expect(unused_variables, reason = "only these two backends use the text after the colon")
    )]
    let (scheme, rest) =
        url.split_once(':').ok_or(OpenError::Url("a scheme is missing, such as sqlite: or postgres:"))?;
    match scheme {
        #[cfg(feature = "memory")]
        "memory" if rest.is_empty() => Ok(threadkeep_store_memory::MemoryStore::open()),
        #[cfg(feature = "memory")]
        "memory" => Err(OpenError::Url("unexpected text after memory:")),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => Ok(threadkeep_store_postgres::PostgresStore::open(url).await?.backend()),
        #[cfg(feature = "redis")]
        "redis" | "redis-cluster" | "rediss" | "rediss-cluster" => {
            Ok(threadkeep_store_redis::RedisStore::open(url).await?.backend())
        }
        #[cfg(feature = "sqlite")]
        "sqlite" => open_sqlite(rest).await,
        _ => Err(OpenError::UnknownBackend { scheme: scheme.to_owned(), available: available().join(", ") }),
    }
}

#[cfg(feature = "sqlite")]
async fn open_sqlite(path: &str) -> Result<Backend, OpenError> {
    use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};
    if path.is_empty() {
        return Err(OpenError::Url("a path is missing after sqlite:"));
    }
    // Opening may wait for another process or migrate an older file, so it runs on a blocking thread.
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
        #[cfg(feature = "redis")]
        "redis:",
        #[cfg(feature = "redis")]
        "redis-cluster:",
        #[cfg(feature = "memory")]
        "memory:",
    ]
}
