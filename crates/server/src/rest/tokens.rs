use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use threadkeep::Timestamp;
use threadkeep_service::browser_tokens::MAX_SECONDS;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{JsonBody, optional_whole_number};
use crate::output::json_with;
use crate::security::{Caller, KeyRole};

/// The default lifetime of a token, in seconds.
const DEFAULT_SECONDS: i64 = 300;

/// The token to create. All fields are optional.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTokenJson {
    /// The roles: some of `read`, `write` and `approve` that the caller has. Default: `read`.
    #[serde(default)]
    roles: Option<Vec<TokenRoleJson>>,
    /// The lifetime in seconds, from 1 to 3,600. Default: 300.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 1, maximum = 3600)]
    expires_in: Option<i64>,
}

/// A role of a token.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TokenRoleJson {
    Read,
    Write,
    Approve,
}

/// A token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenJson {
    /// Sent like a key, or as the parameter `token` of `/v1/live` and `/v1/threads/{id}/events`.
    token: String,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

/// Creates a short-lived token for a page in a browser
///
/// The token acts for the caller, in the same scope, until it expires or the caller's key is revoked. A stream that was opened with
/// it ends only with the key. Tokens can be created only if the server allows pages of other origins (`browser_origins`).
#[utoipa::path(
    post,
    path = "/v1/tokens",
    operation_id = "create_browser_token",
    tag = "tokens",
    request_body = NewTokenJson,
    responses((status = 201, body = TokenJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    JsonBody { value: body, .. }: JsonBody<NewTokenJson>,
) -> Result {
    if app.options().browser_origins.is_empty() {
        let message = "this server creates no tokens; set server.browser_origins to the origins of your pages";
        return Err(ApiError::forbidden("tokens_disabled", message));
    }
    let seconds = body.expires_in.unwrap_or(DEFAULT_SECONDS);
    if !(1..=MAX_SECONDS).contains(&seconds) {
        return Err(ApiError::invalid("expires_in", format!("`expires_in` must be 1 to {MAX_SECONDS} seconds")));
    }
    let roles = body.roles.unwrap_or_else(|| vec![TokenRoleJson::Read]);
    if roles.is_empty() || roles.len() > 3 {
        return Err(ApiError::invalid("roles", "`roles` must contain 1 to 3 roles"));
    }
    let roles = roles.into_iter().map(|role| match role {
        TokenRoleJson::Read => KeyRole::Read,
        TokenRoleJson::Write => KeyRole::Write,
        TokenRoleJson::Approve => KeyRole::Approve,
    });
    let (token, expires_at) = app.create_browser_token(&caller, roles.collect(), seconds).await?;
    Ok(json_with(StatusCode::CREATED, &TokenJson { token, expires_at }))
}
