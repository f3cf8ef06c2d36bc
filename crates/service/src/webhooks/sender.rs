//! Sends a delivery to its endpoint.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use ipnet::IpNet;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use threadkeep::Timestamp;

use super::Webhook;
use super::address::{AddressFilter, PrivateAddressError, ip_address_in};
use crate::error::{Error, Result};

/// How long an unused connection is kept open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// How an attempt to deliver an event ended.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The status of the response; `None` if there was none.
    pub(super) status: Option<u16>,
    /// Why the attempt failed; `None` if it succeeded.
    pub(super) error: Option<String>,
    /// How long the endpoint asks to wait before the next attempt.
    pub(super) retry_after: Option<Duration>,
}

impl Outcome {
    fn failed(error: &str) -> Self {
        Self { status: None, error: Some(error.to_owned()), retry_after: None }
    }

    /// Whether the endpoint reported that it no longer exists.
    pub(super) fn is_gone(&self) -> bool {
        self.status == Some(StatusCode::GONE.as_u16())
    }
}

/// The clients of all webhooks. They follow no redirects and use no proxy, because the address of the endpoint would then not be
/// checked.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    https: Client,
    /// Without encryption, only the allowed networks are reached.
    http: Client,
    https_filter: AddressFilter,
    http_filter: AddressFilter,
}

impl Sender {
    pub(super) fn new(networks: &Arc<[IpNet]>, timeout: Duration) -> Result<Self> {
        let filter = |allows_public| AddressFilter { networks: Arc::clone(networks), allows_public };
        let (https_filter, http_filter) = (filter(true), filter(false));
        let build = |filter: &AddressFilter| {
            let tls = threadkeep::models::client_tls().map_err(|error| Error::internal(error.to_string()))?;
            let client = Client::builder()
                .tls_backend_preconfigured(tls)
                .timeout(timeout)
                .redirect(Policy::none())
                .no_proxy()
                .pool_idle_timeout(IDLE_TIMEOUT)
                .user_agent(concat!("threadkeep/", env!("CARGO_PKG_VERSION")))
                .dns_resolver(Arc::new(filter.clone()));
            client.build().map_err(|error| Error::internal(error.to_string()))
        };
        Ok(Self { https: build(&https_filter)?, http: build(&http_filter)?, https_filter, http_filter })
    }

    /// Sends an event to the endpoint of a webhook. Only the head of the response is read.
    pub(super) async fn send(&self, webhook: &Webhook, event: &str, payload: String, now: Timestamp) -> Outcome {
        let Ok(url) = Url::parse(&webhook.url) else { return Outcome::failed("the URL is invalid") };
        let (client, filter) =
            if url.scheme() == "https" { (&self.https, &self.https_filter) } else { (&self.http, &self.http_filter) };
        if ip_address_in(&url).is_some_and(|address| !filter.allows(address)) {
            return Outcome::failed(&PrivateAddressError.to_string());
        }
        let seconds = now.as_millis().div_euclid(1000);
        let signature = webhook.secrets.sign(event, seconds, &payload, now);
        let request = client
            .post(url)
            .header("content-type", "application/json")
            .header("webhook-id", event)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signature)
            .body(payload);
        match request.send().await {
            Ok(response) => read_outcome(response.status(), response.headers(), now),
            Err(error) => Outcome::failed(describe(&error)),
        }
    }
}

fn read_outcome(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Outcome {
    let error = if status.is_success() {
        None
    } else if status.is_redirection() {
        Some(format!("the endpoint responded with {}; redirects are not followed", status.as_u16()))
    } else {
        Some(format!("the endpoint responded with {}", status.as_u16()))
    };
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| read_retry_after(value.to_str().ok()?, now));
    Outcome { status: Some(status.as_u16()), error, retry_after }
}

/// Reads `Retry-After`, which is a number of seconds or a date.
fn read_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let now = UNIX_EPOCH + Duration::from_millis(now.as_millis().try_into().ok()?);
    httpdate::parse_http_date(text.trim()).ok()?.duration_since(now).ok()
}

/// Describes an error without the URL, which may contain a secret.
fn describe(error: &reqwest::Error) -> &'static str {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<PrivateAddressError>() {
            return "the host has only private addresses";
        }
        source = cause.source();
    }
    if error.is_timeout() {
        "the endpoint did not respond in time"
    } else if error.is_connect() {
        "cannot connect to the endpoint"
    } else {
        "the connection failed before the response"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_of_seconds_or_a_date() {
        let now = Timestamp::from_millis(1_700_000_000_000).unwrap();
        let read = |text| read_retry_after(text, now).map(|wait| wait.as_secs());
        assert_eq!(read("120"), Some(120));
        assert_eq!(read("Tue, 14 Nov 2023 22:14:20 GMT"), Some(60));
        assert_eq!((read("Tue, 14 Nov 2023 22:12:20 GMT"), read("soon"), read("-1")), (None, None, None));
    }
}
