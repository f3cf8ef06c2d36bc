//! Access to the compatibility endpoints with the key that all their clients share, which is sent in `?key=` or `x-api-key`.
//!
//! The server's own keys are accepted as well. Without a shared key, these endpoints have the same access rules as all others.

use std::fmt;
use std::time::Instant;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use threadkeep::Scope;
use threadkeep_service::{Caller, KeyRole, Quota, RateLimit, Sender, Source};

use crate::app::App;
use crate::error::{ApiError, Result};
use crate::input::QueryParams;
use crate::middleware::LoggedResponse;
use crate::route_layer::Next;
use crate::security::authenticate::{authenticate, invalid_key, peer, too_many_guesses};
use crate::security::local::LocalAccess;

/// The default rate limit of all clients with the shared key together.
const DEFAULT_RATE: RateLimit = RateLimit { per_minute: 600 };
/// The default quota of all clients with the shared key together.
const DEFAULT_QUOTA: Quota = Quota { per_day: 100_000 };

/// The key that all clients of the compatibility endpoints share. Only the hash of the key is kept in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey([u8; 32]);

impl SharedKey {
    /// Creates a shared key; `None` if the text is blank.
    #[must_use]
    pub fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(Sha256::digest(key.as_bytes()).into()))
    }

    fn matches(&self, candidate: &str) -> bool {
        self.0.ct_eq(&Sha256::digest(candidate.as_bytes())).into()
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// Runs the action if the request has the shared key or one of the server's own keys. Wrong keys are counted as guesses.
pub(crate) async fn admit(app: &App, role: KeyRole, mut request: Request, next: Next<'_>) -> LoggedResponse {
    let Some(shared) = &app.options().shared_key else { return authenticate(app, role, request, next).await };
    let (key, source) = match (read_key(&request), peer(request.extensions())) {
        (Ok(key), Ok(peer)) => (key, Source::of(peer, forwarded_for(request.headers()))),
        (Err(error), _) | (_, Err(error)) => return error.into(),
    };
    match caller_with_shared_key(app, shared, key.as_deref(), source).await {
        Ok(Some(caller)) => {
            request.extensions_mut().insert(caller);
            return next.run(request).await.into();
        }
        Ok(None) => {}
        Err(error) => return error.into(),
    }
    let response = admit_own_key(app, role, request, next).await;
    let is_wrong = key.is_some() && response.response.status() == StatusCode::UNAUTHORIZED;
    match is_wrong.then(|| app.shared_key_guesses().record_failure(source, Instant::now())) {
        Some(Err(wait)) => too_many_guesses(wait).into(),
        Some(Ok(())) | None => response,
    }
}

/// Returns the caller if `key` is the shared key; otherwise `None`.
async fn caller_with_shared_key(
    app: &App,
    shared: &SharedKey,
    key: Option<&str>,
    source: Source,
) -> Result<Option<Caller>> {
    let Some(key) = key else { return Ok(None) };
    app.shared_key_guesses().admit(source, Instant::now()).map_err(too_many_guesses)?;
    if !shared.matches(key) {
        return Ok(None);
    }
    app.shared_key_guesses().record_success(source, Instant::now());
    let options = app.options();
    app.count("shared", options.rate_limit.or(Some(DEFAULT_RATE)), options.quota.or(Some(DEFAULT_QUOTA))).await?;
    let scope = Scope::Tenant(options.local_scope.tenant_id().clone());
    Ok(Some(Sender { name: "shared key".to_owned(), scope, roles: vec![KeyRole::Write] }.into()))
}

/// Runs the action if the request has one of the server's own keys, or the local token if the server has no keys.
async fn admit_own_key(app: &App, role: KeyRole, request: Request, next: Next<'_>) -> LoggedResponse {
    let has_keys = match &app.options().local_access {
        LocalAccess::Token(_) => Ok(true),
        LocalAccess::Disabled | LocalAccess::ThisMachine => app.needs_key().await,
    };
    match has_keys {
        Ok(true) => authenticate(app, role, request, next).await,
        Ok(false) => invalid_key().into(),
        Err(error) => ApiError::from(error).into(),
    }
}

/// Returns the value of the last `X-Forwarded-For` header, to which the last proxy appended an address.
fn forwarded_for(headers: &HeaderMap) -> Option<&str> {
    headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()
}

/// Reads the key from the query, or from the header if the query has none.
fn read_key(request: &Request) -> Result<Option<String>> {
    let in_query = QueryParams::read(request.uri().query().unwrap_or_default()).take("key")?;
    let in_header = request.headers().get("x-api-key").and_then(|key| key.to_str().ok());
    Ok(in_query.or_else(|| in_header.map(str::to_owned)))
}
