use axum::extract::State;
use serde::Serialize;
use threadkeep::Agent;
use threadkeep_api::agent::AgentJson;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::output::json;

/// The assistants, ordered by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentsJson {
    data: Vec<AgentJson>,
}

/// Lists the assistants
#[utoipa::path(
    get,
    path = "/v1/agents",
    operation_id = "list_agents",
    tag = "agents",
    responses((status = 200, body = AgentsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>) -> Result {
    let agents = app.assistants().all();
    let agents = agents.iter().map(|agent| AgentJson::of(agent.assistant().definition(), has_map(&app, agent)));
    Ok(json(&AgentsJson { data: agents.collect() }))
}

pub(super) fn has_map(app: &App, agent: &Agent) -> bool {
    app.assistants().network_map(&agent.assistant().definition().name).is_some()
}
