use axum::extract::State;
use serde::Deserialize;
use threadkeep::ToolSwitch;
use utoipa::ToSchema;

use super::ThreadToolsJson;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams};
use crate::output::json;
use crate::security::Caller;

/// Whether a tool may be called.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwitchJson {
    enabled: bool,
}

/// Switches a tool off in a thread, or on again
///
/// A tool that is switched off is not offered to the model, and refused if it is called. No tool is added to those that the assistant
/// has.
#[utoipa::path(
    put,
    path = "/v1/threads/{id}/tools/{name}",
    operation_id = "switch_thread_tool",
    tag = "threads",
    params(("id" = String, Path), ("name" = String, Path)),
    request_body = SwitchJson,
    responses((status = 200, body = ThreadToolsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    JsonBody { value: body, .. }: JsonBody<SwitchJson>,
) -> Result {
    let id = path_params.thread(&app, &caller.scope).await?;
    let switch = if body.enabled { ToolSwitch::On } else { ToolSwitch::Off };
    let switches = [(path_params.get("name").to_owned(), switch)];
    let config = app.memory().switch_tools(&caller.scope, id, &switches).await?;
    Ok(json(&ThreadToolsJson::from(config)))
}
