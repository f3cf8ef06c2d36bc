//! Who may call while no key was ever made: the holder of the token of this machine's user.
//!
//! A proxy on this machine makes the whole world look like this machine, and `loopback` only sees the proxies that say what
//! they are. So a caller shows what a stranger cannot have. Programs send the token as they send a key. A page in a browser
//! exchanges it for a cookie, because a browser sends no headers of a page's own with WebSockets and server-sent events.
//!
//! A cookie is an instant and a code over that instant and the address that the browser sees, made with the token. So the
//! server keeps nothing, every instance with this token takes it, and none with another does.

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

use super::authenticate::{not_good, peer, too_many_guesses};
use super::loopback;
use crate::app::App;
use crate::error::ApiError;

/// What a token that the server made begins with.
const PREFIX: &str = "tkl_";
const RANDOM_BYTES: usize = 32;
/// Characters of a token that somebody chose.
const CHOSEN: std::ops::RangeInclusive<usize> = 16..=1024;
/// For how long a cookie is good.
const COOKIE_SECONDS: i64 = 24 * 60 * 60;
/// For how long a pass is good.
const PASS_SECONDS: i64 = 120;
const PASS: &str = "pass";

/// Who may call while no key was ever made.
#[derive(Clone, Debug, Default)]
pub enum LocalAccess {
    /// Nobody.
    #[default]
    Nobody,
    /// Whoever shows this token, from this machine.
    Token(LocalToken),
    /// Every program on this machine, and with it everyone for whom a proxy on this machine calls.
    ThisMachine,
}

/// The token of this machine's user. It is kept as its hash and as a key of codes.
#[derive(Clone)]
pub struct LocalToken {
    hash: [u8; 32],
    codes: Arc<hmac::Key>,
    /// Somebody chose it, and may have chosen badly.
    is_chosen: bool,
}

/// Why a text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalTokenError {
    /// It can be guessed, or no header can carry it.
    #[error("a token has 16 to 1024 visible ASCII characters and no spaces")]
    Form,
    /// The system gave no random bytes.
    #[error("the system gives no random bytes")]
    Randomness,
}

impl LocalToken {
    /// Makes the text of a new token.
    ///
    /// # Errors
    /// `Randomness` if the system gives no random bytes.
    pub fn mint() -> Result<String, LocalTokenError> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(|_| LocalTokenError::Randomness)?;
        Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Takes the text of a token.
    ///
    /// # Errors
    /// `Form` if the text is too short, too long, or cannot be sent in a header.
    pub fn new(text: &str) -> Result<Self, LocalTokenError> {
        if !CHOSEN.contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(LocalTokenError::Form);
        }
        let codes = Arc::new(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()));
        Ok(Self { hash: Sha256::digest(text).into(), codes, is_chosen: !is_minted(text) })
    }

    /// What a page may exchange for a cookie instead of the token, within two minutes: an address that is handed to a
    /// browser can be read by others, in the list of processes and in the browser's history.
    #[must_use]
    pub fn pass(&self, now: Timestamp) -> String {
        self.code(PASS, seconds(now) + PASS_SECONDS)
    }

    fn is(&self, given: &str) -> bool {
        self.hash.ct_eq(&Sha256::digest(given)).into()
    }

    /// An instant, and a code that says that it was given for a purpose.
    fn code(&self, purpose: &str, until: i64) -> String {
        let tag = hmac::sign(&self.codes, signed(purpose, until).as_bytes());
        format!("{until}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// Until when a code is good that was given for a purpose; `None` for any other text.
    fn until(&self, purpose: &str, code: &str, now: i64, lifetime: i64) -> Option<i64> {
        let (until, tag) = code.split_once('.')?;
        let until: i64 = until.parse().ok().filter(|until| (now + 1..=now + lifetime).contains(until))?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&self.codes, signed(purpose, until).as_bytes(), &tag).ok()?;
        Some(until)
    }
}

impl fmt::Debug for LocalToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[token]")
    }
}

/// Whether the text is a token that a server made, whose owner must not be kept out by the guesses of others.
pub fn is_minted(text: &str) -> bool {
    let random = text.strip_prefix(PREFIX).and_then(|random| URL_SAFE_NO_PAD.decode(random).ok());
    random.is_some_and(|random| random.len() == RANDOM_BYTES)
}

/// Lets in a caller without a key, and says until when. The token comes first: without it a stranger learns nothing else.
pub(super) fn admit(app: &App, request: &Parts, shown: Option<&str>) -> Result<Option<i64>, ApiError> {
    let peer = peer(&request.extensions)?;
    let until = match (&app.options().local_access, shown) {
        (LocalAccess::Nobody, _) => return Err(not_good()),
        // A client that cannot do without a key shows any.
        (LocalAccess::ThisMachine, _) => None,
        (LocalAccess::Token(token), None) => Some(of_cookie(app, token, request)?),
        (LocalAccess::Token(token), Some(shown)) => {
            guess(app, token, peer, token.is(shown))?;
            None
        }
    };
    loopback::check(peer, &request.uri, &request.headers)?;
    Ok(until)
}

