use axum::extract::State;
use threadkeep_api::file::FileJson;
use threadkeep_service::MayResume;

use super::{File, find_file, ingest};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Returns a file and its processing status
///
/// If processing was interrupted by a crash, a request from a caller with the role `write` restarts it.
#[utoipa::path(
    get,
    path = "/v1/files/{id}",
    operation_id = "get_file",
    tag = "files",
    params(("id" = String, Path)),
    responses((status = 200, body = FileJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn retrieve(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let (owner, file) = find_file(&app, &caller.scope, path_params.get("id")).await?;
    let body = json(&file.to_json(app.memory().now()));
    if let File::Upload(stored) = file
        && owner == caller.scope
        && caller.may_resume() == MayResume::Yes
    {
        ingest::resume(&app, &owner, stored).await?;
    }
    Ok(body)
}
