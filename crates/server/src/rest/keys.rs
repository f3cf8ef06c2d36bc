//! API keys of the caller's tenant.

pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod patch;
pub(crate) mod revoke;
pub(crate) mod rotate;

use serde::{Deserialize, Serialize};
use threadkeep::{Scope, TenantId, Timestamp};
use threadkeep_service::{Caller, KeyRecord, KeyRole};
use utoipa::ToSchema;

use crate::error::{ApiError, Result};

/// A role of a key.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyRoleJson {
    Read,
    Write,
    Approve,
    Admin,
    /// Only returned, never accepted: `operate` is granted on the command line, because it concerns all tenants.
    Operate,
}

/// A key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyJson {
    id: String,
    /// A name for people.
    name: String,
    /// The only user for whom the key may be used; null for a key of the whole tenant.
    user: Option<String>,
    roles: Vec<KeyRoleJson>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Timestamp>,
    /// The maximum number of requests per minute; null for the server's default.
    rate: Option<u32>,
    /// The maximum number of requests per day (UTC); null for the server's default.
    quota: Option<u32>,
}

/// A key with its secret, which is shown only once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewKeyJson {
    key: KeyJson,
    /// The text that clients send as `Authorization: Bearer …`.
    secret: String,
}

impl From<KeyRecord> for KeyJson {
    fn from(record: KeyRecord) -> Self {
        Self {
            user: record.user.as_ref().map(|user| user.as_str().to_owned()),
            roles: record.roles.iter().map(|role| role_json(*role)).collect(),
            id: record.id,
            name: record.name,
            created_at: record.created_at,
            expires_at: record.expires_at,
            revoked_at: record.revoked_at,
            rate: record.rate_limit.map(|limit| limit.per_minute),
            quota: record.quota.map(|quota| quota.per_day),
        }
    }
}

fn role_json(role: KeyRole) -> KeyRoleJson {
    match role {
        KeyRole::Write => KeyRoleJson::Write,
        KeyRole::Approve => KeyRoleJson::Approve,
        KeyRole::Admin => KeyRoleJson::Admin,
        KeyRole::Operate => KeyRoleJson::Operate,
        _ => KeyRoleJson::Read,
    }
}

/// Returns the tenant whose keys a caller manages. A user's key cannot manage keys, and neither can a request on behalf of a
/// user.
fn managed_tenant(caller: &Caller) -> Result<&TenantId> {
    match &caller.scope {
        Scope::Tenant(tenant) => Ok(tenant),
        Scope::User(..) => {
            let message =
                "managing keys requires an `admin` key of the whole tenant, without the header Threadkeep-User";
            Err(ApiError::forbidden("tenant_key_required", message))
        }
    }
}
