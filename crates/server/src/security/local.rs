//! Access with the local token, which is used as long as no key has ever been created.
//!
//! Behind a local proxy all clients appear local, and `loopback` detects only proxies that add headers. So callers must prove
//! that they know a secret. Programs send the token like a key. A page in a browser exchanges the token for a cookie, because
//! browsers do not let pages set headers on WebSockets and server-sent events.
//!
//! A cookie consists of its expiry time and a MAC over that time and the host in the browser's address bar, keyed with the token.
//! So the server stores no sessions, and a cookie is valid on all instances with the same token. A pass is a signed expiry time
//! too; it can be exchanged for a cookie instead of the token, but only within two minutes.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use threadkeep::Timestamp;
use threadkeep_service::Source;

use super::authenticate::{invalid_key, peer, too_many_guesses};
use super::loopback;
use crate::app::App;
use crate::error::ApiError;

/// The prefix of generated tokens.
const PREFIX: &str = "tkl_";
const RANDOM_BYTES: usize = 32;
/// The valid lengths of a token, in bytes.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=1024;
/// The lifetime of a cookie, in seconds.
const COOKIE_SECONDS: i64 = 24 * 60 * 60;
/// The lifetime of a pass, in seconds.
const PASS_SECONDS: i64 = 120;
/// The purpose for which passes are signed.
const PASS: &str = "pass";

/// The callers that are accepted as long as no key has ever been created.
#[derive(Clone, Debug, Default)]
pub enum LocalAccess {
    /// No one.
    #[default]
    Disabled,
    /// Clients on this machine that send this token.
    Token(LocalToken),
    /// Every program on this machine, and every client of a proxy on this machine.
    ThisMachine,
}

/// A secret that authenticates local callers. Only the hash of the secret and a MAC key derived from it are kept in memory.
#[derive(Clone)]
pub struct LocalToken {
    hash: [u8; 32],
    mac_key: Arc<hmac::Key>,
    /// Whether a person chose the token, so it may be weak.
    is_chosen: bool,
}

/// The reason why a token cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalTokenError {
    /// The text is too short or too long, or cannot be sent in a header.
    #[error("a token must consist of 16 to 1024 visible ASCII characters, without spaces")]
    InvalidFormat,
    /// The system returned no random bytes.
    #[error("cannot generate random bytes")]
    Randomness,
}

impl LocalToken {
    /// Generates the text of a random token.
    ///
    /// # Errors
    /// `Randomness` if the system returns no random bytes.
    pub fn mint() -> Result<String, LocalTokenError> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(|_| LocalTokenError::Randomness)?;
        Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Creates a token from its text.
    ///
    /// # Errors
    /// `InvalidFormat` if the text is too short, too long, or cannot be sent in a header.
    pub fn new(text: &str) -> Result<Self, LocalTokenError> {
        if !TOKEN_BYTES.contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(LocalTokenError::InvalidFormat);
        }
        let mac_key = Arc::new(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()));
        Ok(Self { hash: Sha256::digest(text).into(), mac_key, is_chosen: !is_generated(text) })
    }

    /// Creates a pass, which a page can exchange for a cookie within two minutes. URLs that are passed to a browser contain a pass
    /// instead of the token, because such URLs can be read in the list of processes and in the browser's history.
    #[must_use]
    pub fn pass(&self, now: Timestamp) -> String {
        self.sign(PASS, unix_seconds(now) + PASS_SECONDS)
    }

    fn matches(&self, candidate: &str) -> bool {
        self.hash.ct_eq(&Sha256::digest(candidate)).into()
    }

    /// Signs an expiry time for a purpose. Returns the time and its MAC, separated by a dot. The time is in seconds since 1970.
    fn sign(&self, purpose: &str, expires_at: i64) -> String {
        let mac = hmac::sign(&self.mac_key, signed_text(purpose, expires_at).as_bytes());
        format!("{expires_at}.{}", URL_SAFE_NO_PAD.encode(mac))
    }

    /// Returns the expiry time in text that was signed for a purpose. Returns `None` if the text is invalid, has expired, or
    /// expires later than `lifetime` from now. All times are in seconds.
    fn verify(&self, purpose: &str, text: &str, now: i64, lifetime: i64) -> Option<i64> {
        let (expires_at, mac) = text.split_once('.')?;
        let expires_at: i64 = expires_at.parse().ok().filter(|time| (now + 1..=now + lifetime).contains(time))?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        hmac::verify(&self.mac_key, signed_text(purpose, expires_at).as_bytes(), &mac).ok()?;
        Some(expires_at)
    }
}

