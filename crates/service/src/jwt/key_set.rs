//! The published keys of an issuer (JWKS). They are read from a file or a URL and cached. They are read again when they are old
//! or when a token refers to an unknown key.
//!
//! The frequency of reads is limited, so that clients cannot make the server flood an issuer with requests.

use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use reqwest::Url;
use serde_json::Value;
use tokio::sync::Mutex;

use super::IssuerError;
use super::signature::PublicKey;
use crate::outgoing::{self, OutgoingProxy};
use crate::rate::{RateLimit, RateLimits};

/// The age after which the set is refreshed.
const REFRESH_AGE: Duration = Duration::from_secs(600);
/// The age up to which the set is still used if it cannot be refreshed.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// The maximum frequency of reads.
const READ_LIMIT: RateLimit = RateLimit { per_minute: 4 };
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a set, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// The maximum number of keys; further keys of a set are ignored.
const MAX_KEYS: usize = 100;

#[derive(Debug)]
pub(super) struct KeySet {
    source: Source,
    cache: RwLock<CachedKeys>,
    /// Locked while the set is read, so that concurrent callers wait for the result.
    reading: Mutex<RateLimits>,
}

#[derive(Debug)]
enum Source {
    File(PathBuf),
    Url { url: Url, client: reqwest::Client },
}

#[derive(Clone, Debug, Default)]
struct CachedKeys {
    keys: Arc<Vec<PublicKey>>,
    read_at: Option<Instant>,
}

/// Why reading a set failed. Errors contain no data from the response.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("cannot read the file")]
    File(#[from] std::io::Error),
    #[error("the HTTP request failed")]
    Fetch(#[source] reqwest::Error),
    #[error("the response has status {0}")]
    Status(u16),
    #[error("the key set (JWKS) exceeds {MAX_BYTES} bytes")]
    TooLong,
    #[error("not a JSON Web Key Set")]
    Format,
}

impl KeySet {
    pub(super) fn new(location: &str, proxy: Option<&OutgoingProxy>) -> Result<Self, IssuerError> {
        let is_url = location.starts_with("http://") || location.starts_with("https://");
        let source = if is_url { from_url(location, proxy)? } else { Source::File(PathBuf::from(location)) };
        Ok(Self { source, cache: RwLock::default(), reading: Mutex::default() })
    }

    /// Finds the key with an id. Without an id, returns the only key of the set, or `None` if the set has several keys.
    pub(super) async fn find(self: &Arc<Self>, id: Option<&str>) -> Option<PublicKey> {
        let (cached, now) = (self.cached(), Instant::now());
        let found = cached.find(id).filter(|_| cached.is_younger_than(MAX_AGE, now));
        if found.is_some() {
            if !cached.is_younger_than(REFRESH_AGE, now) {
                // The set is refreshed in the background, because the cached key can still be used.
                let this = Arc::clone(self);
                tokio::spawn(async move { this.refresh(cached.read_at).await });
            }
            return found;
        }
        self.refresh(cached.read_at).await;
        self.cached().find(id)
    }

    /// Reads the set again, unless it was already read again after `last_read_at` or was read too often.
    async fn refresh(&self, last_read_at: Option<Instant>) {
        let limits = self.reading.lock().await;
        if self.cached().read_at != last_read_at || limits.count("", READ_LIMIT, Instant::now()).is_err() {
            return;
        }
        match self.read().await {
            Ok(keys) => {
                let cached = CachedKeys { keys: Arc::new(keys), read_at: Some(Instant::now()) };
                *self.cache.write().unwrap_or_else(PoisonError::into_inner) = cached;
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                tracing::warn!(%error, cause, "cannot read the keys of a token issuer; using the cached keys");
            }
        }
    }

    async fn read(&self) -> Result<Vec<PublicKey>, ReadError> {
        let bytes = match &self.source {
            Source::File(path) => read_file(path)?,
            Source::Url { url, client } => fetch(client, url.clone()).await?,
        };
        parse(&bytes).ok_or(ReadError::Format)
    }

    fn cached(&self) -> CachedKeys {
        self.cache.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl CachedKeys {
    fn find(&self, id: Option<&str>) -> Option<PublicKey> {
        match id {
            Some(id) => self.keys.iter().find(|key| key.id.as_deref() == Some(id)).cloned(),
            None => self.keys.first().filter(|_| self.keys.len() == 1).cloned(),
        }
    }

    fn is_younger_than(&self, age: Duration, now: Instant) -> bool {
        self.read_at.is_some_and(|read_at| now.saturating_duration_since(read_at) < age)
    }
}

/// Creates a source for a URL. Keys determine who is authenticated, so they must be fetched over TLS or from this machine.
fn from_url(location: &str, proxy: Option<&OutgoingProxy>) -> Result<Source, IssuerError> {
    let url = Url::parse(location).map_err(|_| IssuerError::UntrustedLocation)?;
    if url.scheme() != "https" && !outgoing::is_local(&url) {
        return Err(IssuerError::UntrustedLocation);
    }
    let client = outgoing::client(&url, proxy, TIMEOUT).ok_or(IssuerError::ClientSetup)?;
    Ok(Source::Url { url, client })
}

async fn fetch(client: &reqwest::Client, url: Url) -> Result<Vec<u8>, ReadError> {
    let mut response = client.get(url).header("accept", "application/json").send().await?;
    if !response.status().is_success() {
        return Err(ReadError::Status(response.status().as_u16()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > MAX_BYTES {
            return Err(ReadError::TooLong);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Reads a file synchronously, because it is small and rarely read.
fn read_file(path: &std::path::Path) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    std::fs::File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_BYTES { Err(ReadError::TooLong) } else { Ok(bytes) }
}

impl From<reqwest::Error> for ReadError {
    fn from(error: reqwest::Error) -> Self {
        // A URL may contain a password.
        Self::Fetch(error.without_url())
    }
}

/// Parses a set. Ignores keys that cannot verify signatures of tokens. Returns `None` if `bytes` are not a JSON Web Key Set.
pub(super) fn parse(bytes: &[u8]) -> Option<Vec<PublicKey>> {
    let set: Value = serde_json::from_slice(bytes).ok()?;
    let keys = set.get("keys")?.as_array()?;
    Some(keys.iter().take(MAX_KEYS).filter_map(PublicKey::read).collect())
}
