use axum::extract::State;
use serde::Deserialize;
use threadkeep::Timestamp;
use threadkeep_service::{KeyChanges, Quota, RateLimit};
use utoipa::ToSchema;

use super::create::read_role;
use super::{KeyJson, KeyRoleJson, managed_tenant};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams};
use crate::output::json;
use crate::rest::threads::patch::nullable;
use crate::security::Caller;

/// The changes to a key. Omitted fields stay as they are.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PatchKeyJson {
    #[schema(min_length = 1)]
    name: Option<String>,
    roles: Option<Vec<KeyRoleJson>>,
    /// Null for a key that does not expire.
    #[serde(deserialize_with = "nullable")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Option<Timestamp>>,
    /// The maximum number of requests per minute; null for the server's default.
    #[serde(deserialize_with = "nullable")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    rate: Option<Option<f64>>,
    /// The maximum number of requests per day (UTC); null for the server's default.
    #[serde(deserialize_with = "nullable")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    quota: Option<Option<f64>>,
}

/// Changes a key of the caller's tenant: its name, roles, expiry and limits
///
/// Takes effect with the next request. Requires a key of the whole tenant with the role `admin`.
#[utoipa::path(
    patch,
    path = "/v1/keys/{key}",
    operation_id = "update_key",
    tag = "keys",
    params(("key" = String, Path, description = "The id of a key")),
    request_body = PatchKeyJson,
    responses((status = 200, body = KeyJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn patch(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    JsonBody { value: body, .. }: JsonBody<PatchKeyJson>,
) -> Result {
    let tenant = managed_tenant(&caller)?;
    let roles = body.roles.map(|roles| roles.into_iter().map(read_role).collect::<Result<Vec<_>>>()).transpose()?;
    let (rate, quota) = (read_limit("rate", body.rate)?, read_limit("quota", body.quota)?);
    let changes = KeyChanges {
        name: body.name,
        roles,
        expires_at: body.expires_at,
        rate_limit: rate.map(|rate| rate.map(|per_minute| RateLimit { per_minute })),
        quota: quota.map(|quota| quota.map(|per_day| Quota { per_day })),
    };
    let changed = app.keys().update(tenant, path_params.get("key"), changes).await;
    Ok(json(&KeyJson::from(changed.map_err(threadkeep_service::Error::from)?)))
}

/// Reads a limit, a whole number that may be written as `60.0`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number is checked to be in the range")]
fn read_limit(name: &str, limit: Option<Option<f64>>) -> Result<Option<Option<u32>>> {
    let Some(Some(number)) = limit else { return Ok(limit.map(|_| None)) };
    if number.fract() != 0.0 || !(1.0..=f64::from(u32::MAX)).contains(&number) {
        return Err(ApiError::invalid(name, format!("`{name}` must be a whole number from 1 to {}", u32::MAX)));
    }
    Ok(Some(Some(number as u32)))
}
