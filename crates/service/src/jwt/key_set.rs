//! A set of public keys that an issuer publishes (JWKS): read from a file or a URL, kept for a while, read again when a
//! token names a key that is not in it.
//!
//! How often it is read is bounded, whatever tokens name: nobody can make this server flood an issuer.

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

/// How long a set is taken for what it was.
const FRESH: Duration = Duration::from_secs(600);
/// How long it is used when it cannot be read again.
const GOOD: Duration = Duration::from_secs(24 * 3600);
/// How often it is read at most.
const READS: RateLimit = RateLimit { per_minute: 4 };
const TIMEOUT: Duration = Duration::from_secs(5);
const BYTES: usize = 256 * 1024;
const KEYS: usize = 100;

#[derive(Debug)]
pub(super) struct KeySet {
    source: Source,
    known: RwLock<Known>,
    /// Held by the one who reads, so that the others wait for what is read.
    reading: Mutex<RateLimits>,
}

#[derive(Debug)]
enum Source {
    File(PathBuf),
    Url { url: Url, client: reqwest::Client },
}

#[derive(Clone, Debug, Default)]
struct Known {
    keys: Arc<Vec<PublicKey>>,
    read_at: Option<Instant>,
}

/// Why a set was not read. It holds nothing that the other side sent.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("it cannot be read")]
    File(#[from] std::io::Error),
    #[error("it cannot be fetched")]
    Fetch(#[source] reqwest::Error),
    #[error("the answer was {0}")]
    Status(u16),
    #[error("it has more than {BYTES} bytes")]
    Long,
    #[error("it is no set of keys")]
    Shape,
}

impl KeySet {
    pub(super) fn at(location: &str, proxy: Option<&OutgoingProxy>) -> Result<Self, IssuerError> {
        let is_url = location.starts_with("http://") || location.starts_with("https://");
        let source = if is_url { from_url(location, proxy)? } else { Source::File(PathBuf::from(location)) };
        Ok(Self { source, known: RwLock::default(), reading: Mutex::default() })
    }

    /// Finds the key that a token names, or the only one where it names none.
    pub(super) async fn find(self: &Arc<Self>, id: Option<&str>) -> Option<PublicKey> {
        let (known, now) = (self.known(), Instant::now());
        let found = known.find(id).filter(|_| known.is_younger(GOOD, now));
        if found.is_some() {
            if !known.is_younger(FRESH, now) {
                // Nobody waits for an issuer whose keys are known.
                let this = Arc::clone(self);
                tokio::spawn(async move { this.read_again(known.read_at).await });
            }
            return found;
        }
        self.read_again(known.read_at).await;
        self.known().find(id)
    }

    /// Reads the set, unless somebody did since `seen`, or it was read too often.
    async fn read_again(&self, seen: Option<Instant>) {
        let limits = self.reading.lock().await;
        if self.known().read_at != seen || limits.count("", READS, Instant::now()).is_err() {
            return;
        }
        match self.read().await {
            Ok(keys) => {
                let known = Known { keys: Arc::new(keys), read_at: Some(Instant::now()) };
                *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                tracing::warn!(%error, cause, "the keys of an issuer were not read; those that are known go on");
            }
        }
    }

    async fn read(&self) -> Result<Vec<PublicKey>, Unread> {
        let bytes = match &self.source {
            Source::File(path) => bounded_file(path)?,
            Source::Url { url, client } => fetch(client, url.clone()).await?,
        };
        parse(&bytes).ok_or(Unread::Shape)
    }

    fn known(&self) -> Known {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Known {
    fn find(&self, id: Option<&str>) -> Option<PublicKey> {
        match id {
            Some(id) => self.keys.iter().find(|key| key.id.as_deref() == Some(id)).cloned(),
            None => self.keys.first().filter(|_| self.keys.len() == 1).cloned(),
        }
    }

    fn is_younger(&self, age: Duration, now: Instant) -> bool {
        self.read_at.is_some_and(|read_at| now.saturating_duration_since(read_at) < age)
    }
}

/// Keys decide who is let in, so they come over TLS, or from this machine.
fn from_url(location: &str, proxy: Option<&OutgoingProxy>) -> Result<Source, IssuerError> {
    let url = Url::parse(location).map_err(|_| IssuerError::Location)?;
    if url.scheme() != "https" && !outgoing::is_here(&url) {
        return Err(IssuerError::Location);
    }
    let client = outgoing::client(&url, proxy, TIMEOUT).ok_or(IssuerError::Client)?;
    Ok(Source::Url { url, client })
}

async fn fetch(client: &reqwest::Client, url: Url) -> Result<Vec<u8>, Unread> {
    let mut answer = client.get(url).header("accept", "application/json").send().await?;
    if !answer.status().is_success() {
        return Err(Unread::Status(answer.status().as_u16()));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        if bytes.len() + piece.len() > BYTES {
            return Err(Unread::Long);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// A small file that is seldom read: nobody waits long.
fn bounded_file(path: &std::path::Path) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    let most = u64::try_from(BYTES).unwrap_or(u64::MAX);
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() > BYTES { Err(Unread::Long) } else { Ok(bytes) }
}

impl From<reqwest::Error> for Unread {
    fn from(error: reqwest::Error) -> Self {
        // An address may hold a password.
        Self::Fetch(error.without_url())
    }
}

/// The keys that sign tokens; others are passed over.
pub(super) fn parse(bytes: &[u8]) -> Option<Vec<PublicKey>> {
    let set: Value = serde_json::from_slice(bytes).ok()?;
    let keys = set.get("keys")?.as_array()?;
    Some(keys.iter().take(KEYS).filter_map(PublicKey::read).collect())
}
