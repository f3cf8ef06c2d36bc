use axum::extract::State;
use serde::Serialize;
use threadkeep::{Agent, JsonText};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::output::json;

/// The assistants, ordered by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentsJson {
    data: Vec<AgentJson>,
}

/// An assistant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentJson {
    name: String,
    /// The purpose of the assistant.
    description: String,
    /// The default model. The settings of a thread may select another model.
    model: String,
    tools: Vec<AgentToolJson>,
    /// Whether `GET /v1/agents/{name}/map` returns a map.
    has_map: bool,
}

/// A tool that the assistant's model can call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentToolJson {
    name: String,
    description: String,
    /// A JSON schema.
    #[schema(value_type = Object)]
    parameters: JsonText,
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
    Ok(json(&AgentsJson { data: app.assistants().all().iter().map(|agent| agent_json(&app, agent)).collect() }))
}

pub(super) fn agent_json(app: &App, agent: &Agent) -> AgentJson {
    let definition = agent.assistant().definition();
    let tools = definition.all_tools().into_iter().map(|tool| {
        let description = tool.spec().description.clone();
        AgentToolJson {
            name: description.name,
            description: description.description,
            parameters: description.parameters,
        }
    });
    AgentJson {
        name: definition.name.clone(),
        description: definition.description.clone(),
        model: definition.model.name().to_owned(),
        tools: tools.collect(),
        has_map: app.assistants().network_map(&definition.name).is_some(),
    }
}
