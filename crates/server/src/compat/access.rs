//! Who may call the documents' endpoints: whoever shows the one key that their clients share, in `?key=` or `x-api-key`.
//!
//! Where there is no such key, they are open as all other routes are: to the server's own keys, and without any to this
//! machine alone.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use threadkeep::Scope;

use crate::app::App;
use crate::error::Result;
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
pub(crate) async fn admit(
    State((app, role)): State<(App, KeyRole)>,
    mut request: Request,
    next: Next,
) -> Result<Response> {
    let Some(shared) = &app.options().shared_key else {
        return Ok(authenticate(State((app, role)), request, next).await);
    };
    let peer = peer(request.extensions())?;
    let source = Source::of(peer, request.headers());
    let given = given(&request)?;
    if let Some(given) = &given {
        app.guesses().admit(source, Instant::now()).map_err(too_many_guesses)?;
        if !shared.is(given) {
            return other_key(app, role, request, next, peer).await;
        }
        app.guesses().note_good(source, Instant::now());
        let options = app.options();
        count(&app, "shared", options.rate_limit.or(Some(RATE)), options.quota.or(Some(QUOTA))).await?;
        let scope = Scope::Tenant(options.local_scope.tenant_id().clone());
        let roles = vec![KeyRole::Write];
        request.extensions_mut().insert(Caller { scope, roles, key_id: None, until_seconds: None });
        return Ok(next.run(request).await);
    }
    other_key(app, role, request, next, peer).await
}

/// Admits whoever has a key of the server's own, where there are any.
async fn other_key(app: App, role: KeyRole, request: Request, next: Next, peer: SocketAddr) -> Result<Response> {
    // It counts what is shown to it and not good.
    let is_shown = credentials(request.headers())?.is_some();
    if is_shown && (!app.options().token_issuers.is_empty() || app.keys().is_any_known().await?) {
        return Ok(authenticate(State((app, role)), request, next).await);
    }
    Err(if given(&request)?.is_some() { guessed_wrong(&app, peer, request.headers()) } else { not_good() })
}

fn given(request: &Request) -> Result<Option<String>> {
    let in_query = Params::read(request.uri().query().unwrap_or_default()).take("key")?;
    let in_header = request.headers().get("x-api-key").and_then(|key| key.to_str().ok());
    Ok(in_query.or_else(|| in_header.map(str::to_owned)))
}
