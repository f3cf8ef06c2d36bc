use std::sync::Arc;

use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use utoipa_swagger_ui::Config;

use crate::error::{ApiError, Result};
use crate::input::PathParams;
use crate::output::with_policy;

/// The content security policy of the viewer, which loads scripts from files, uses inline styles and `data:` images, and connects
/// only to this server.
const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Redirects to the viewer of the OpenAPI document
#[utoipa::path(get, path = "/docs", operation_id = "redirect_to_viewer", tag = "operations", responses((status = 308, description = "The viewer.")))]
pub(crate) async fn start() -> Response {
    Redirect::permanent("/docs/").into_response()
}

/// Serves the viewer of the OpenAPI document
#[utoipa::path(get, path = "/docs/", operation_id = "get_viewer", tag = "operations", responses((status = 200, description = "The page.")))]
pub(crate) async fn page() -> Result {
    serve("index.html")
}

/// Serves a file of the viewer
#[utoipa::path(
    get,
    path = "/docs/{file}",
    operation_id = "get_viewer_file",
    tag = "operations",
    params(("file" = String, Path)),
    responses((status = 200, description = "The file."), (status = 404, description = "The viewer has no such file."))
)]
pub(crate) async fn file(path_params: PathParams) -> Result {
    serve(path_params.get("file"))
}

fn serve(file: &str) -> Result {
    let config = Arc::new(Config::from("/v1/openapi.json"));
    match utoipa_swagger_ui::serve(file, config) {
        Ok(Some(found)) => {
            let response = ([(header::CONTENT_TYPE, found.content_type)], found.bytes.into_owned());
            Ok(with_policy(response, POLICY))
        }
        Ok(None) => Err(ApiError::not_found("file")),
        Err(error) => Err(ApiError::internal(error.to_string())),
    }
}
