use axum::extract::State;
use axum::http::{Method, Uri};

use super::assistant;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;

/// Checks that an assistant is available
#[utoipa::path(
    get,
    path = "/{assistant}/health",
    operation_id = "check_assistant",
    tag = "compat",
    params(("assistant" = String, Path)),
    responses((status = 200, description = "The assistant is available."), (status = "4XX", body = ErrorEnvelope<'_>))
)]
pub(crate) async fn health(State(app): State<App>, path_params: PathParams, head: (Method, Uri)) -> Result {
    assistant::find(&app, &path_params, head.0, head.1).await?;
    Ok(json(&serde_json::json!({ "status": "ok" })))
}
