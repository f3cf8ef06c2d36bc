use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{File, find_file};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// A file that was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedFileJson<'a> {
    id: &'a str,
    object: &'static str,
    deleted: bool,
}

/// Deletes a file, including its text and passages
///
/// Works at any time, even while the file is being processed.
#[utoipa::path(
    delete,
    path = "/v1/files/{id}",
    operation_id = "delete_file",
    tag = "files",
    params(("id" = String, Path)),
    responses((status = 200, body = DeletedFileJson<'_>), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let id = path_params.get("id");
    let (owner, file) = find_file(&app, &caller.scope, id).await?;
    if owner != caller.scope {
        let message = "this file is shared by the whole tenant; use a tenant key to delete it";
        return Err(ApiError::forbidden("tenant_file", message));
    }
    let (library, document) = match file {
        File::Upload(stored) => (stored.upload.library, stored.upload.id),
        File::Document(library, document) => (library, document.id),
    };
    app.memory().remove_library_document(&owner, &library, &document).await?;
    Ok(json(&DeletedFileJson { id, object: "file", deleted: true }))
}
