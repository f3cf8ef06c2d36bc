//! Browser sessions: `threadkeep open` opens a page that exchanges the pass in the fragment of its URL for a cookie. Browsers do
//! not send fragments to servers, so the pass does not appear in logs.

use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::security::authenticate::invalid_key;
use crate::security::local;

const PAGE: &str = include_str!("session.html");

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
pub(crate) async fn page(State(app): State<App>) -> Result {
    let html = PAGE.replace("{has_page}", if app.options().page.is_some() { "true" } else { "false" });
    let policy = HeaderValue::try_from(policy(&html)).map_err(|error| ApiError::internal(error.to_string()))?;
    let mut response = Html(html).into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// Returns the content security policy of the page, which connects only to this server. Only its own script is allowed.
fn policy(html: &str) -> String {
    let script = html.split_once("<script>").and_then(|(_, rest)| rest.split_once("</script>"));
    let digest = STANDARD.encode(Sha256::digest(script.map_or("", |(script, _)| script)));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    )
}

/// Exchanges the local token of this server for a cookie that is valid for a day
///
/// Works only as long as no key has ever been created, and only for clients on this machine. Requests with the cookie that change
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
