use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::find_agent;
use super::list::{AgentJson, agent_json};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::rest::context::policy::PolicyJson;

/// An assistant in detail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentDetailJson {
    #[serde(flatten)]
    agent: AgentJson,
    graph: GraphJson,
    /// The policy for assembling the context of the assistant's model, including the instructions. A turn may first
    /// look up passages of documents and earlier conversations, and add them to the context.
    context: PolicyJson,
}

/// The graph of an assistant, which decides what happens next in a turn.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GraphJson {
    name: String,
    version: u32,
    /// The graph as a Mermaid flowchart.
    mermaid: String,
}

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
    let definition = agent.assistant().definition();
    let graph = &definition.graph;
    let graph = GraphJson { name: graph.name().to_owned(), version: graph.version(), mermaid: graph.mermaid() };
    Ok(json(&AgentDetailJson {
        agent: agent_json(&app, &agent),
        graph,
        context: PolicyJson::from(&definition.context),
    }))
}
