use axum::response::Response;
use serde::Serialize;
use threadkeep::Scope;
use utoipa::ToSchema;

use crate::error::ErrorEnvelope;
use crate::output::json;
use crate::security::{Caller, KeyRole};

/// The caller.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallerJson {
    tenant: String,
    /// The user for whom the request is made; null for the tenant itself.
    user: Option<String>,
    /// The roles: some of `read`, `write`, `approve`, `admin` and `operate`, including those that others imply.
    roles: Vec<&'static str>,
}

/// Returns the caller as the server authenticated it
#[utoipa::path(
    get,
    path = "/v1/caller",
    operation_id = "get_caller",
    tag = "tokens",
    responses((status = 200, body = CallerJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn get(caller: Caller) -> Response {
    let user = match &caller.scope {
        Scope::User(_, user) => Some(user.as_str().to_owned()),
        Scope::Tenant(_) => None,
    };
    let roles = KeyRole::ALL.into_iter().filter(|role| caller.has(*role)).map(KeyRole::as_str);
    json(&CallerJson { tenant: caller.scope.tenant_id().as_str().to_owned(), user, roles: roles.collect() })
}
