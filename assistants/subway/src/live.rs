//! Live trains from the MTA's feeds over HTTP.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use threadkeep_transit::LiveFeed;
pub use threadkeep_transit::fetch::FetchError;
use threadkeep_transit::fetch::{Cached, Fetcher};

/// The base URL of the MTA's feeds.
pub const LIVE_ADDRESS: &str = "https://api-endpoint.mta.info/Dataservice/mtagtfsfeeds/";
/// Maximum size of a message; longer responses are rejected.
const LIMIT_BYTES: usize = 4 << 20;

/// The feeds: the path below the base URL of each feed, and the lines in it. The Franklin shuttle (FS) has appeared in two feeds.
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

/// The MTA's feeds. Caches responses, so that each feed is requested at most once per [`LiveOptions::cache_for`].
#[derive(Debug)]
pub struct LiveTrains {
    fetcher: Fetcher,
    options: LiveOptions,
    feeds: Vec<Feed>,
}

#[derive(Debug)]
struct Feed {
    name: &'static str,
    lines: &'static [&'static str],
    cached: Cached<LiveFeed>,
}

/// The current messages of the feeds of some lines.
#[derive(Debug, Clone, Default)]
pub struct LiveSnapshot {
    /// The messages.
    pub feeds: Vec<Arc<LiveFeed>>,
    /// The lines without live times: no feed that contains them responded, or its message was stale.
    pub unavailable: BTreeSet<String>,
    /// The feeds that could not be fetched, and why; for diagnostics.
    pub failures: Vec<(&'static str, Arc<FetchError>)>,
}

impl LiveTrains {
    /// Creates the HTTP client without fetching anything. If the client cannot be created, every feed is unavailable.
    pub fn new(options: LiveOptions) -> Self {
        let feeds = FEEDS.iter().map(|(name, lines)| Feed { name, lines, cached: Cached::default() });
        Self { fetcher: Fetcher::new(options.timeout, LIMIT_BYTES), options, feeds: feeds.collect() }
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
        feed.cached.get_or_fetch(now, self.options.cache_for, self.fetch(feed.name)).await
    }

    async fn fetch(&self, name: &str) -> Result<LiveFeed, FetchError> {
        let url = format!("{}/{name}", self.options.base.trim_end_matches('/'));
        let fetched = self.fetcher.get(&url, |request| match &self.options.key {
            Some(key) => request.header("x-api-key", key),
            None => request,
        });
        LiveFeed::decode(&fetched.await?.success()?).map_err(|error| FetchError::Message(Box::new(error)))
    }
}
