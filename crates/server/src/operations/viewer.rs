use std::sync::Arc;

use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use utoipa_swagger_ui::Config;

use crate::error::{ApiError, Result};
use crate::input::Names;
use crate::output::with_policy;

/// The viewer has its scripts in files, draws with styles and images in its own text, and asks nobody but this server.
const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
        Ok(Some(found)) => {
            let served = ([(header::CONTENT_TYPE, found.content_type)], found.bytes.into_owned());
            Ok(with_policy(served, POLICY))
        }
        Ok(None) => Err(ApiError::not_found("file")),
        Err(error) => Err(ApiError::internal(error.to_string())),
    }
}
