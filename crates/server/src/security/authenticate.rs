//! From a request's headers to a [`Caller`].

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use threadkeep::{Scope, UserId};

use super::audit::AuditRecord;
use super::keys::{KeyError, KeyRecord, KeyRole};
use super::quota::{Quota, Uncounted};
use super::rate::RateLimit;
use super::{Caller, audit, local};
use crate::app::App;
use crate::connections::Held;
use crate::edge::Answered;
use crate::error::ApiError;
use crate::gate::Next;

/// Names the user on whose behalf a key of a tenant acts.
pub(crate) const USER: &str = "threadkeep-user";

/// What stands before an action that needs a role.
pub(crate) async fn authenticate(app: &App, role: KeyRole, request: Request, next: Next<'_>) -> Answered {
    let (mut parts, body) = request.into_parts();
    let caller = match caller(app, &parts).await {
        Ok(caller) => caller,
        Err(refused) => return refused.into(),
    };
    let key = caller.key_id.clone();
    let response = match caller.demand(role) {
        Ok(()) => {
            let act = audit::act(&parts, role, next.is_act(), &caller, next.id, app.memory().now());
            parts.extensions.insert(caller);
            let request = Request::from_parts(parts, body);
            match act {
                // Of acts, tokens and quotas there are few: what they take is no part of each request.
                Some(act) => Box::pin(audited(app, act, next.run(request))).await,
                None => next.run(request).await,
            }
        }
        Err(refused) => refused.into_response(),
    };
    Answered { response, key }
}

/// Writes an act down, does it, and writes down how it ended.
async fn audited(app: &App, act: AuditRecord, done: impl Future<Output = Response>) -> Response {
    if let Err(error) = app.audit().write(&act).await {
        return ApiError::from(error).into_response();
    }
    let response = done.await;
    let ended = AuditRecord { at: app.memory().now(), outcome: response.status().as_u16().to_string(), ..act };
    if let Err(error) = app.audit().write(&ended).await {
        tracing::error!(%error, act = ended.act, "how an act ended is not in the audit log");
    }
    response
}

async fn caller(app: &App, request: &Parts) -> Result<Caller, ApiError> {
    let headers = &request.headers;
    let shown = credentials(headers)?;
    if let Some(text) = shown {
        if let Some(key) = app.keys().find(text).await? {
            count(app, &key.id, key.rate_limit, key.quota).await?;
            return of_key(&key, headers);
        }
        let now_seconds = app.memory().now().as_millis().div_euclid(1000);
        for issuer in &app.options().token_issuers {
            if let Some(caller) = Box::pin(issuer.caller(text, now_seconds)).await {
                return Box::pin(of_token(app, caller, headers)).await;
            }
        }
    }
    if needs_key(app).await? {
        return Err(not_good());
    }
    let until_seconds = local::admit(app, request, shown)?;
    // Programs of this machine are counted together, as whoever they name is nobody who showed anything.
    count(app, "local", None, None).await?;
    let local = &app.options().local_scope;
    let scope = match named_user(headers)? {
        Some(user) => Scope::User(local.tenant_id().clone(), user),
        None => local.clone(),
    };
    Ok(Caller { scope, is_user_named: true, roles: vec![KeyRole::Admin], key_id: None, until_seconds, is_local: true })
}

/// Whether nobody calls without a key or a token of an issuer: there is an issuer, or a key was made at some time.
pub(crate) async fn needs_key(app: &App) -> Result<bool, KeyError> {
    Ok(!app.options().token_issuers.is_empty() || app.keys().is_any_known().await?)
}

/// The other end of the connection.
pub(crate) fn peer(extensions: &Extensions) -> Result<SocketAddr, ApiError> {
    let peer = extensions.get::<Held>().map(Held::peer);
    peer.ok_or_else(|| ApiError::internal("a connection without an address"))
}

pub(crate) fn not_good() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "invalid_key", "show a key that is good")
}

