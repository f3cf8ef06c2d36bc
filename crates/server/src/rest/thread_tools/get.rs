use axum::extract::State;

use super::ThreadToolsJson;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Returns which tools are switched off in a thread
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/tools",
    operation_id = "get_thread_tools",
    tag = "threads",
    params(("id" = String, Path)),
    responses((status = 200, body = ThreadToolsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let id = path_params.thread(&app, &caller.scope).await?;
    let config = app.memory().thread_config(&caller.scope, id).await?;
    Ok(json(&ThreadToolsJson::from(config)))
}
