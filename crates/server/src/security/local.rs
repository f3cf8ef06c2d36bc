//! Access with the local token, which is used as long as no key has ever been created.
//!
//! Behind a local proxy all clients appear local, and `loopback` detects only proxies that add headers. So callers must prove
//! that they know a secret. Programs send the token like a key. A page in a browser exchanges it for a cookie, because browsers
//! do not let pages set headers on WebSockets and server-sent events.
//!
//! A cookie consists of its expiry and a MAC over that expiry and the host in the browser's address bar, keyed with the token.
//! So the server stores no sessions, and a cookie is valid on all instances with the same token.

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
/// The valid lengths of a token.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=1024;
/// The lifetime of a cookie.
const COOKIE_SECONDS: i64 = 24 * 60 * 60;
/// The lifetime of a pass.
const PASS_SECONDS: i64 = 120;
const PASS: &str = "pass";

/// Who may call as long as no key has ever been created.
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

/// A secret that authenticates local callers. Only its hash and a MAC key derived from it are kept in memory.
#[derive(Clone)]
pub struct LocalToken {
    hash: [u8; 32],
    mac_key: Arc<hmac::Key>,
    /// Chosen by a person, and so possibly weak.
    is_chosen: bool,
}

/// The reason why a token cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalTokenError {
    /// The text is too short or too long, or cannot be sent in a header.
    #[error("a token must have 16 to 1024 visible ASCII characters and no spaces")]
    Form,
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
    /// `Form` if the text is too short, too long, or cannot be sent in a header.
    pub fn new(text: &str) -> Result<Self, LocalTokenError> {
        if !LENGTHS.contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(LocalTokenError::Form);
        }
        let mac_key = Arc::new(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()));
        Ok(Self { hash: Sha256::digest(text).into(), mac_key, is_chosen: !is_minted(text) })
    }

    /// Creates a pass, which a page can exchange for a cookie within two minutes. It replaces the token in URLs that are passed
    /// to a browser, because others may read them in the list of processes and in the browser's history.
    #[must_use]
    pub fn pass(&self, now: Timestamp) -> String {
        self.sign(PASS, seconds(now) + PASS_SECONDS)
    }

    fn matches(&self, candidate: &str) -> bool {
        self.hash.ct_eq(&Sha256::digest(candidate)).into()
    }

    /// Signs an expiry for a purpose.
    fn sign(&self, purpose: &str, until: i64) -> String {
        let tag = hmac::sign(&self.mac_key, signed_text(purpose, until).as_bytes());
        format!("{until}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// Returns the expiry of a text signed for a purpose; `None` if the text is invalid or has expired.
    fn verify(&self, purpose: &str, text: &str, now: i64, lifetime: i64) -> Option<i64> {
        let (until, tag) = text.split_once('.')?;
        let until: i64 = until.parse().ok().filter(|until| (now + 1..=now + lifetime).contains(until))?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&self.mac_key, signed_text(purpose, until).as_bytes(), &tag).ok()?;
        Some(until)
    }
}

impl fmt::Debug for LocalToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[token]")
    }
}

/// Whether the text is a generated token, as opposed to one chosen by a person.
pub fn is_minted(text: &str) -> bool {
    let random = text.strip_prefix(PREFIX).and_then(|random| URL_SAFE_NO_PAD.decode(random).ok());
    random.is_some_and(|random| random.len() == RANDOM_BYTES)
}

