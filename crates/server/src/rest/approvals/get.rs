use axum::extract::State;
use threadkeep::agent::find_approval;
use threadkeep_api::approval::ApprovalJson;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Gets an approval
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/approvals/{approval}",
    operation_id = "get_approval",
    tag = "approvals",
    params(("id" = String, Path), ("approval" = String, Path)),
    responses((status = 200, body = ApprovalJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let (memory, thread) = (app.memory(), path_params.thread(&app, &caller.scope).await?);
    let found = find_approval(memory, &caller.scope, thread, path_params.get("approval")).await?;
    let found = found.ok_or_else(|| ApiError::not_found("approval"))?;
    Ok(json(&ApprovalJson::of(thread, found, memory.now())))
}
