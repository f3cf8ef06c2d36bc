use axum::extract::State;
use serde::Serialize;
use threadkeep::{Scope, Timestamp};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::output::json;
use crate::security::Caller;

/// The limits of the tenant's keys, and what they have used today (UTC).
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuotasJson {
    /// When the daily quotas are reset.
    #[schema(value_type = String, format = DateTime)]
    resets_at: Timestamp,
    data: Vec<KeyQuotaJson>,
}

/// The limits of a key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyQuotaJson {
    /// The id of the key.
    key: String,
    name: String,
    user: Option<String>,
    /// The maximum number of requests per minute; null if there is none.
    rate: Option<u32>,
    /// The maximum number of requests per day; null if there is none.
    quota: Option<u32>,
    /// The number of requests today. It includes requests that other instances have reserved in advance, each at most a hundredth
    /// of the quota. Null if there is no quota.
    used: Option<u32>,
    /// Null if there is no quota.
    remaining: Option<u32>,
}

/// Returns the rate limits and daily quotas of the tenant's valid keys
///
/// The server's limits apply to keys without limits of their own. Change limits with `PATCH /v1/keys/{key}`. Requires a key of
/// the whole tenant with the role `admin`.
#[utoipa::path(
    get,
    path = "/v1/quotas",
    operation_id = "list_quotas",
    tag = "administration",
    responses((status = 200, body = QuotasJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result {
    let Scope::Tenant(tenant) = &caller.scope else {
        let message = "reading quotas requires an `admin` key of the whole tenant, without the header Threadkeep-User";
        return Err(ApiError::forbidden("tenant_key_required", message));
    };
    let now = app.memory().now();
    let keys = app.keys().list(Some(tenant)).await.map_err(threadkeep_service::Error::from)?;
    let mut data = Vec::new();
    for key in keys.into_iter().filter(|key| key.is_valid(now)) {
        let rate = key.rate_limit.or(app.options().rate_limit).map(|limit| limit.per_minute);
        let quota = key.quota.or(app.options().quota).map(|quota| quota.per_day);
        let used = match quota {
            Some(_) => Some(app.requests_today(&key.id).await?),
            None => None,
        };
        let remaining = quota.zip(used).map(|(quota, used)| quota.saturating_sub(used));
        let user = key.user.map(|user| user.as_str().to_owned());
        data.push(KeyQuotaJson { key: key.id, name: key.name, user, rate, quota, used, remaining });
    }
    Ok(json(&QuotasJson { resets_at: threadkeep_service::next_day(now), data }))
}