/// Exchanges the token, or a pass, for a cookie.
pub(crate) fn exchange(app: &App, request: &Parts, shown: &str) -> Result<HeaderValue, ApiError> {
    let peer = peer(&request.extensions)?;
    loopback::check(peer, &request.uri, &request.headers)?;
    let LocalAccess::Token(token) = &app.options().local_access else { return Err(not_good()) };
    if shown.is_empty() {
        return Err(no_token());
    }
    let now = seconds(app.memory().now());
    let is_right = token.is(shown) || token.until(PASS, shown, now, PASS_SECONDS).is_some();
    guess(app, token, peer, is_right)?;
    let host = loopback::host(&request.uri, &request.headers).unwrap_or_default();
    let (name, value) = (cookie_name(host), token.code(&cookie_purpose(host), now + COOKIE_SECONDS));
    let secure = if app.options().tls.is_some() { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::try_from(cookie).map_err(|_| ApiError::internal("a cookie that is no header"))
}

/// Counts guesses. A token that somebody chose is not looked at where there were too many; one that a server made is found by
/// no number of them, so that its owner is always let in.
fn guess(app: &App, token: &LocalToken, peer: SocketAddr, is_right: bool) -> Result<(), ApiError> {
    // For whom a proxy speaks is not asked: the guesser can be the one who says it.
    let source = Source::of(peer, None);
    let (guesses, now) = (app.local_guesses(), Instant::now());
    if token.is_chosen {
        guesses.admit(source, now).map_err(too_many_guesses)?;
    }
    if is_right {
        guesses.note_good(source, now);
        return Ok(());
    }
    guesses.count_wrong(source, now).map_err(too_many_guesses)?;
    Err(no_token())
}

/// Until when the cookie is good that a request carries. What changes something, and a socket, has to come from a page of
/// this server for sure: browsers send cookies to a host with requests of its other ports.
fn of_cookie(app: &App, token: &LocalToken, request: &Parts) -> Result<i64, ApiError> {
    let headers = &request.headers;
    let host = loopback::host(&request.uri, headers).unwrap_or_default();
    let (purpose, now) = (cookie_purpose(host), seconds(app.memory().now()));
    let until = cookies(headers, &cookie_name(host))
        .find_map(|value| token.until(&purpose, value, now, COOKIE_SECONDS))
        .ok_or_else(no_token)?;
    let only_reads = matches!(request.method, Method::GET | Method::HEAD) && !headers.contains_key(header::UPGRADE);
    if only_reads || loopback::is_own_page(&request.uri, headers) {
        return Ok(until);
    }
    Err(ApiError::forbidden("other_origin", "with a cookie only a page of this server may do that: send the token"))
}

/// The name holds the port, as a host's cookies are those of all its ports.
fn cookie_name(host: &str) -> String {
    let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| port.parse::<u16>().is_ok());
    format!("threadkeep-{}", port.unwrap_or("80"))
}

/// A cookie is good for the address that the browser saw.
fn cookie_purpose(host: &str) -> String {
    format!("cookie {}", host.to_ascii_lowercase())
}

fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let given = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = given.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(given, _)| *given == name).map(|(_, value)| value)
}

fn signed(purpose: &str, until: i64) -> String {
    format!("threadkeep {purpose}\n{until}")
}

fn seconds(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1000)
}

fn no_token() -> ApiError {
    let message = "show the token of this server: `threadkeep serve` says where it is, `threadkeep open` opens the page \
                   with it";
    ApiError::new(StatusCode::UNAUTHORIZED, "invalid_key", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_token_is_long_and_no_two_are_alike() {
        let (one, other) = (LocalToken::mint().unwrap(), LocalToken::mint().unwrap());
        assert!(one != other && is_minted(&one) && one.len() == PREFIX.len() + 43, "{one}");
        let token = LocalToken::new(&one).unwrap();
        assert!(token.is(&one) && !token.is(&other) && !token.is_chosen);
        assert!(!format!("{token:?}").contains(&one));
    }

    #[test]
    fn what_can_be_guessed_or_not_be_sent_is_no_token() {
        for text in ["", "tooshort", "with a space in the middle", "ñandúñandúñandúñandú", &"x".repeat(2000)] {
            assert_eq!(LocalToken::new(text).unwrap_err(), LocalTokenError::Form, "{text}");
        }
        assert!(LocalToken::new("a-chosen-one-of-some-length").unwrap().is_chosen);
    }

    #[test]
    fn a_code_is_good_for_its_purpose_its_time_and_its_token_alone() {
        let (token, other) = (LocalToken::new(&"a".repeat(20)).unwrap(), LocalToken::new(&"b".repeat(20)).unwrap());
        let code = token.code("cookie localhost:1", 150);
        let until = |token: &LocalToken, purpose, code: &str, now| token.until(purpose, code, now, 100);
        assert_eq!(until(&token, "cookie localhost:1", &code, 100), Some(150));
        assert_eq!(until(&token, "cookie localhost:1", &code, 150), None, "it is over");
        assert_eq!(until(&token, "cookie localhost:1", &code, 49), None, "no code is given for so long");
        assert_eq!(until(&token, "cookie localhost:2", &code, 100), None);
        assert_eq!(until(&token, "pass", &code, 100), None);
        assert_eq!(until(&other, "cookie localhost:1", &code, 100), None);
        for broken in ["", ".", "150", "150.", &code.replace("150", "151"), &code[..code.len() - 2], "x.y"] {
            assert_eq!(until(&token, "cookie localhost:1", broken, 100), None, "{broken}");
        }
    }

    #[test]
    fn a_cookie_is_found_by_the_port_of_its_server() {
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
