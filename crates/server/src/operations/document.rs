use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::routes;

/// Describes every route
#[utoipa::path(get, path = "/v1/openapi.json", tag = "operations", responses((status = 200, description = "The OpenAPI document.")))]
pub(crate) async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], routes::openapi_text()).into_response()
}
