use axum::extract::State;
use axum::http::{Method, Uri};

use super::assistant;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::Names;
use crate::output::json;

/// Tells that an assistant is served
#[utoipa::path(
    get,
    path = "/{assistant}/health",
    tag = "compat",
    params(("assistant" = String, Path)),
    responses((status = 200, description = "It is served."), (status = "4XX", body = ErrorEnvelope<'_>))
)]
pub(crate) async fn health(State(app): State<App>, names: Names, head: (Method, Uri)) -> Result {
    assistant::find(&app, &names, head.0, head.1).await?;
    Ok(json(&serde_json::json!({ "status": "ok" })))
}
