//! Live trains from the MTA's feeds, over HTTP.

use std::collections::BTreeSet;
use std::sync::{Arc, Once};
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use reqwest::Client;
use threadkeep_transit::{LiveError, LiveFeed};
use tokio::sync::Mutex;

/// Where the MTA publishes its feeds.
pub const LIVE_ADDRESS: &str = "https://api-endpoint.mta.info/Dataservice/mtagtfsfeeds/";
/// A message is never larger; what comes beyond is not read.
const LIMIT_BYTES: usize = 4 << 20;

/// The feeds by their names under the address, and the lines that each carries. The Franklin shuttle has been seen in
/// two.
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

/// Where live trains come from.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// What stands before the name of each feed. A slash at its end may be left out.
    pub base: String,
    /// Sent as the header `x-api-key`, if there is one. The feeds need none.
    pub key: Option<String>,
    /// How long an answer is used again.
    pub keep: Duration,
    /// How long one request may take.
    pub timeout: Duration,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            base: LIVE_ADDRESS.to_owned(),
            key: None,
            keep: Duration::from_secs(30),
            timeout: Duration::from_secs(5),
        }
    }
}

/// Why a feed could not be had. Its address is not told: it may hold a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// No client for HTTP could be made.
    #[error("no client for HTTP; the system may lack certificates to trust")]
    NoClient,
    /// No answer, or none in time.
    #[error("the feed cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// An answer that is not a feed.
    #[error("the feed answered with status {0}")]
    Status(u16),
    /// More bytes than any feed has.
    #[error("the feed answered with more than {LIMIT_BYTES} bytes")]
    TooLarge,
    /// Bytes that are no message.
    #[error(transparent)]
    Message(#[from] LiveError),
}

/// The MTA's feeds, each asked at most once in a while however many questions come.
#[derive(Debug)]
pub struct LiveTrains {
    /// `None` where the system has no certificates to trust: the assistant works without live times then.
    client: Option<Client>,
    options: LiveOptions,
    feeds: Vec<Feed>,
}

#[derive(Debug)]
struct Feed {
    name: &'static str,
    lines: &'static [&'static str],
    /// Held while a request is on its way, so that a second question waits for its answer.
    kept: Mutex<Option<Kept>>,
}

/// The last answer of a feed.
#[derive(Debug)]
struct Kept {
    at: Timestamp,
    answer: Result<Arc<LiveFeed>, Arc<FetchError>>,
}

/// A failure is kept shortly, so that those who wait for a feed that is down do not wait one after the other.
const KEEP_FAILURE: Duration = Duration::from_secs(5);

/// What the feeds of some lines say.
#[derive(Debug, Clone, Default)]
pub struct LivePicture {
    /// The messages.
    pub feeds: Vec<Arc<LiveFeed>>,
    /// Lines of which nothing is known: no feed that carries them answered, or only with old news.
    pub unavailable: BTreeSet<String>,
    /// The feeds that could not be had, and why; for whoever runs the assistant.
    pub failures: Vec<(&'static str, Arc<FetchError>)>,
}

/// Has TLS work. It does already where another part of the program chose a provider.
pub(crate) fn install_provider() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

impl LiveTrains {
    /// Prepares a client. Nothing is fetched yet, and where no client can be made every feed is unavailable.
    pub fn new(options: LiveOptions) -> Self {
        install_provider();
        let client = Client::builder().timeout(options.timeout).build().ok();
        let feeds = FEEDS.iter().map(|(name, lines)| Feed { name, lines, kept: Mutex::new(None) });
        Self { client, options, feeds: feeds.collect() }
    }

    /// Asks the feeds that carry any of the lines, all at once.
    pub async fn picture(&self, lines: &[&str], now: Timestamp) -> LivePicture {
        let asked: Vec<&Feed> =
            self.feeds.iter().filter(|feed| feed.lines.iter().any(|line| lines.contains(line))).collect();
        let answers = join_all(asked.iter().map(|feed| self.ask(feed, now))).await;
        let mut picture = LivePicture::default();
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for (feed, answer) in asked.iter().zip(answers) {
            match answer {
                Ok(message) if !message.is_stale(now) => {
                    known.extend(feed.lines);
                    picture.feeds.push(message);
                }
                Ok(_) => {}
                Err(error) => picture.failures.push((feed.name, error)),
            }
        }
        let unknown = lines.iter().filter(|line| !known.contains(**line));
        picture.unavailable = unknown.map(|line| (*line).to_owned()).collect();
        picture
    }

    async fn ask(&self, feed: &Feed, now: Timestamp) -> Result<Arc<LiveFeed>, Arc<FetchError>> {
        let mut kept = feed.kept.lock().await;
        if let Some(Kept { at, answer }) = &*kept {
            let keep = if answer.is_ok() { self.options.keep } else { KEEP_FAILURE };
            if now.duration_since(*at).unsigned_abs() <= keep {
                return answer.clone();
            }
        }
        let answer = self.fetch(feed.name).await.map(Arc::new).map_err(Arc::new);
        *kept = Some(Kept { at: now, answer: answer.clone() });
        answer
    }

    async fn fetch(&self, name: &str) -> Result<LiveFeed, FetchError> {
        let client = self.client.as_ref().ok_or(FetchError::NoClient)?;
        let mut request = client.get(format!("{}/{name}", self.options.base.trim_end_matches('/')));
        if let Some(key) = &self.options.key {
            request = request.header("x-api-key", key);
        }
        let unreachable = |error: reqwest::Error| FetchError::Unreachable(error.without_url());
        let mut answer = request.send().await.map_err(unreachable)?;
        if !answer.status().is_success() {
            return Err(FetchError::Status(answer.status().as_u16()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > LIMIT_BYTES {
                return Err(FetchError::TooLarge);
            }
        }
        Ok(LiveFeed::decode(&bytes)?)
    }
}
