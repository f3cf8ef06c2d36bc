use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::{File, file_not_found, find_file};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::security::Caller;

/// Returns the text of an uploaded file
#[utoipa::path(
    get,
    path = "/v1/files/{id}/content",
    operation_id = "get_file_content",
    tag = "files",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The text, exactly as uploaded.", content_type = "text/plain", body = String),
        (status = "4XX", body = ErrorEnvelope<'_>)
    ),
    security(("key" = []))
)]
pub(crate) async fn content(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result<Response> {
    let id = path_params.get("id");
    let (owner, file) = find_file(&app, &caller.scope, id).await?;
    let File::Upload(stored) = file else {
        let message = "this document was added on the command line, which does not store the original file";
        return Err(ApiError::new(StatusCode::NOT_FOUND, "content_not_stored", message));
    };
    let text = app.memory().read_upload(&owner, &stored.upload).await?.ok_or_else(|| file_not_found(id))?;
    // Not the file's own type: a browser would run the scripts of an HTML file with the privileges of this server's pages.
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
    ];
    Ok((headers, text).into_response())
}