fn of_key(key: &KeyRecord, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let KeyRecord { id, tenant, user, roles, .. } = key;
    let scope = match (user, named_user(headers)?) {
        (Some(own), Some(named)) if *own != named => {
            return Err(other_user());
        }
        (Some(user), _) => Scope::User(tenant.clone(), user.clone()),
        (None, Some(user)) => Scope::User(tenant.clone(), user),
        (None, None) => Scope::Tenant(tenant.clone()),
    };
    let is_user_named = user.is_none();
    let (roles, key_id) = (roles.clone(), Some(id.clone()));
    Ok(Caller { scope, is_user_named, roles, key_id, until_seconds: None, is_local: false })
}

/// A token is one user's, whom a header may repeat; that of the application may name one.
async fn of_token(app: &App, caller: Caller, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let is_user_named = matches!(caller.scope, Scope::Tenant(_));
    let scope = match (caller.scope, named_user(headers)?) {
        (Scope::User(_, own), Some(named)) if own != named => return Err(other_user()),
        (Scope::Tenant(tenant), Some(user)) => Scope::User(tenant, user),
        (scope, _) => scope,
    };
    let who = match &scope {
        Scope::Tenant(tenant) => format!("token {tenant}"),
        Scope::User(tenant, user) => format!("token {tenant}\n{user}"),
    };
    count(app, &who, None, None).await?;
    Ok(Caller { scope, is_user_named, ..caller })
}

fn other_user() -> ApiError {
    ApiError::forbidden("other_user", "this key acts for one user only, and not for that one")
}

/// Counts a request of a key or a token's user against what it may make; without limits of its own, against those of all.
pub(crate) async fn count(app: &App, who: &str, rate: Option<RateLimit>, quota: Option<Quota>) -> Result<(), ApiError> {
    let options = app.options();
    if let Some(limit) = rate.or(options.rate_limit)
        && let Err(wait) = app.rate_limits().count(who, limit, Instant::now())
    {
        return Err(too_many("rate_limited", "too many requests", wait));
    }
    let Some(quota) = quota.or(options.quota) else { return Ok(()) };
    match Box::pin(app.quotas().count(app.memory(), who, quota)).await {
        Ok(()) => Ok(()),
        Err(Uncounted::Over(wait)) => Err(too_many("quota_exceeded", "the day's requests are used up", wait)),
        Err(Uncounted::Store(error)) => Err(error.into()),
    }
}

pub(crate) fn too_many(code: &'static str, message: &str, wait: Duration) -> ApiError {
    let seconds = wait.as_secs_f64().ceil().max(1.0);
    let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, code, message);
    error.header(header::RETRY_AFTER, format!("{seconds:.0}"))
}

pub(crate) fn too_many_guesses(wait: Duration) -> ApiError {
    too_many("rate_limited", "too many keys that are not good", wait)
}

/// The key in `Authorization: Bearer …` or `x-api-key`.
pub(crate) fn credentials(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter().chain(headers.get_all("x-api-key").iter());
    let Some(value) = given.next() else { return Ok(None) };
    if given.next().is_some() {
        return Err(ApiError::invalid("Authorization", "show one key"));
    }
    let text = value.to_str().unwrap_or_default();
    let is_bearer = text.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("bearer "));
    Ok(Some(if is_bearer { text[7..].trim() } else { text.trim() }))
}

fn named_user(headers: &HeaderMap) -> Result<Option<UserId>, ApiError> {
    let mut given = headers.get_all(USER).iter();
    let Some(value) = given.next() else { return Ok(None) };
    if given.next().is_some() {
        return Err(ApiError::invalid("Threadkeep-User", "name one user"));
    }
    // Header values are bytes: a name beyond ASCII is sent as UTF-8.
    let name = std::str::from_utf8(value.as_bytes());
    let name = name.map_err(|_| ApiError::invalid("Threadkeep-User", "not UTF-8"))?;
    UserId::new(name).map(Some).map_err(|error| ApiError::from(error).param("Threadkeep-User"))
}

impl From<KeyError> for ApiError {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Store(error) => error.into(),
            KeyError::Memory(error) => error.into(),
            KeyError::Invalid(why) => Self::invalid("key", why),
            KeyError::Unknown(_) => Self::not_found("key"),
            KeyError::Randomness(error) => Self::internal(error.to_string()),
        }
    }
}
