//! Authenticates requests: determines the [`Caller`] and checks the caller's role.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use threadkeep::{Scope, UserId};
use threadkeep_service::{AuditAction, Caller, Credential, Error, KeyRole, RateStatus, too_many_error};

use super::local;
use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::door::SenderAuthenticator;
use crate::error::ApiError;
use crate::input::{QueryParams, read_body};
use crate::middleware::LoggedResponse;
use crate::route_layer::Next;

/// The header that contains the name of the user on whose behalf the key of a tenant is used.
pub(crate) const USER_HEADER: &str = "threadkeep-user";

/// The query parameter that contains a short-lived token.
pub(crate) const TOKEN_PARAM: &str = "token";

/// Runs the action if the caller is authenticated and has the role.
pub(crate) async fn authenticate(app: &App, role: KeyRole, request: Request, next: Next<'_>) -> LoggedResponse {
    let (parts, body) = request.into_parts();
    match find_caller(app, &parts, next.accepts_token_in_query()).await {
        Ok(caller) => run_action(app, role, caller, Request::from_parts(parts, body), next).await,
        Err(error) => error.into(),
    }
}

/// Runs the action if the door authenticates the sender, from the request's head and body, and the sender has the role.
pub(crate) async fn authenticate_sender(
    app: &App,
    role: KeyRole,
    authenticator: &dyn SenderAuthenticator,
    request: Request,
    next: Next<'_>,
) -> LoggedResponse {
    let (parts, body) = request.into_parts();
    let authenticated = async {
        let body = read_body(body, app.options().body_bytes, app).await?;
        let sender = authenticator.sender(app, &parts, &body).await?;
        Ok::<_, ApiError>((app.admit(sender).await?, body))
    };
    match authenticated.await {
        Ok((caller, body)) => run_action(app, role, caller, Request::from_parts(parts, Body::from(body)), next).await,
        Err(error) => error.into(),
    }
}

/// Runs the action if the authenticated caller has the role, and writes to the audit log if the route requires it.
async fn run_action(app: &App, role: KeyRole, caller: Caller, mut request: Request, next: Next<'_>) -> LoggedResponse {
    let (key, rate) = (caller.key_id().map(str::to_owned), caller.rate);
    let mut response = match caller.require(role) {
        Ok(()) => {
            request.extensions_mut().insert(caller.clone());
            match next.audit_action(role, &request) {
                // Boxed: audited requests are rare, and the futures of all other requests stay small.
                Some(action) => Box::pin(run_audited(app, &caller, action, next.run(request))).await,
                None => next.run(request).await,
            }
        }
        Err(error) => ApiError::from(error).into_response(),
    };
    if let Some(rate) = rate {
        add_rate_headers(&mut response, rate);
    }
    LoggedResponse { response, key }
}

/// Adds the caller's rate limit to a response, in the headers of OpenAI's API.
fn add_rate_headers(response: &mut Response, rate: RateStatus) {
    let headers = rate_headers(rate);
    // The middleware renders errors with their own headers.
    match response.extensions_mut().get_mut::<ApiError>() {
        Some(error) => error.headers.extend(headers),
        None => response.headers_mut().extend(headers),
    }
}

/// Returns the headers that describe a rate limit.
pub(crate) fn rate_headers(rate: RateStatus) -> [(HeaderName, HeaderValue); 3] {
    let reset = HeaderValue::try_from(format!("{:.3}s", rate.reset.as_secs_f64()));
    [
        (HeaderName::from_static("x-ratelimit-limit-requests"), rate.limit.into()),
        (HeaderName::from_static("x-ratelimit-remaining-requests"), rate.remaining.into()),
        (HeaderName::from_static("x-ratelimit-reset-requests"), reset.unwrap_or(HeaderValue::from_static("60s"))),
    ]
}

async fn run_audited(
    app: &App,
    caller: &Caller,
    action: AuditAction,
    operation: impl Future<Output = Response>,
) -> Response {
    let outcome = |response: &Response| response.status().as_u16().to_string();
    app.audited(caller, action, operation, outcome).await.unwrap_or_else(|error| ApiError::from(error).into_response())
}

/// Authenticates the caller by a key or token, or admits it as a local caller.
async fn find_caller(app: &App, request: &Parts, accepts_token_in_query: bool) -> Result<Caller, ApiError> {
    let headers = &request.headers;
    let credentials = credentials(headers)?;
    if accepts_token_in_query
        && credentials.is_none()
        && let Some(token) = QueryParams::read(request.uri.query().unwrap_or_default()).take(TOKEN_PARAM)?
    {
        // Keys are not accepted in a query, because a query is often logged.
        let caller = app.authenticate_browser_token(&token, || named_user(headers)).await?;
        return caller.ok_or_else(invalid_key);
    }
    if let Some(text) = credentials
        && let Some(caller) = app.authenticate(text, || named_user(headers)).await?
    {
        return Ok(caller);
    }
    if app.needs_key().await? {
        return Err(invalid_key());
    }
    let credential = Credential::Local { expires_at_seconds: local::check_request(app, request, credentials)? };
    // All local callers share one rate limit, because the user that a local caller names is not authenticated.
    let rate = app.count("local", None, None).await?;
    let local = &app.options().local_scope;
    let scope = match named_user(headers)? {
        Some(user) => Scope::User(local.tenant_id().clone(), user),
        None => local.clone(),
    };
    Ok(Caller { scope, may_select_user: true, roles: vec![KeyRole::Admin], credential, rate })
}

/// Returns the address of the client.
pub(crate) fn peer(extensions: &Extensions) -> Result<SocketAddr, ApiError> {
    let peer = extensions.get::<ConnectionGuard>().map(ConnectionGuard::peer);
    peer.ok_or_else(|| ApiError::internal("the connection has no client address"))
}

pub(crate) fn invalid_key() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "invalid_key", "missing or invalid API key")
}

pub(crate) fn too_many_guesses(wait: Duration) -> ApiError {
    too_many_error("rate_limited", "too many attempts with invalid keys", wait).into()
}

/// Returns the key or token in `Authorization: Bearer …` or `x-api-key`; `None` if neither header is present.
pub(crate) fn credentials(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter().chain(headers.get_all("x-api-key").iter());
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ApiError::invalid("Authorization", "send exactly one key"));
    }
    let text = value.to_str().unwrap_or_default();
    let is_bearer = text.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("bearer "));
    Ok(Some(if is_bearer { text[7..].trim() } else { text.trim() }))
}

/// Returns the user that the request names in [`USER_HEADER`].
fn named_user(headers: &HeaderMap) -> Result<Option<UserId>, Error> {
    let mut values = headers.get_all(USER_HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Error::invalid("Threadkeep-User", "the header must not be repeated"));
    }
    // Header values are bytes; names with non-ASCII characters are sent as UTF-8.
    let name = std::str::from_utf8(value.as_bytes());
    let name = name.map_err(|_| Error::invalid("Threadkeep-User", "the header must be UTF-8"))?;
    UserId::new(name).map(Some).map_err(|error| Error::from(error).param("Threadkeep-User"))
}