impl fmt::Debug for LocalToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[token]")
    }
}

/// Whether the text has the form of a generated token, rather than of a token that a person chose.
pub fn is_generated(text: &str) -> bool {
    let random = text.strip_prefix(PREFIX).and_then(|random| URL_SAFE_NO_PAD.decode(random).ok());
    random.is_some_and(|random| random.len() == RANDOM_BYTES)
}

/// Checks that a request without a valid key comes from a local caller. Returns the time at which the cookie of the request
/// expires, in seconds since 1970; `None` if the request is admitted without a cookie. The token is checked first, so that
/// clients without the token receive no other error.
pub(super) fn check_request(app: &App, request: &Parts, credentials: Option<&str>) -> Result<Option<i64>, ApiError> {
    let peer = peer(&request.extensions)?;
    let expires_at = match (&app.options().local_access, credentials) {
        (LocalAccess::Disabled, _) => return Err(invalid_key()),
        // Any key is accepted, because some clients cannot omit it.
        (LocalAccess::ThisMachine, _) => None,
        (LocalAccess::Token(token), None) => Some(check_cookie(app, token, request)?),
        (LocalAccess::Token(token), Some(credentials)) => {
            count_guess(app, token, peer, token.matches(credentials))?;
            None
        }
    };
    loopback::check(peer, &request.uri, &request.headers)?;
    Ok(expires_at)
}

/// Exchanges the token or a pass for a cookie. Returns the value of the `Set-Cookie` header.
pub(crate) fn exchange(app: &App, request: &Parts, secret: &str) -> Result<HeaderValue, ApiError> {
    let peer = peer(&request.extensions)?;
    loopback::check(peer, &request.uri, &request.headers)?;
    let LocalAccess::Token(token) = &app.options().local_access else { return Err(invalid_key()) };
    if secret.is_empty() {
        return Err(invalid_token());
    }
    let now = unix_seconds(app.memory().now());
    let is_right = token.matches(secret) || token.verify(PASS, secret, now, PASS_SECONDS).is_some();
    count_guess(app, token, peer, is_right)?;
    let host = loopback::host(&request.uri, &request.headers).unwrap_or_default();
    let (name, value) = (cookie_name(host), token.sign(&cookie_purpose(host), now + COOKIE_SECONDS));
    let secure = if app.options().tls.is_some() { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::try_from(cookie).map_err(|_| ApiError::internal("the cookie is not a valid header value"))
}

/// Counts an attempt to guess the token, and returns an error if the guess is wrong. After too many wrong guesses, even the right
/// token is rejected if a person chose it. A generated token cannot be guessed, so its owner is always admitted.
fn count_guess(app: &App, token: &LocalToken, peer: SocketAddr, is_right: bool) -> Result<(), ApiError> {
    // Headers of proxies are ignored, because the client could have forged them.
    let source = Source::of(peer, None);
    let (guesses, now) = (app.local_guesses(), Instant::now());
    if token.is_chosen {
        guesses.admit(source, now).map_err(too_many_guesses)?;
    }
    if is_right {
        guesses.record_success(source, now);
        return Ok(());
    }
    guesses.record_failure(source, now).map_err(too_many_guesses)?;
    Err(invalid_token())
}

/// Checks the cookie of a request and returns its expiry time in seconds. WebSockets and requests that may change something must
/// provably come from a page of this server, because browsers also send cookies with requests from pages of the same host on
/// other ports.
fn check_cookie(app: &App, token: &LocalToken, request: &Parts) -> Result<i64, ApiError> {
    let headers = &request.headers;
    let host = loopback::host(&request.uri, headers).unwrap_or_default();
    let (purpose, now) = (cookie_purpose(host), unix_seconds(app.memory().now()));
    let expires_at = cookies(headers, &cookie_name(host))
        .find_map(|value| token.verify(&purpose, value, now, COOKIE_SECONDS))
        .ok_or_else(invalid_token)?;
    let only_reads = matches!(request.method, Method::GET | Method::HEAD) && !headers.contains_key(header::UPGRADE);
    if only_reads || loopback::is_own_page(&request.uri, headers) {
        return Ok(expires_at);
    }
    Err(ApiError::forbidden(
        "other_origin",
        "a request with a cookie is accepted only from a page of this server; send the token instead",
    ))
}

/// Returns the name of the cookie. It contains the port, because browsers share cookies between all ports of a host.
fn cookie_name(host: &str) -> String {
    let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| port.parse::<u16>().is_ok());
    format!("threadkeep-{}", port.unwrap_or("80"))
}

