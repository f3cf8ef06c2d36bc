//! Sends HTTP requests to a provider, with timeouts and size limits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response};

use threadkeep_core::redact_address;

use super::failure::ProviderFailure;
use super::sse::{Event, EventParser};
use crate::Secret;

/// Timeouts, limits and proxy for calls to a provider.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// The timeout for connecting.
    pub connect_timeout: Duration,
    /// The timeout for the first byte of an answer and between pieces.
    pub silence_timeout: Duration,
    /// The timeout for a call, including all attempts.
    pub total_timeout: Duration,
    /// The maximum number of retries.
    pub retries: u32,
    /// The maximum size of an answer, in bytes.
    pub answer_bytes: usize,
    /// The proxy for all hosts that `proxy_exceptions` does not match.
    pub proxy: Option<String>,
    /// The hosts to reach without the proxy, in the format of `NO_PROXY`.
    pub proxy_exceptions: Option<String>,
}

impl fmt::Debug for HttpOptions {
    /// Omits the proxy, because its address may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("connect_timeout", &self.connect_timeout)
            .field("silence_timeout", &self.silence_timeout)
            .field("total_timeout", &self.total_timeout)
            .field("retries", &self.retries)
            .field("answer_bytes", &self.answer_bytes)
            .finish_non_exhaustive()
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            silence_timeout: Duration::from_secs(120),
            total_timeout: Duration::from_secs(600),
            retries: 2,
            answer_bytes: 32 * 1024 * 1024,
            proxy: None,
            proxy_exceptions: None,
        }
    }
}

/// An HTTP client of one provider.
#[derive(Clone, Debug)]
pub(super) struct Http {
    client: Client,
    base_url: String,
    options: Arc<HttpOptions>,
}

/// An error in the configuration of a provider client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address is not an HTTP URL, or contains credentials or a query. Credentials and query are omitted from the
    /// message.
    #[error("invalid provider address \"{0}\": expected an http or https URL without credentials or a query")]
    Address(String),
    /// The proxy is invalid.
    #[error("invalid proxy: {0}")]
    Proxy(String),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

impl Http {
    pub(super) fn new(
        base_url: &str,
        key: Option<&Secret>,
        headers: &[(&'static str, &'static str)],
        options: HttpOptions,
    ) -> Result<Self, ConnectError> {
        let base_url = checked_address(base_url)?;
        let mut builder = Client::builder()
            .tls_backend_preconfigured(client_tls()?)
            .connect_timeout(options.connect_timeout)
            .read_timeout(options.silence_timeout)
            // A redirect could send the key to another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("threadkeep/", env!("CARGO_PKG_VERSION")))
            .default_headers(default_headers(key, headers))
            .no_proxy();
        if let Some(proxy) = &options.proxy {
            let proxy =
                reqwest::Proxy::all(proxy).map_err(|error| ConnectError::Proxy(innermost(&error.without_url())))?;
            let exceptions = options.proxy_exceptions.as_deref().and_then(reqwest::NoProxy::from_string);
            builder = builder.proxy(proxy.no_proxy(exceptions));
        }
        let client = builder.build().map_err(|error| ConnectError::Tls(innermost(&error.without_url())))?;
        Ok(Self { client, base_url, options: Arc::new(options) })
    }

