use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use crate::app::App;
use crate::error::{ApiError, Result};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns metrics for Prometheus
///
/// The metrics cover all tenants of this instance, so a key with the role `operate` is required. They contain no names of
/// tenants or users.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "get_metrics",
    tag = "operations",
    responses((status = 200, description = "The metrics in the OpenMetrics text format.", body = String, content_type = "application/openmetrics-text")),
    security(("key" = []))
)]
pub(crate) async fn metrics(State(app): State<App>) -> Result {
    let text = app.metrics().text().map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}