/// Returns the purpose for which a cookie is signed, so that it is valid for only one host and port.
fn cookie_purpose(host: &str) -> String {
    format!("cookie {}", host.to_ascii_lowercase())
}

/// Returns the values of all cookies with this name.
fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(key, _)| *key == name).map(|(_, value)| value)
}

fn signed_text(purpose: &str, expires_at: i64) -> String {
    format!("threadkeep {purpose}\n{expires_at}")
}

fn unix_seconds(time: Timestamp) -> i64 {
    time.as_millis().div_euclid(1000)
}

fn invalid_token() -> ApiError {
    let message = "missing or invalid token of this server; `threadkeep serve` prints where the token is stored, and \
                   `threadkeep open` opens the page with it";
    ApiError::new(StatusCode::UNAUTHORIZED, "invalid_key", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_tokens_are_long_and_unique() {
        let (text, other_text) = (LocalToken::mint().unwrap(), LocalToken::mint().unwrap());
        assert!(text != other_text && is_generated(&text) && text.len() == PREFIX.len() + 43, "{text}");
        let token = LocalToken::new(&text).unwrap();
        assert!(token.matches(&text) && !token.matches(&other_text) && !token.is_chosen);
        assert!(!format!("{token:?}").contains(&text));
    }

    #[test]
    fn tokens_with_invalid_length_or_characters_are_rejected() {
        for text in ["", "tooshort", "with a space in the middle", "ñandúñandúñandúñandú", &"x".repeat(2000)] {
            assert_eq!(LocalToken::new(text).unwrap_err(), LocalTokenError::InvalidFormat, "{text}");
        }
        assert!(LocalToken::new("a-chosen-one-of-some-length").unwrap().is_chosen);
    }

    #[test]
    fn signatures_are_valid_only_for_their_purpose_time_and_token() {
        let (token, other) = (LocalToken::new(&"a".repeat(20)).unwrap(), LocalToken::new(&"b".repeat(20)).unwrap());
        let signed = token.sign("cookie localhost:1", 150);
        let verify = |token: &LocalToken, purpose, signed: &str, now| token.verify(purpose, signed, now, 100);
        assert_eq!(verify(&token, "cookie localhost:1", &signed, 100), Some(150));
        assert_eq!(verify(&token, "cookie localhost:1", &signed, 150), None, "the signature has expired");
        assert_eq!(verify(&token, "cookie localhost:1", &signed, 49), None, "the lifetime is too long");
        assert_eq!(verify(&token, "cookie localhost:2", &signed, 100), None);
        assert_eq!(verify(&token, "pass", &signed, 100), None);
        assert_eq!(verify(&other, "cookie localhost:1", &signed, 100), None);
        for broken in ["", ".", "150", "150.", &signed.replace("150", "151"), &signed[..signed.len() - 2], "x.y"] {
            assert_eq!(verify(&token, "cookie localhost:1", broken, 100), None, "{broken}");
        }
    }

    #[test]
    fn cookies_are_found_by_port() {
        let headers: HeaderMap =
            [(header::COOKIE, "a=1; threadkeep-7437=x; threadkeep-7438=y"), (header::COOKIE, "b=2")]
                .into_iter()
                .map(|(name, value)| (name, HeaderValue::from_static(value)))
                .collect();
        let cookies_of = |host: &str| cookies(&headers, &cookie_name(host)).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(cookies_of("localhost:7437"), ["x"]);
        assert_eq!(cookies_of("[::1]:7438"), ["y"]);
        assert!(cookies_of("localhost").is_empty() && cookies_of("[::1]").is_empty());
    }
}
