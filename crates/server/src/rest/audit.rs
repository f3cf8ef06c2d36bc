use axum::extract::State;
use serde::Serialize;
use threadkeep::{Scope, Timestamp};
use threadkeep_service::AuditRecord;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::QueryParams;
use crate::output::json;
use crate::security::Caller;

/// The newest records of the audit log, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditJson {
    data: Vec<AuditRecordJson>,
}

/// A record of the audit log. It contains no message content and no names that callers chose.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditRecordJson {
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The actor, such as `key 5f0c1d2e3a4b5c6d`.
    by: String,
    /// The user on whose behalf the actor acted.
    user: Option<String>,
    act: String,
    target: Option<String>,
    /// `begun` before an action, then its outcome.
    outcome: String,
    request_id: Option<String>,
}

impl From<AuditRecord> for AuditRecordJson {
    fn from(record: AuditRecord) -> Self {
        let AuditRecord { at, by, user, act, target, outcome, request_id, .. } = record;
        Self { at, by, user, act, target, outcome, request_id }
    }
}

/// Lists the newest records of the tenant's audit log
#[utoipa::path(
    get,
    path = "/v1/audit",
    operation_id = "list_audit_records",
    tag = "keys",
    params(("limit" = Option<u32>, Query, description = "1 to 1,000; default 100")),
    responses((status = 200, body = AuditJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, mut params: QueryParams) -> Result {
    let limit = params.take_limit(100)?;
    params.finish()?;
    let Scope::Tenant(tenant) = &caller.scope else {
        let message =
            "reading the audit log requires an `admin` key of the whole tenant, without the header Threadkeep-User";
        return Err(ApiError::forbidden("tenant_key_required", message));
    };
    let records = app.audit().list(tenant, limit).await?;
    Ok(json(&AuditJson { data: records.into_iter().map(Into::into).collect() }))
}
