use axum::extract::State;
use threadkeep_api::agent::AgentDetailJson;

use super::find_agent;
use super::list::has_map;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;

/// Gets an assistant with its graph and its context policy
#[utoipa::path(
    get,
    path = "/v1/agents/{name}",
    operation_id = "get_agent",
    tag = "agents",
    params(("name" = String, Path)),
    responses((status = 200, body = AgentDetailJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn get(State(app): State<App>, path_params: PathParams) -> Result {
    let agent = find_agent(&app, path_params.get("name"))?;
    Ok(json(&AgentDetailJson::of(agent.assistant().definition(), has_map(&app, &agent))))
}
