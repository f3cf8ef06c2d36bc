//! A client for TfL's Unified API: status of lines, arrivals, journeys, disruptions and stop search.
//!
//! Responses are cached for a time that depends on their kind, identical concurrent requests are sent once, and requests that
//! failed for a transient reason are retried.

mod answers;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use threadkeep_transit::fetch::{Cached, FetchError, Fetched, Fetcher};
use tokio::sync::Mutex;

pub use answers::{
    Disambiguation, Disruption, Journey, JourneyAnswer, JourneyLeg, LineRef, LineStatus, Place, PlaceOption,
    Prediction, StatusOfLine, StopMatch, StopPoint, StopSearch, ValidityPeriod,
};

/// The base URL of the API.
pub const TFL_ADDRESS: &str = "https://api.tfl.gov.uk";
/// Maximum size of a response. A journey with all its details has about 1 MB.
const LIMIT_BYTES: usize = 8 << 20;
/// How often a request is retried after a transient failure.
const RETRIES: u32 = 2;
/// The pause before the first retry; it doubles for each further retry.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How long responses are cached.
const STATUS_FOR: Duration = Duration::from_secs(30);
const ARRIVALS_FOR: Duration = Duration::from_secs(15);
const JOURNEYS_FOR: Duration = Duration::from_secs(30);
const STATIONS_FOR: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of requests per minute that TfL allows, without and with a key.
const REQUESTS_A_MINUTE: usize = 50;
const REQUESTS_A_MINUTE_WITH_KEY: usize = 500;
/// Maximum number of cached responses.
const MAX_CACHED: usize = 512;

/// Options of the client.
#[derive(Debug, Clone)]
pub struct TflOptions {
    /// The base URL, with or without a trailing slash.
    pub base: String,
    /// The application key. Without one, the service allows fewer requests.
    pub key: Option<String>,
    /// Timeout of a request.
    pub timeout: Duration,
}

impl Default for TflOptions {
    fn default() -> Self {
        Self { base: TFL_ADDRESS.to_owned(), key: None, timeout: Duration::from_secs(5) }
    }
}

/// A request for a journey between two stops.
#[derive(Debug, Clone, Default)]
pub struct JourneyRequest {
    /// The id of the origin.
    pub from: String,
    /// The id of the destination.
    pub to: String,
    /// The local time of the journey, if it is not now, and whether it is the time of arrival rather than departure.
    pub at: Option<(jiff::civil::DateTime, bool)>,
    /// Whether to use only step-free routes.
    pub step_free: bool,
}

/// A client of the API.
#[derive(Debug)]
pub struct Tfl {
    fetcher: Fetcher,
    options: TflOptions,
    /// The responses, by path and query.
    answers: Mutex<HashMap<String, Arc<Cached<Fetched>>>>,
    /// The times of the last requests.
    requested_at: Mutex<Vec<Timestamp>>,
}

/// The result of a request, shared with identical requests.
pub type TflResult<T> = Result<T, Arc<FetchError>>;

impl Tfl {
    /// Creates the client without fetching anything.
    #[must_use]
    pub fn new(options: TflOptions) -> Self {
        Self {
            fetcher: Fetcher::new(options.timeout, LIMIT_BYTES),
            options,
            answers: Mutex::default(),
            requested_at: Mutex::default(),
        }
    }

    /// Returns the status of all lines of the Underground, the Elizabeth line, the DLR and the Overground.
    ///
    /// # Errors
    /// The service cannot be reached, or its answer cannot be read.
    pub async fn status_of_modes(&self, now: Timestamp) -> TflResult<Vec<StatusOfLine>> {
        self.get(&format!("/Line/Mode/{}/Status", crate::lines::MODES), STATUS_FOR, now).await
    }

    /// Returns the status of the lines with the given ids.
    ///
    /// # Errors
    /// Those of [`status_of_modes`](Self::status_of_modes).
    pub async fn status_of_lines(&self, lines: &[&str], now: Timestamp) -> TflResult<Vec<StatusOfLine>> {
        self.get(&format!("/Line/{}/Status?detail=true", lines.join(",")), STATUS_FOR, now).await
    }

    /// Returns the announced trains at a stop, soonest first.
    ///
    /// # Errors
    /// Those of [`status_of_modes`](Self::status_of_modes).
    pub async fn arrivals(&self, stop: &str, now: Timestamp) -> TflResult<Vec<Prediction>> {
        let mut arrivals: Vec<Prediction> = self.get(&format!("/StopPoint/{stop}/Arrivals"), ARRIVALS_FOR, now).await?;
        arrivals.sort_by_key(|arrival| arrival.time_to_station);
        Ok(arrivals)
    }

