use axum::extract::State;
use serde::Serialize;
use threadkeep::{Agent, JsonText};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::output::json;

/// Assistants, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentsJson {
    data: Vec<AgentJson>,
}

/// An assistant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentJson {
    name: String,
    /// What it is for.
    description: String,
    /// What speaks, unless a thread's settings name another.
    model: String,
    tools: Vec<AgentToolJson>,
}

/// What its model may call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentToolJson {
    name: String,
    description: String,
    /// A JSON schema.
    #[schema(value_type = Object)]
    parameters: JsonText,
}

/// Lists the assistants that can be asked
#[utoipa::path(
    get,
    path = "/v1/agents",
    tag = "agents",
    responses((status = 200, body = AgentsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>) -> Result {
    Ok(json(&AgentsJson { data: app.assistants().all().iter().map(shown).collect() }))
}

fn shown(agent: &Agent) -> AgentJson {
    let definition = agent.assistant().definition();
    let tools = definition.tools.iter().map(|tool| {
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
    }
}
