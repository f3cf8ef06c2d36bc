//! HTTP requests to live sources: responses of limited size, and a cache that sends equal requests only once.

use std::error::Error;
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Client, RequestBuilder};
use tokio::sync::Mutex;

/// How long a failure is cached, so that queries that wait for an unavailable source do not each run into the timeout.
const CACHE_FAILURE_FOR: Duration = Duration::from_secs(5);

/// Why a source could not be fetched. Does not contain the address, which may include a key.
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
    #[error("the feed responded with status {0}")]
    Status(u16),
    /// The response exceeds the size limit.
    #[error("the feed responded with more than {0} bytes")]
    TooLarge(usize),
    /// The response is not a valid message.
    #[error(transparent)]
    Message(Box<dyn Error + Send + Sync>),
}

/// A response from a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub bytes: Vec<u8>,
}

impl Fetched {
    /// Returns the body of a successful response.
    ///
    /// # Errors
    /// [`FetchError::Status`] for any other status.
    pub fn success(self) -> Result<Vec<u8>, FetchError> {
        if (200..300).contains(&self.status) { Ok(self.bytes) } else { Err(FetchError::Status(self.status)) }
    }
}

/// Installs a TLS provider, unless another part of the program has installed one.
pub fn install_provider() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

/// A client for requests with a timeout.
#[derive(Debug)]
pub struct Fetcher {
    /// Created by the first request, because reading the system's certificates takes milliseconds. `None` if the system has no
    /// trusted certificates: assistants then work without live data.
    client: OnceLock<Option<Client>>,
    timeout: Duration,
    limit_bytes: usize,
}

impl Fetcher {
    /// Describes a client without creating it. If it cannot be created, every source is unavailable.
    #[must_use]
    pub fn new(timeout: Duration, limit_bytes: usize) -> Self {
        Self { client: OnceLock::new(), timeout, limit_bytes }
    }

    fn client(&self) -> Result<&Client, FetchError> {
        let client = self.client.get_or_init(|| {
            install_provider();
            Client::builder().timeout(self.timeout).build().ok()
        });
        client.as_ref().ok_or(FetchError::NoClient)
    }

    /// Sends a GET request, which `prepare` can modify, and reads the response up to the size limit.
    ///
    /// # Errors
    /// [`FetchError`]. An HTTP error status is not an error here: the response contains it.
    pub async fn get(
        &self,
        url: &str,
        prepare: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Fetched, FetchError> {
        let client = self.client()?;
        let unreachable = |error: reqwest::Error| FetchError::Unreachable(error.without_url());
        let mut response = prepare(client.get(url)).send().await.map_err(unreachable)?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > self.limit_bytes {
                return Err(FetchError::TooLarge(self.limit_bytes));
            }
        }
        Ok(Fetched { status, bytes })
    }
}

/// The last result of a source.
#[derive(Debug)]
pub struct Cached<T> {
    /// Locked during a request, so that concurrent queries wait for its response instead of sending their own.
    last: Mutex<Option<LastResult<T>>>,
}

#[derive(Debug)]
struct LastResult<T> {
    fetched_at: Timestamp,
    result: Result<Arc<T>, Arc<FetchError>>,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self { last: Mutex::new(None) }
    }
}

impl<T> Cached<T> {
    /// Returns the last result if it is at most `keep_for` old, otherwise the result of `fetch`.
    ///
    /// # Errors
    /// The error of `fetch`, or of an earlier request that failed a few seconds ago.
    pub async fn get_or_fetch(
        &self,
        now: Timestamp,
        keep_for: Duration,
        fetch: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<Arc<T>, Arc<FetchError>> {
        let mut last = self.last.lock().await;
        if let Some(LastResult { fetched_at, result }) = &*last {
            let keep_for = if result.is_ok() { keep_for } else { CACHE_FAILURE_FOR };
            if now.duration_since(*fetched_at).unsigned_abs() <= keep_for {
                return result.clone();
            }
        }
        let result = fetch.await.map(Arc::new).map_err(Arc::new);
        *last = Some(LastResult { fetched_at: now, result: result.clone() });
        result
    }
}
