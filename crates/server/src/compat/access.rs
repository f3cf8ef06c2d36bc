//! Who may call the documents' endpoints: whoever shows the one key that their clients share, in `?key=` or `x-api-key`.
//!
//! Where there is no such key, they are open as all other routes are: to the server's own keys, and without any to the
//! holder of its token.

use std::fmt;
use std::time::Instant;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use threadkeep::Scope;
use threadkeep_service::{Caller, KeyRole, Quota, RateLimit, Sender, Source};

use crate::app::App;
use crate::edge::Answered;
use crate::error::{ApiError, Result};
use crate::gate::Next;
use crate::input::Params;
use crate::security::authenticate::{authenticate, not_good, peer, too_many_guesses};
use crate::security::local::LocalAccess;

/// Requests that all clients of the shared key may make in a minute together, where nothing else is said.
const RATE: RateLimit = RateLimit { per_minute: 600 };
/// Requests that they may make in a day together.
const QUOTA: Quota = Quota { per_day: 100_000 };

/// The key that all clients of the documents' endpoints share. It is kept as its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey([u8; 32]);

impl SharedKey {
    /// Takes a key; `None` where it is empty.
    #[must_use]
    pub fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(Sha256::digest(key.as_bytes()).into()))
    }

    fn is(&self, given: &str) -> bool {
        self.0.ct_eq(&Sha256::digest(given.as_bytes())).into()
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// What stands before these endpoints.
pub(crate) async fn admit(app: &App, role: KeyRole, mut request: Request, next: Next<'_>) -> Answered {
    let Some(shared) = &app.options().shared_key else { return authenticate(app, role, request, next).await };
    let (given, source) = match (given(&request), peer(request.extensions())) {
        (Ok(given), Ok(peer)) => (given, Source::of(peer, forwarded_for(request.headers()))),
        (Err(refused), _) | (_, Err(refused)) => return refused.into(),
    };
    match sharer(app, shared, given.as_deref(), source).await {
        Ok(Some(caller)) => {
            request.extensions_mut().insert(caller);
            return next.run(request).await.into();
        }
        Ok(None) => {}
        Err(refused) => return refused.into(),
    }
    let answered = other_key(app, role, request, next).await;
    let is_wrong = given.is_some() && answered.response.status() == StatusCode::UNAUTHORIZED;
    match is_wrong.then(|| app.guesses().count_wrong(source, Instant::now())) {
        Some(Err(wait)) => too_many_guesses(wait).into(),
        Some(Ok(())) | None => answered,
    }
}

/// Who calls with the shared key, if it is shown.
async fn sharer(app: &App, shared: &SharedKey, given: Option<&str>, source: Source) -> Result<Option<Caller>> {
    let Some(given) = given else { return Ok(None) };
    app.guesses().admit(source, Instant::now()).map_err(too_many_guesses)?;
    if !shared.is(given) {
        return Ok(None);
    }
    app.guesses().note_good(source, Instant::now());
    let options = app.options();
    app.count("shared", options.rate_limit.or(Some(RATE)), options.quota.or(Some(QUOTA))).await?;
    let scope = Scope::Tenant(options.local_scope.tenant_id().clone());
    Ok(Some(Sender { name: "shared key".to_owned(), scope, roles: vec![KeyRole::Write] }.into()))
}

/// Admits whoever has a key of the server's own, where there are any, or its token where there are none.
async fn other_key(app: &App, role: KeyRole, request: Request, next: Next<'_>) -> Answered {
    let has_keys = match &app.options().local_access {
        LocalAccess::Token(_) => Ok(true),
        LocalAccess::Nobody | LocalAccess::ThisMachine => app.needs_key().await,
    };
    match has_keys {
        Ok(true) => authenticate(app, role, request, next).await,
        Ok(false) => not_good().into(),
        Err(error) => ApiError::from(error).into(),
    }
}

/// What the last proxy wrote.
fn forwarded_for(headers: &HeaderMap) -> Option<&str> {
    headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()
}

fn given(request: &Request) -> Result<Option<String>> {
    let in_query = Params::read(request.uri().query().unwrap_or_default()).take("key")?;
    let in_header = request.headers().get("x-api-key").and_then(|key| key.to_str().ok());
    Ok(in_query.or_else(|| in_header.map(str::to_owned)))
}
