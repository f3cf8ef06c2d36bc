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
    let (scheme, rest) = url.split_once(':').ok_or(OpenError::Url("there is no colon, as in memory:"))?;
    match scheme {
        #[cfg(feature = "memory")]
        "memory" if rest.is_empty() => Ok(threadkeep_store_memory::MemoryStore::open()),
        #[cfg(feature = "memory")]
        "memory" => Err(OpenError::Url("nothing may follow memory:")),
        _ => {
            let _ = rest;
            Err(OpenError::UnknownBackend { scheme: scheme.to_owned(), available: available().join(", ") })
        }
    }
}

fn available() -> Vec<&'static str> {
    vec![
        #[cfg(feature = "memory")]
        "memory:",
    ]
}
