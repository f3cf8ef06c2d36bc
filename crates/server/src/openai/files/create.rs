use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use threadkeep::memory::{LibraryUpload, StoredUpload, UploadState};
use threadkeep::{MemoryError, Scope, StoreError};
use threadkeep_api::file::FileJson;

use super::form::{UploadForm, UploadFormJson};
use super::{file_not_found, ingest, upload_id};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input;
use crate::output::{json, with_replay};
use crate::security::Caller;

/// Uploads a document, which assistants can then cite
///
/// The document is added to a library of the caller. Its passages are added in the background; the response is sent when all are
/// added, or after a few seconds. `status` is `uploaded` until all passages can be found. A repeated request creates another
/// file, unless it has the same Idempotency-Key.
#[utoipa::path(
    post,
    path = "/v1/files",
    operation_id = "upload_file",
    tag = "files",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = UploadFormJson, content_type = "multipart/form-data"),
    responses((status = 200, body = FileJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn create(State(app): State<App>, caller: Caller, headers: HeaderMap, form: UploadForm) -> Result {
    let identity = input::read_identity(&headers, "files", &form.digest)?;
    let (scope, memory) = (&caller.scope, app.memory());
    let id = upload_id(identity.thread_id(&app, scope));
    if identity.key().is_some()
        && let Some(existing) = memory.find_upload(scope, &id).await?
    {
        identity.check_same(&existing.upload.digest)?;
        if existing.upload.state != UploadState::Receiving || !existing.upload.is_interrupted(memory.now()) {
            ingest::resume(&app, scope, existing).await?;
            return Ok(with_replay(respond(&app, scope, &id).await?, true));
        }
        memory.remove_library_document(scope, &existing.upload.library, &id).await?;
    }
    let split = ingest::split(form.text.clone(), form.format).await?;
    let now = memory.now();
    let upload = LibraryUpload {
        id: id.clone(),
        library: form.library,
        filename: form.filename,
        purpose: form.purpose,
        format: ingest::format_name(form.format).to_owned(),
        bytes: form.text.len(),
        digest: identity.digest().to_owned(),
        created_at: now,
        state: UploadState::Receiving,
        passages: split.passages.len(),
        stored_passages: 0,
        error: None,
        leased_until: ingest::lease_end(now),
    };
    match store(&app, scope, upload, form.text).await? {
        Ok(stored) => {
            let working = ingest::start(&app, scope, stored);
            // After this time, the client has to poll the state of the file.
            drop(tokio::time::timeout(app.options().upload_wait, working).await);
            respond(&app, scope, &id).await
        }
        // A request with the same Idempotency-Key stored the file at the same time.
        Err(MemoryError::Store(StoreError::Conflict(_))) => {
            let existing = memory.find_upload(scope, &id).await?.ok_or_else(|| file_not_found(&id))?;
            identity.check_same(&existing.upload.digest)?;
            Ok(with_replay(respond(&app, scope, &id).await?, true))
        }
        Err(error) => Err(error.into()),
    }
}

/// Stores an upload. Continues if the client disconnects, so that the upload is not left incomplete.
async fn store(
    app: &App,
    scope: &Scope,
    upload: LibraryUpload,
    text: String,
) -> Result<Result<StoredUpload, MemoryError>> {
    let (app, scope, guard) = (app.clone(), scope.clone(), app.delay_shutdown());
    let storing = tokio::spawn(async move {
        let _guard = guard;
        app.memory().store_upload(&scope, upload, &text).await
    });
    storing.await.map_err(|_| ApiError::task_panicked())
}

async fn respond(app: &App, scope: &Scope, id: &str) -> Result<Response> {
    let memory = app.memory();
    let stored = memory.find_upload(scope, id).await?.ok_or_else(|| file_not_found(id))?;
    Ok(json(&FileJson::of_upload(&stored.upload, memory.now())))
}
