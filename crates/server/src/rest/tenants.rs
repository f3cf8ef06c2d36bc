use std::collections::BTreeMap;

use axum::extract::State;
use serde::Serialize;
use threadkeep::TenantId;
use threadkeep::core::limits::PAGE;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::QueryParams;
use crate::output::json;

/// The default number of tenants on a page.
const DEFAULT_LIMIT: usize = 100;

/// Tenants, ordered by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TenantsJson {
    data: Vec<TenantJson>,
    /// The value of `after` for the next page; null on the last page.
    next: Option<String>,
}

/// A tenant that has data or keys.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TenantJson {
    tenant: String,
    /// The number of keys that are valid.
    keys: usize,
}

/// Lists the tenants of the server
///
/// A tenant exists as soon as it has a key or data; its first key is created on the command line. Requires a key with the role
/// `operate`, because the list covers all tenants.
#[utoipa::path(
    get,
    path = "/v1/tenants",
    operation_id = "list_tenants",
    tag = "administration",
    params(
        ("after" = Option<String>, Query, description = "The `next` of the previous page"),
        ("limit" = Option<u32>, Query, description = "1 to 1,000; default 100")
    ),
    responses((status = 200, body = TenantsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, mut params: QueryParams) -> Result {
    let limit = params.take_limit(DEFAULT_LIMIT)?;
    let after = params.take("after")?.map(TenantId::new).transpose();
    let after = after.map_err(|error| ApiError::from(error).param("after"))?;
    params.finish()?;
    let now = app.memory().now();
    let mut tenants: BTreeMap<TenantId, usize> = BTreeMap::new();
    for tenant in list_stored(&app, after.as_ref(), limit + 1).await? {
        tenants.insert(tenant, 0);
    }
    for key in app.keys().list(None).await.map_err(threadkeep_service::Error::from)? {
        let is_valid = key.is_valid(now);
        *tenants.entry(key.tenant).or_default() += usize::from(is_valid);
    }
    let is_listed = |tenant: &TenantId| !tenant.is_internal() && after.as_ref().is_none_or(|after| tenant > after);
    let mut listed = tenants.into_iter().filter(|(tenant, _)| is_listed(tenant));
    let json_of = |(tenant, keys): (TenantId, usize)| TenantJson { tenant: tenant.as_str().to_owned(), keys };
    let data: Vec<TenantJson> = listed.by_ref().take(limit).map(json_of).collect();
    let has_more = listed.next().is_some();
    let next = data.last().filter(|_| has_more).map(|last| last.tenant.clone());
    Ok(json(&TenantsJson { data, next }))
}

/// Returns tenants that have data: all tenants after `after`, or if there are many, at least `count` of them. The reserved tenant is
/// left out.
async fn list_stored(app: &App, after: Option<&TenantId>, count: usize) -> Result<Vec<TenantId>> {
    let maintenance = &app.memory().backend().maintenance;
    let (mut tenants, mut last) = (Vec::new(), after.cloned());
    loop {
        let page = maintenance.list_tenants(last.as_ref(), PAGE).await?;
        let is_last = page.len() < PAGE;
        last = page.last().cloned();
        tenants.extend(page.into_iter().filter(|tenant| !tenant.is_internal()));
        if is_last || tenants.len() >= count {
            return Ok(tenants);
        }
    }
}
