//! One request to a provider: bounded in time and size, its failures with everything that the provider said.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response};

use threadkeep_core::shown_address;

use super::sse::{Event, EventParser};
use super::trouble::Trouble;
use crate::Secret;

/// Bounds of calls to a provider.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long a provider may be silent, before its first byte and between two pieces.
    pub silence_timeout: Duration,
    /// How long a call may take with all its attempts.
    pub total_timeout: Duration,
    /// Attempts after the first, where another may succeed.
    pub retries: u32,
    /// Bytes of an answer that are taken.
    pub answer_bytes: usize,
    /// Through which proxy to go, for addresses that `proxy_exceptions` does not name.
    pub proxy: Option<String>,
    /// Hosts that are reached without the proxy, as in the variable `NO_PROXY`.
    pub proxy_exceptions: Option<String>,
}

impl fmt::Debug for HttpOptions {
    /// Leaves out the proxy, whose address may hold a password.
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

/// A way to one provider.
#[derive(Clone, Debug)]
pub(super) struct Http {
    client: Client,
    base_url: String,
    options: Arc<HttpOptions>,
}

/// Why there is no way to a provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address is no HTTP URL, or holds a login or a query. It is told without these.
    #[error("{0} is no address of a provider: http or https, and a host, without a login and a query")]
    Address(String),
    /// The proxy cannot be used.
    #[error("the proxy cannot be used: {0}")]
    Proxy(String),
    /// There is no TLS.
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
            // A redirect would take the key to another host.
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

    /// Sends a request; an answer that is no success is a failure with the whole body.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, Trouble> {
        let response = request.header(ACCEPT, "application/json, text/event-stream").send().await;
        let response = response.map_err(|error| self.trouble(&error))?;
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
        // What is lost of a body is not worth losing the status for.
        let body = self.read(response).await.unwrap_or_default();
        Err(Trouble::Status { status, retry_after, should_retry, body })
    }

    /// Reads a body whole.
    pub(super) async fn read(&self, mut response: Response) -> Result<String, Trouble> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece(&mut response).await? {
            if body.len() + piece.len() > self.options.answer_bytes {
                return Err(Trouble::TooLong);
            }
            body.extend_from_slice(&piece);
        }
        Ok(String::from_utf8(body).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Reads events until one of them says that it was the last.
    pub(super) async fn read_events(
        &self,
        mut response: Response,
        mut take: impl FnMut(&Event) -> Result<bool, Trouble>,
    ) -> Result<(), Trouble> {
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
                return Err(Trouble::TooLong);
            }
        }
        if let Some(event) = parser.finish().map_err(|_| Trouble::TooLong)? {
            take(&event)?;
        }
        Ok(())
    }

    async fn piece(
        &self,
        response: &mut Response,
    ) -> Result<Option<impl AsRef<[u8]> + std::ops::Deref<Target = [u8]>>, Trouble> {
        response.chunk().await.map_err(|error| self.trouble(&error))
    }

    fn trouble(&self, error: &reqwest::Error) -> Trouble {
        if error.is_timeout() {
            let after = if error.is_connect() { self.options.connect_timeout } else { self.options.silence_timeout };
            return Trouble::TimedOut(after);
        }
        Trouble::Broken(innermost(error))
    }
}

/// What lies at the bottom of an error: the outer ones name the URL and say no more.
fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn checked_address(base_url: &str) -> Result<String, ConnectError> {
    let wrong = || ConnectError::Address(shown_address(base_url));
    let url = reqwest::Url::parse(base_url).map_err(|_| wrong())?;
    let is_fit = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none();
    if is_fit { Ok(base_url.trim_end_matches('/').to_owned()) } else { Err(wrong()) }
}

fn default_headers(key: Option<&Secret>, more: &[(&'static str, &'static str)]) -> HeaderMap {
    let more = more.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let mut headers: HeaderMap = more.collect();
    if let Some(key) = key {
        let value = format!("Bearer {}", key.reveal());
        let mut value = HeaderValue::from_str(&value).expect("a key holds only printable ASCII");
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    headers
}

/// How this program meets servers: by the system's certificates; where it has none, by those of Mozilla that come with it.
///
/// # Errors
/// `Tls`.
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

/// How long a provider asks to wait: `retry-after-ms`, or `retry-after` in seconds. Dates are not read: providers of
/// models send none, and the clocks of two machines differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|millis| millis / 1000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_checked() {
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
    fn providers_say_when_to_come_again() {
        let asked = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            retry_after(&headers)
        };
        assert_eq!(asked("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(asked("retry-after", "0.25"), Some(Duration::from_millis(250)));
        assert_eq!(asked("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        for hostile in ["-1", "inf", "NaN", "1e300", "Wed, 21 Oct 2026 07:28:00 GMT", ""] {
            assert_eq!(asked("retry-after", hostile), None, "{hostile}");
        }
    }
}
