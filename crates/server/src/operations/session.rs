//! Browser sessions: `threadkeep open` opens a page that exchanges the pass in the fragment of its URL for a cookie. Browsers do
//! not send fragments to servers, so the pass does not appear in logs.

use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::security::authenticate::invalid_key;
use crate::security::local;

const PAGE: &str = include_str!("session.html");
/// The content security policy of the page, which is self-contained and connects only to this server.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A request for a cookie.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exchange {
    /// The local token of this server, or a short-lived pass from `threadkeep open`.
    #[serde(default)]
    token: String,
}

/// Serves the page that `threadkeep open` opens: it exchanges the token in the fragment of its URL for a cookie
#[utoipa::path(get, path = "/v1/session", operation_id = "get_session_page", tag = "operations", responses((status = 200, description = "The page.")))]
pub(crate) async fn page() -> Response {
    let mut response = Html(PAGE).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

/// Exchanges the local token of this server for a cookie that is valid for a day
///
/// Only as long as no key has ever been created, and only for clients on this machine. Requests with the cookie that change
/// something must come from a page of this server.
#[utoipa::path(
    post,
    path = "/v1/session",
    operation_id = "create_session",
    tag = "operations",
    request_body = Exchange,
    responses((status = 204, description = "The cookie is set."), (status = "4XX", body = ErrorEnvelope<'_>))
)]
pub(crate) async fn exchange(State(app): State<App>, request: Parts, body: JsonBody<Exchange>) -> Result {
    if app.needs_key().await? {
        return Err(invalid_key());
    }
    let cookie = local::exchange(&app, &request, &body.value.token)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}