/// Checks a request without a key. Returns when its cookie expires, in seconds; `None` if it needs none. The token is checked
/// first, so that clients without it get no other error.
pub(super) fn admit(app: &App, request: &Parts, credentials: Option<&str>) -> Result<Option<i64>, ApiError> {
    let peer = peer(&request.extensions)?;
    let until = match (&app.options().local_access, credentials) {
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
    Ok(until)
}

/// Exchanges the token, or a pass, for a cookie.
pub(crate) fn exchange(app: &App, request: &Parts, secret: &str) -> Result<HeaderValue, ApiError> {
    let peer = peer(&request.extensions)?;
    loopback::check(peer, &request.uri, &request.headers)?;
    let LocalAccess::Token(token) = &app.options().local_access else { return Err(invalid_key()) };
    if secret.is_empty() {
        return Err(no_token());
    }
    let now = seconds(app.memory().now());
    let is_right = token.matches(secret) || token.verify(PASS, secret, now, PASS_SECONDS).is_some();
    count_guess(app, token, peer, is_right)?;
    let host = loopback::host(&request.uri, &request.headers).unwrap_or_default();
    let (name, value) = (cookie_name(host), token.sign(&cookie_purpose(host), now + COOKIE_SECONDS));
    let secure = if app.options().tls.is_some() { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::try_from(cookie).map_err(|_| ApiError::internal("the cookie is not a valid header value"))
}

/// Counts a guess. After too many wrong ones, even the right token is rejected if a person chose it. A generated token cannot be
/// guessed, so its owner is always admitted.
fn count_guess(app: &App, token: &LocalToken, peer: SocketAddr, is_right: bool) -> Result<(), ApiError> {
    // Ignores headers of proxies, which the client could have forged.
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
    Err(no_token())
}

/// Checks the cookie of a request and returns its expiry. Requests that change something and WebSockets must provably come from
/// a page of this server, because browsers also send cookies with requests from pages of the same host on other ports.
fn check_cookie(app: &App, token: &LocalToken, request: &Parts) -> Result<i64, ApiError> {
    let headers = &request.headers;
    let host = loopback::host(&request.uri, headers).unwrap_or_default();
    let (purpose, now) = (cookie_purpose(host), seconds(app.memory().now()));
    let until = cookies(headers, &cookie_name(host))
        .find_map(|value| token.verify(&purpose, value, now, COOKIE_SECONDS))
        .ok_or_else(no_token)?;
    let only_reads = matches!(request.method, Method::GET | Method::HEAD) && !headers.contains_key(header::UPGRADE);
    if only_reads || loopback::is_own_page(&request.uri, headers) {
        return Ok(until);
    }
    Err(ApiError::forbidden(
        "other_origin",
        "this request is accepted with a cookie only from a page of this server; send the token instead",
    ))
}

/// Returns the name of the cookie. It contains the port, because browsers share cookies between all ports of a host.
fn cookie_name(host: &str) -> String {
    let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| port.parse::<u16>().is_ok());
    format!("threadkeep-{}", port.unwrap_or("80"))
}

/// Returns the purpose of a cookie: it is valid for one host and port.
fn cookie_purpose(host: &str) -> String {
    format!("cookie {}", host.to_ascii_lowercase())
}

fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(key, _)| *key == name).map(|(_, value)| value)
}

fn signed_text(purpose: &str, until: i64) -> String {
    format!("threadkeep {purpose}\n{until}")
}

fn seconds(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1000)
}

fn no_token() -> ApiError {
    let message = "missing or invalid token of this server; `threadkeep serve` prints where the token is stored, and \
                   `threadkeep open` opens the page with it";
    ApiError::new(StatusCode::UNAUTHORIZED, "invalid_key", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minted_tokens_are_long_and_unique() {
        let (one, other) = (LocalToken::mint().unwrap(), LocalToken::mint().unwrap());
        assert!(one != other && is_minted(&one) && one.len() == PREFIX.len() + 43, "{one}");
        let token = LocalToken::new(&one).unwrap();
        assert!(token.matches(&one) && !token.matches(&other) && !token.is_chosen);
        assert!(!format!("{token:?}").contains(&one));
    }

    #[test]
    fn short_or_unsendable_tokens_are_rejected() {
        for text in ["", "tooshort", "with a space in the middle", "ñandúñandúñandúñandú", &"x".repeat(2000)] {
            assert_eq!(LocalToken::new(text).unwrap_err(), LocalTokenError::Form, "{text}");
        }
        assert!(LocalToken::new("a-chosen-one-of-some-length").unwrap().is_chosen);
    }

    #[test]
    fn signatures_are_valid_for_their_purpose_time_and_token_only() {
        let (token, other) = (LocalToken::new(&"a".repeat(20)).unwrap(), LocalToken::new(&"b".repeat(20)).unwrap());
        let signed = token.sign("cookie localhost:1", 150);
        let until = |token: &LocalToken, purpose, signed: &str, now| token.verify(purpose, signed, now, 100);
        assert_eq!(until(&token, "cookie localhost:1", &signed, 100), Some(150));
        assert_eq!(until(&token, "cookie localhost:1", &signed, 150), None, "it has expired");
        assert_eq!(until(&token, "cookie localhost:1", &signed, 49), None, "its lifetime is too long");
        assert_eq!(until(&token, "cookie localhost:2", &signed, 100), None);
        assert_eq!(until(&token, "pass", &signed, 100), None);
        assert_eq!(until(&other, "cookie localhost:1", &signed, 100), None);
        for broken in ["", ".", "150", "150.", &signed.replace("150", "151"), &signed[..signed.len() - 2], "x.y"] {
            assert_eq!(until(&token, "cookie localhost:1", broken, 100), None, "{broken}");
        }
    }

    #[test]
    fn cookies_are_found_by_port() {
        let headers: HeaderMap =
            [(header::COOKIE, "a=1; threadkeep-7437=x; threadkeep-7438=y"), (header::COOKIE, "b=2")]
                .into_iter()
                .map(|(name, value)| (name, HeaderValue::from_static(value)))
                .collect();
        let of = |host: &str| cookies(&headers, &cookie_name(host)).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!((of("localhost:7437"), of("[::1]:7438")), (vec!["x".to_owned()], vec!["y".to_owned()]));
        assert!(of("localhost").is_empty() && of("[::1]").is_empty());
    }
}