    pub(super) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(self.url(path))
    }

    pub(super) fn post(&self, path: &str, body: String) -> RequestBuilder {
        self.client.post(self.url(path)).header(CONTENT_TYPE, "application/json").body(body)
    }

    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.base_url)
    }

    /// Sends a request. A response with an error status is returned as a failure, with the complete body.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, ProviderFailure> {
        let response = request.header(ACCEPT, "application/json, text/event-stream").send().await;
        let response = response.map_err(|error| self.failure(&error))?;
        let status = response.status().as_u16();
        if response.status().is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        let should_retry = response.headers().get("x-should-retry").and_then(|value| match value.as_bytes() {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        });
        // If reading the body fails, at least the status is reported.
        let body = self.read(response).await.unwrap_or_default();
        Err(ProviderFailure::Status { status, retry_after, should_retry, body })
    }

    /// Reads a complete body.
    pub(super) async fn read(&self, mut response: Response) -> Result<String, ProviderFailure> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece(&mut response).await? {
            if body.len() + piece.len() > self.options.answer_bytes {
                return Err(ProviderFailure::TooLong);
            }
            body.extend_from_slice(&piece);
        }
        Ok(String::from_utf8(body).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Reads events until `take` reports that the answer is complete.
    pub(super) async fn read_events(
        &self,
        mut response: Response,
        mut take: impl FnMut(&Event) -> Result<bool, ProviderFailure>,
    ) -> Result<(), ProviderFailure> {
        let mut parser = EventParser::default();
        let mut events = Vec::new();
        let mut bytes = 0;
        while let Some(piece) = self.piece(&mut response).await? {
            bytes += piece.len();
            let too_long = parser.push(&piece, |event| events.push(event)).is_err();
            for event in events.drain(..) {
                if take(&event)? {
                    return Ok(());
                }
            }
            if too_long || bytes > self.options.answer_bytes {
                return Err(ProviderFailure::TooLong);
            }
        }
        if let Some(event) = parser.finish().map_err(|_| ProviderFailure::TooLong)? {
            take(&event)?;
        }
        Ok(())
    }

    async fn piece(
        &self,
        response: &mut Response,
    ) -> Result<Option<impl AsRef<[u8]> + std::ops::Deref<Target = [u8]>>, ProviderFailure> {
        response.chunk().await.map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &reqwest::Error) -> ProviderFailure {
        if error.is_timeout() {
            let after = if error.is_connect() { self.options.connect_timeout } else { self.options.silence_timeout };
            return ProviderFailure::TimedOut(after);
        }
        ProviderFailure::Connection(innermost(error))
    }
}

/// Returns the innermost cause of an error, because the outer ones only add the URL.
fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn checked_address(base_url: &str) -> Result<String, ConnectError> {
    let invalid = || ConnectError::Address(redact_address(base_url));
    let url = reqwest::Url::parse(base_url).map_err(|_| invalid())?;
    let is_valid = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none();
    if is_valid { Ok(base_url.trim_end_matches('/').to_owned()) } else { Err(invalid()) }
}

fn default_headers(key: Option<&Secret>, additional: &[(&'static str, &'static str)]) -> HeaderMap {
    let additional =
        additional.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let mut headers: HeaderMap = additional.collect();
    if let Some(key) = key {
        let value = format!("Bearer {}", key.reveal());
        let mut value = HeaderValue::from_str(&value).expect("a key contains only printable ASCII");
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    headers
}

/// Builds the TLS configuration for clients. It trusts the system's certificates or, if there are none, the bundled
/// certificates of Mozilla.
///
/// # Errors
/// `Tls` if the configuration fails.
pub fn client_tls() -> Result<rustls::ClientConfig, ConnectError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectError::Tls(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Returns the wait that a provider requests: `retry-after-ms`, or `retry-after` in seconds. Ignores dates, because model
/// providers do not send them and clocks differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|millis| millis / 1000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_validated() {
        for (address, expected) in [
            ("https://api.openai.com/v1/", Some("https://api.openai.com/v1")),
            ("http://127.0.0.1:11434/v1", Some("http://127.0.0.1:11434/v1")),
            ("api.openai.com", None),
            ("file:///etc/passwd", None),
            ("https://user:pass@example.com", None),
            ("https://example.com/?key=1", None),
        ] {
            assert_eq!(checked_address(address).ok().as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn retry_after_headers_are_parsed() {
        let parsed = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            retry_after(&headers)
        };
        assert_eq!(parsed("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(parsed("retry-after", "0.25"), Some(Duration::from_millis(250)));
        assert_eq!(parsed("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        for invalid in ["-1", "inf", "NaN", "1e300", "Wed, 21 Oct 2026 07:28:00 GMT", ""] {
            assert_eq!(parsed("retry-after", invalid), None, "{invalid}");
        }
    }
}
