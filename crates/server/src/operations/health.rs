use axum::response::Response;

use crate::output::json;

/// Tells that the process lives
#[utoipa::path(get, path = "/health", tag = "operations", responses((status = 200, description = "It lives.")))]
pub(crate) async fn health() -> Response {
    json(&serde_json::json!({ "status": "ok" }))
}
