use axum::extract::State;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Gets the stored report of a context
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/context/{turn}",
    operation_id = "get_context_report",
    tag = "context",
    params(("id" = String, Path), ("turn" = String, Path)),
    responses((status = 200, description = "The report.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn report(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let thread = path_params.thread(&app, &caller.scope).await?;
    let found = app.memory().context_report(&caller.scope, thread, path_params.get("turn")).await?;
    Ok(json(&found.ok_or_else(|| ApiError::not_found("report"))?))
}