    /// Returns the disruptions at a stop.
    ///
    /// # Errors
    /// Those of [`status_of_modes`](Self::status_of_modes).
    pub async fn disruptions(&self, stop: &str, now: Timestamp) -> TflResult<Vec<Disruption>> {
        self.get(&format!("/StopPoint/{stop}/Disruption"), STATUS_FOR, now).await
    }

    /// Finds stops by name.
    ///
    /// # Errors
    /// Those of [`status_of_modes`](Self::status_of_modes).
    pub async fn search(&self, name: &str, now: Timestamp) -> TflResult<StopSearch> {
        let path = format!("/StopPoint/Search/{}?modes={}", encoded(name), crate::lines::MODES);
        self.get(&path, STATIONS_FOR, now).await
    }

    /// Plans a journey. If an end is ambiguous (status 300), repeats the request with the service's best match.
    ///
    /// # Errors
    /// Those of [`status_of_modes`](Self::status_of_modes).
    pub async fn journeys(&self, request: &JourneyRequest, now: Timestamp) -> TflResult<JourneyAnswer> {
        let mut request = request.clone();
        let answer: JourneyAnswer = self.get(&path_of(&request), JOURNEYS_FOR, now).await?;
        let best = |of: &Option<Disambiguation>| of.as_ref().and_then(Disambiguation::best).map(str::to_owned);
        let (from, to) = (best(&answer.from_location_disambiguation), best(&answer.to_location_disambiguation));
        if from.is_none() && to.is_none() {
            return Ok(answer);
        }
        request.from = from.unwrap_or(request.from);
        request.to = to.unwrap_or(request.to);
        self.get(&path_of(&request), JOURNEYS_FOR, now).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, keep_for: Duration, now: Timestamp) -> TflResult<T> {
        let cached = {
            let mut answers = self.answers.lock().await;
            if answers.len() >= MAX_CACHED && !answers.contains_key(path) {
                answers.clear();
            }
            Arc::clone(answers.entry(path.to_owned()).or_default())
        };
        let fetched = cached.get_or_fetch(now, keep_for, self.fetch(path, now)).await?;
        let malformed = |error: serde_json::Error| Arc::new(FetchError::Message(Box::new(error)));
        serde_json::from_slice(&fetched.bytes).map_err(malformed)
    }

    /// Sends a request, and retries it after a transient failure. Status 300 is not a failure.
    async fn fetch(&self, path: &str, now: Timestamp) -> Result<Fetched, FetchError> {
        let url = format!("{}{path}", self.options.base.trim_end_matches('/'));
        let mut pause = FIRST_PAUSE;
        let mut attempt = 0;
        loop {
            self.count_request(now).await?;
            let fetched = self.fetcher.get(&url, |request| match &self.options.key {
                Some(key) => request.header("app_key", key),
                None => request,
            });
            let error = match fetched.await {
                Ok(fetched) if (200..300).contains(&fetched.status) || fetched.status == 300 => return Ok(fetched),
                Ok(fetched) => FetchError::Status(fetched.status),
                Err(error) => error,
            };
            let is_transient = matches!(&error, FetchError::Status(500..=599 | 429) | FetchError::Unreachable(_));
            if !is_transient || attempt == RETRIES {
                return Err(error);
            }
            attempt += 1;
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    /// Counts a request. Returns an error if it would exceed the quota, as the service would.
    async fn count_request(&self, now: Timestamp) -> Result<(), FetchError> {
        const TOO_MANY_REQUESTS: u16 = 429;
        let quota = if self.options.key.is_some() { REQUESTS_A_MINUTE_WITH_KEY } else { REQUESTS_A_MINUTE };
        let mut requested_at = self.requested_at.lock().await;
        requested_at.retain(|at| now.duration_since(*at).unsigned_abs() < Duration::from_secs(60));
        if requested_at.len() >= quota {
            return Err(FetchError::Status(TOO_MANY_REQUESTS));
        }
        requested_at.push(now);
        Ok(())
    }
}

fn path_of(request: &JourneyRequest) -> String {
    let (from, to) = (encoded(&request.from), encoded(&request.to));
    let mut path = format!("/Journey/JourneyResults/{from}/to/{to}?mode={},walking", crate::lines::MODES);
    if let Some((at, is_arrival)) = request.at {
        let is = if is_arrival { "Arriving" } else { "Departing" };
        path.push_str(&format!("&date={}&time={}&timeIs={is}", at.strftime("%Y%m%d"), at.strftime("%H%M")));
    }
    if request.step_free {
        path.push_str("&accessibilityPreference=StepFreeToPlatform");
    }
    path
}

/// Encodes text as a segment of a path.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b',') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
