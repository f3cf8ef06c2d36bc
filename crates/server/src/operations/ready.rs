use axum::extract::State;
use axum::http::StatusCode;
use threadkeep::{Scope, ThreadOrder, ThreadQuery};

use crate::app::App;
use crate::error::{ApiError, Result};
use crate::output::json;

/// Checks whether the server can serve requests
#[utoipa::path(
    get,
    path = "/ready",
    operation_id = "check_readiness",
    tag = "operations",
    responses((status = 200, description = "The server is ready."), (status = 503, description = "The store cannot be reached, or the server is stopping."))
)]
pub(crate) async fn ready(State(app): State<App>) -> Result {
    if app.is_stopping() {
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is stopping"));
    }
    let scope = Scope::Tenant(app.options().local_scope.tenant_id().clone());
    let query = ThreadQuery::new(ThreadOrder::Created, 1);
    app.memory().list_threads(&scope, &query).await?;
    Ok(json(&serde_json::json!({ "status": "ready" })))
}
