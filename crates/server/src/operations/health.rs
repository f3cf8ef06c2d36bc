use axum::response::Response;

use crate::output::json;

/// Checks that the process is running
#[utoipa::path(get, path = "/health", operation_id = "check_health", tag = "operations", responses((status = 200, description = "The process is running.")))]
pub(crate) async fn health() -> Response {
    json(&serde_json::json!({ "status": "ok" }))
}
