//! Who may call the documents' endpoints: whoever shows the one key that their clients share, in `?key=` or `x-api-key`.
//!
//! Where there is no such key, they are open as all other routes are: to the server's own keys, and without any to this
//! machine alone.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use axum::extract::Request;
use axum::http::HeaderMap;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use threadkeep::Scope;

use crate::app::App;
use crate::edge::Answered;
use crate::error::Result;
use crate::gate::Next;
use crate::input::Params;
use crate::security::Caller;
use crate::security::authenticate::{
    authenticate, count, credentials, guessed_wrong, not_good, peer, too_many_guesses,
};
use crate::security::guesses::Source;
use crate::security::keys::KeyRole;
use crate::security::quota::Quota;
use crate::security::rate::RateLimit;

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
    let (given, peer) = match (given(&request), peer(request.extensions())) {
        (Ok(given), Ok(peer)) => (given, peer),
        (Err(refused), _) | (_, Err(refused)) => return refused.into(),
    };
    match sharer(app, shared, given.as_deref(), peer, request.headers()).await {
        Ok(Some(caller)) => {
            request.extensions_mut().insert(caller);
            next.run(request).await.into()
        }
        Ok(None) => authenticate(app, role, request, next).await,
        Err(refused) => refused.into(),
    }
}

/// Who calls with the shared key; nobody where a key of the server's own is shown, which may be good.
async fn sharer(
    app: &App,
    shared: &SharedKey,
    given: Option<&str>,
    peer: SocketAddr,
    headers: &HeaderMap,
) -> Result<Option<Caller>> {
    if let Some(given) = given {
        let source = Source::of(peer, headers);
        app.guesses().admit(source, Instant::now()).map_err(too_many_guesses)?;
        if shared.is(given) {
            app.guesses().note_good(source, Instant::now());
            let options = app.options();
            count(app, "shared", options.rate_limit.or(Some(RATE)), options.quota.or(Some(QUOTA))).await?;
            let scope = Scope::Tenant(options.local_scope.tenant_id().clone());
            return Ok(Some(Caller { scope, roles: vec![KeyRole::Write], key_id: None, until_seconds: None }));
        }
    }
    // What is shown to those and not good is counted there.
    let is_shown = credentials(headers)?.is_some();
    if is_shown && (!app.options().token_issuers.is_empty() || app.keys().is_any_known().await?) {
        return Ok(None);
    }
    Err(if given.is_some() { guessed_wrong(app, peer, headers) } else { not_good() })
}

fn given(request: &Request) -> Result<Option<String>> {
    let in_query = Params::read(request.uri().query().unwrap_or_default()).take("key")?;
    let in_header = request.headers().get("x-api-key").and_then(|key| key.to_str().ok());
    Ok(in_query.or_else(|| in_header.map(str::to_owned)))
}
