//! Live trains from the MTA's feeds over HTTP.

use std::collections::BTreeSet;
use std::sync::{Arc, Once};
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use reqwest::Client;
use threadkeep_transit::{LiveError, LiveFeed};
use tokio::sync::Mutex;

/// The base URL of the MTA's feeds.
pub const LIVE_ADDRESS: &str = "https://api-endpoint.mta.info/Dataservice/mtagtfsfeeds/";
/// Maximum size of a message; longer responses are rejected.
const LIMIT_BYTES: usize = 4 << 20;

/// The feeds: the path below the base URL, and the lines in each. The Franklin shuttle (FS) has appeared in two feeds.
const FEEDS: &[(&str, &[&str])] = &[
    ("nyct%2Fgtfs", &["1", "2", "3", "4", "5", "6", "6X", "7", "7X", "GS"]),
    ("nyct%2Fgtfs-ace", &["A", "C", "E", "H", "FS"]),
    ("nyct%2Fgtfs-bdfm", &["B", "D", "F", "FX", "M", "FS"]),
    ("nyct%2Fgtfs-g", &["G"]),
    ("nyct%2Fgtfs-jz", &["J", "Z"]),
    ("nyct%2Fgtfs-nqrw", &["N", "Q", "R", "W"]),
    ("nyct%2Fgtfs-l", &["L"]),
    ("nyct%2Fgtfs-si", &["SI"]),
];

/// Options of the live feeds.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// The base URL of the feeds, with or without a trailing slash.
    pub base: String,
    /// Sent in the `x-api-key` header, if set. The feeds do not require a key.
    pub key: Option<String>,
    /// How long a response is cached.
    pub cache_for: Duration,
    /// Timeout of a request.
    pub timeout: Duration,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            base: LIVE_ADDRESS.to_owned(),
            key: None,
            cache_for: Duration::from_secs(30),
            timeout: Duration::from_secs(5),
        }
    }
}

/// Why a feed could not be fetched. Does not contain the address, which may include a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The HTTP client could not be created.
    #[error("cannot create an HTTP client; the system may have no trusted certificates")]
    NoClient,
    /// The server did not respond in time.
    #[error("the feed cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// The server responded with an HTTP error status.
    #[error("the feed answered with status {0}")]
    Status(u16),
    /// The response exceeds the size limit.
    #[error("the feed answered with more than {LIMIT_BYTES} bytes")]
    TooLarge,
    /// The response is not a valid message.
    #[error(transparent)]
    Message(#[from] LiveError),
}

/// The MTA's feeds. Caches responses, so that each feed is requested at most once per [`LiveOptions::cache_for`].
#[derive(Debug)]
pub struct LiveTrains {
    /// `None` if the system has no trusted certificates: the assistant then works without live times.
    client: Option<Client>,
    options: LiveOptions,
    feeds: Vec<Feed>,
}

#[derive(Debug)]
struct Feed {
    name: &'static str,
    lines: &'static [&'static str],
    /// Locked during a request, so that concurrent queries wait for its response instead of sending their own.
    cached: Mutex<Option<CachedFeed>>,
}

/// The last result of a feed.
#[derive(Debug)]
struct CachedFeed {
    fetched_at: Timestamp,
    result: Result<Arc<LiveFeed>, Arc<FetchError>>,
}

/// How long a failure is cached, so that queries that wait for an unavailable feed do not each run into the timeout.
const CACHE_FAILURE_FOR: Duration = Duration::from_secs(5);

/// The current messages of the feeds of some lines.
#[derive(Debug, Clone, Default)]
pub struct LiveSnapshot {
    /// The messages.
    pub feeds: Vec<Arc<LiveFeed>>,
    /// The lines without live times: no feed that contains them responded, or only with a stale message.
    pub unavailable: BTreeSet<String>,
    /// The feeds that could not be fetched, and why; for diagnostics.
    pub failures: Vec<(&'static str, Arc<FetchError>)>,
}

/// Installs a TLS provider, unless another part of the program has installed one.
pub(crate) fn install_provider() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

impl LiveTrains {
    /// Creates the HTTP client without fetching anything. If the client cannot be created, every feed is unavailable.
    pub fn new(options: LiveOptions) -> Self {
        install_provider();
        let client = Client::builder().timeout(options.timeout).build().ok();
        let feeds = FEEDS.iter().map(|(name, lines)| Feed { name, lines, cached: Mutex::new(None) });
        Self { client, options, feeds: feeds.collect() }
    }

    /// Fetches the feeds that contain any of the lines, concurrently.
    pub async fn snapshot(&self, lines: &[&str], now: Timestamp) -> LiveSnapshot {
        let feeds: Vec<&Feed> =
            self.feeds.iter().filter(|feed| feed.lines.iter().any(|line| lines.contains(line))).collect();
        let results = join_all(feeds.iter().map(|feed| self.cached_or_fetched(feed, now))).await;
        let mut snapshot = LiveSnapshot::default();
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for (feed, result) in feeds.iter().zip(results) {
            match result {
                Ok(message) if !message.is_stale(now) => {
                    known.extend(feed.lines);
                    snapshot.feeds.push(message);
                }
                Ok(_) => {}
                Err(error) => snapshot.failures.push((feed.name, error)),
            }
        }
        let unknown = lines.iter().filter(|line| !known.contains(**line));
        snapshot.unavailable = unknown.map(|line| (*line).to_owned()).collect();
        snapshot
    }

    async fn cached_or_fetched(&self, feed: &Feed, now: Timestamp) -> Result<Arc<LiveFeed>, Arc<FetchError>> {
        let mut cached = feed.cached.lock().await;
        if let Some(CachedFeed { fetched_at, result }) = &*cached {
            let cache_for = if result.is_ok() { self.options.cache_for } else { CACHE_FAILURE_FOR };
            if now.duration_since(*fetched_at).unsigned_abs() <= cache_for {
                return result.clone();
            }
        }
        let result = self.fetch(feed.name).await.map(Arc::new).map_err(Arc::new);
        *cached = Some(CachedFeed { fetched_at: now, result: result.clone() });
        result
    }

    async fn fetch(&self, name: &str) -> Result<LiveFeed, FetchError> {
        let client = self.client.as_ref().ok_or(FetchError::NoClient)?;
        let mut request = client.get(format!("{}/{name}", self.options.base.trim_end_matches('/')));
        if let Some(key) = &self.options.key {
            request = request.header("x-api-key", key);
        }
        let unreachable = |error: reqwest::Error| FetchError::Unreachable(error.without_url());
        let mut response = request.send().await.map_err(unreachable)?;
        if !response.status().is_success() {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > LIMIT_BYTES {
                return Err(FetchError::TooLarge);
            }
        }
        Ok(LiveFeed::decode(&bytes)?)
    }
}
