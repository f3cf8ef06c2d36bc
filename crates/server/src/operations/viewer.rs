use std::sync::Arc;

use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use utoipa_swagger_ui::Config;

use crate::error::{ApiError, Result};
use crate::input::Names;

/// Leads to the viewer of the OpenAPI document
#[utoipa::path(get, path = "/docs", tag = "operations", responses((status = 308, description = "The viewer.")))]
pub(crate) async fn start() -> Response {
    Redirect::permanent("/docs/").into_response()
}

/// Shows the OpenAPI document
#[utoipa::path(get, path = "/docs/", tag = "operations", responses((status = 200, description = "A page.")))]
pub(crate) async fn page() -> Result {
    serve("index.html")
}

/// Serves a file of the viewer, all of them from this program
#[utoipa::path(
    get,
    path = "/docs/{file}",
    tag = "operations",
    params(("file" = String, Path)),
    responses((status = 200, description = "A file."), (status = 404, description = "There is no such file."))
)]
pub(crate) async fn file(names: Names) -> Result {
    serve(names.text("file"))
}

fn serve(file: &str) -> Result {
    let config = Arc::new(Config::from("/v1/openapi.json"));
    match utoipa_swagger_ui::serve(file, config) {
        Ok(Some(found)) => Ok(([(header::CONTENT_TYPE, found.content_type)], found.bytes.into_owned()).into_response()),
        Ok(None) => Err(ApiError::not_found("file")),
        Err(error) => Err(ApiError::internal(error.to_string())),
    }
}
