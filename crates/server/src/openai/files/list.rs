use std::collections::HashSet;

use axum::extract::State;
use threadkeep::Scope;
use threadkeep_api::file::FileJson;

use super::{DEFAULT_LIBRARY, check_library, document_json, file_not_found};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::QueryParams;
use crate::openai::conversation_items::list::{PageQuery, page_response};
use crate::openai::items::Item;
use crate::output::encode_json;
use crate::security::Caller;

/// The maximum number of files that can be listed.
const MAX_FILES: usize = 10_000;

/// Lists the files in a library, by default newest first
///
/// Includes documents that were added on the command line. A user's list contains the user's own files, or with `owner=tenant`
/// those of the whole tenant.
#[utoipa::path(
    get,
    path = "/v1/files",
    operation_id = "list_files",
    tag = "files",
    params(
        ("library" = Option<String>, Query, description = "Default: `documents`"),
        ("owner" = Option<String>, Query, description = "`user` (default) or `tenant`"),
        ("purpose" = Option<String>, Query, description = "Only files with this purpose"),
        ("after" = Option<String>, Query, description = "The `last_id` of the previous page"),
        ("limit" = Option<u32>, Query, description = "1 to 100; default 20"),
        ("order" = Option<String>, Query, description = "`desc` (default) or `asc`")
    ),
    responses((status = 200, description = "A page of files.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, mut params: QueryParams) -> Result {
    let query = PageQuery::read(&mut params)?;
    let library = params.take("library")?.unwrap_or_else(|| DEFAULT_LIBRARY.to_owned());
    check_library(&library)?;
    let owner = match params.take("owner")?.as_deref() {
        None | Some("user") => caller.scope.clone(),
        Some("tenant") => Scope::Tenant(caller.scope.tenant_id().clone()),
        Some(_) => return Err(ApiError::invalid("owner", "`owner` must be `user` or `tenant`")),
    };
    let purpose = params.take("purpose")?;
    params.finish()?;
    let mut files = list_files(&app, &owner, &library).await?;
    files.retain(|file| purpose.as_ref().is_none_or(|purpose| file.purpose == *purpose));
    if files.len() > MAX_FILES {
        let message = format!("The library has more than {MAX_FILES} files; divide them among several libraries.");
        return Err(ApiError::invalid("library", message).code("limit_exceeded"));
    }
    files.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    let items = files.into_iter().map(|file| {
        let json = encode_json(&file)?;
        Ok(Item { json: String::from_utf8_lossy(&json).into_owned(), id: file.id })
    });
    let items = items.collect::<Result<Vec<_>>>()?;
    let is_listed = |after: &String| items.iter().any(|item| item.id == *after);
    match &query.after {
        Some(after) if !is_listed(after) => Err(file_not_found(after)),
        _ => page_response(items, &query),
    }
}

/// Returns the files in the owner's part of a library.
async fn list_files(app: &App, owner: &Scope, library: &str) -> Result<Vec<FileJson>> {
    let (memory, now) = (app.memory(), app.memory().now());
    let uploads = memory.list_uploads(owner).await?;
    let uploads: Vec<_> = uploads.into_iter().filter(|upload| upload.library == library).collect();
    let uploaded: HashSet<&str> = uploads.iter().map(|upload| upload.id.as_str()).collect();
    let documents = memory.list_library(owner, library).await?;
    let others = documents.iter().filter(|document| !uploaded.contains(document.id.as_str()));
    let others = others.map(|document| document_json(library, document));
    Ok(uploads.iter().map(|upload| FileJson::of_upload(upload, now)).chain(others).collect())
}
