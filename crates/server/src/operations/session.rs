//! How a page in a browser comes by its cookie: `threadkeep open` leads to a page that takes the token out of the address's
//! fragment, which no browser sends to a server, and exchanges it.

use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::security::authenticate::not_good;
use crate::security::local;

const PAGE: &str = include_str!("session.html");
/// The page brings all that it needs, and speaks with nobody but this server.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What is exchanged for a cookie.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exchange {
    /// The token of this server, or what `threadkeep open` gives instead of it.
    #[serde(default)]
    token: String,
}

/// Shows the page that `threadkeep open` leads to: it exchanges the token in the fragment of its address for a cookie
#[utoipa::path(get, path = "/v1/session", tag = "operations", responses((status = 200, description = "A page.")))]
pub(crate) async fn page() -> Response {
    let mut response = Html(PAGE).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

/// Exchanges the token of this server for a cookie, which is good for a day
///
/// Only while no key was ever made, and only for this machine. With the cookie, what changes something has to come from a page
/// of this server.
#[utoipa::path(
    post,
    path = "/v1/session",
    tag = "operations",
    request_body = Exchange,
    responses((status = 204, description = "The cookie is set."), (status = "4XX", body = ErrorEnvelope<'_>))
)]
pub(crate) async fn exchange(State(app): State<App>, request: Parts, body: JsonBody<Exchange>) -> Result {
    if app.needs_key().await? {
        return Err(not_good());
    }
    let cookie = local::exchange(&app, &request, &body.value.token)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}
