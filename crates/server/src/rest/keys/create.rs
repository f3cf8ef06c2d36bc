use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use threadkeep::{Timestamp, UserId};
use threadkeep_service::{KeyRole, NewKey, Quota, RateLimit};
use utoipa::ToSchema;

use super::{KeyJson, KeyRoleJson, NewKeyJson, managed_tenant};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{JsonBody, optional_whole_number};
use crate::output::json_with;
use crate::security::Caller;

/// The key to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateKeyJson {
    /// A name for people.
    #[schema(min_length = 1)]
    name: String,
    /// The only user for whom the key may be used. Default: the key is for the whole tenant.
    #[serde(default)]
    user: Option<String>,
    /// Default: `write`.
    #[serde(default)]
    roles: Option<Vec<KeyRoleJson>>,
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// The maximum number of requests per minute. Default: the server's.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 1)]
    rate: Option<u32>,
    /// The maximum number of requests per day (UTC). Default: the server's.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 1)]
    quota: Option<u32>,
}

/// Creates a key of the caller's tenant
///
/// The response contains the secret, which cannot be read later. Requires a key of the whole tenant with the role `admin`.
#[utoipa::path(
    post,
    path = "/v1/keys",
    operation_id = "create_key",
    tag = "keys",
    request_body = CreateKeyJson,
    responses((status = 201, body = NewKeyJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    JsonBody { value: body, .. }: JsonBody<CreateKeyJson>,
) -> Result {
    let tenant = managed_tenant(&caller)?.clone();
    let roles = body.roles.unwrap_or_else(|| vec![KeyRoleJson::Write]);
    let roles = roles.into_iter().map(read_role).collect::<Result<Vec<_>>>()?;
    if body.rate == Some(0) || body.quota == Some(0) {
        return Err(ApiError::invalid("rate", "`rate` and `quota` must be at least 1"));
    }
    let user = body.user.map(UserId::new).transpose().map_err(|error| ApiError::from(error).param("user"))?;
    let new = NewKey {
        tenant,
        user,
        name: body.name,
        roles,
        expires_at: body.expires_at,
        rate_limit: body.rate.map(|per_minute| RateLimit { per_minute }),
        quota: body.quota.map(|per_day| Quota { per_day }),
    };
    let created = app.keys().create(new).await.map_err(threadkeep_service::Error::from);
    let (record, secret) = created?;
    let secret = secret.as_str().to_owned();
    Ok(json_with(StatusCode::CREATED, &NewKeyJson { key: KeyJson::from(record), secret }))
}

pub(super) fn read_role(role: KeyRoleJson) -> Result<KeyRole> {
    match role {
        KeyRoleJson::Read => Ok(KeyRole::Read),
        KeyRoleJson::Write => Ok(KeyRole::Write),
        KeyRoleJson::Approve => Ok(KeyRole::Approve),
        KeyRoleJson::Admin => Ok(KeyRole::Admin),
        KeyRoleJson::Operate => {
            let message = "the role `operate` concerns all tenants; grant it on the command line";
            Err(ApiError::forbidden("role_missing", message).param("roles"))
        }
    }
}
