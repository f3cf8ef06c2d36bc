use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use threadkeep::{Scope, ThreadOrder, ThreadQuery};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, Result};
use crate::output::json;

/// The answer of a server that is ready.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReadyJson {
    /// Always `ready`.
    status: &'static str,
    /// The kinds of failures after which acknowledged writes still exist, if that depends on the store's servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    durability: Option<DurabilityJson>,
}

/// The kinds of failures after which acknowledged writes still exist.
#[derive(Serialize, ToSchema)]
pub(crate) struct DurabilityJson {
    /// A description for people.
    description: String,
    /// Whether a restart of one of the store's servers loses data.
    volatile: bool,
}

/// Checks whether the server can serve requests
#[utoipa::path(
    get,
    path = "/ready",
    operation_id = "check_readiness",
    tag = "operations",
    responses((status = 200, description = "The server is ready.", body = ReadyJson), (status = 503, description = "The store cannot be reached, or the server is stopping."))
)]
pub(crate) async fn ready(State(app): State<App>) -> Result {
    if app.is_stopping() {
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is stopping"));
    }
    let scope = Scope::Tenant(app.options().local_scope.tenant_id().clone());
    let query = ThreadQuery::new(ThreadOrder::Created, 1);
    app.memory().list_threads(&scope, &query).await?;
    let durability = app.memory().backend().maintenance.durability();
    Ok(json(&ReadyJson {
        status: "ready",
        durability: durability
            .map(|durability| DurabilityJson { description: durability.description, volatile: durability.is_volatile }),
    }))
}
