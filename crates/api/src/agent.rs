use serde::Serialize;
use threadkeep::agent::plugin::{MapLine, MapStation, NetworkMap};
use threadkeep::{Definition, JsonText, ToolDescription};
use utoipa::ToSchema;

use crate::policy::PolicyJson;

/// An assistant.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentJson {
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
pub struct AgentToolJson {
    name: String,
    description: String,
    /// A JSON schema.
    #[schema(value_type = Object)]
    parameters: JsonText,
}

/// An assistant in detail.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentDetailJson {
    #[serde(flatten)]
    agent: AgentJson,
    graph: GraphJson,
    /// The policy for assembling the context of the assistant's model, including the instructions. A turn may first
    /// look up passages of documents and earlier conversations, and add them to the context.
    context: PolicyJson,
}

/// The graph of an assistant, which decides what happens next in a turn.
#[derive(Debug, Serialize, ToSchema)]
pub struct GraphJson {
    name: String,
    version: u32,
    /// The graph as a Mermaid flowchart.
    mermaid: String,
}

/// The network that an assistant's answers are about: its lines and stations.
#[derive(Debug, Serialize, ToSchema)]
pub struct NetworkMapJson<'a> {
    stations: Vec<MapStationJson<'a>>,
    /// In the order in which a list shows them.
    lines: Vec<MapLineJson<'a>>,
}

/// A station of a network.
#[derive(Debug, Serialize, ToSchema)]
pub struct MapStationJson<'a> {
    /// The id, as in the results of the assistant's tools.
    id: &'a str,
    /// Stations with the same complex are connected on foot.
    complex: &'a str,
    /// The name, which need not be unique.
    name: &'a str,
    latitude: f64,
    longitude: f64,
}

/// A line of a network.
#[derive(Debug, Serialize, ToSchema)]
pub struct MapLineJson<'a> {
    id: &'a str,
    /// The name, as in the results of the assistant's tools. Several lines can share a name.
    name: &'a str,
    /// The name in full, if the name alone is unclear, such as `S 42 St Shuttle`.
    #[serde(skip_serializing_if = "Option::is_none")]
    full_name: Option<&'a str>,
    /// The colour, such as `#0039a6`.
    colour: &'a str,
    /// The stations of each stopping pattern in order, as indexes in `stations`; the most usual pattern first. A pattern applies
    /// to both directions.
    patterns: &'a [Vec<usize>],
}

impl<'a> From<&'a NetworkMap> for NetworkMapJson<'a> {
    fn from(map: &'a NetworkMap) -> Self {
        let stations = map.stations.iter().map(|station| {
            let MapStation { id, complex, name, latitude, longitude } = station;
            MapStationJson { id, complex, name, latitude: *latitude, longitude: *longitude }
        });
        let lines = map.lines.iter().map(|line| {
            let MapLine { id, name, full_name, colour, patterns } = line;
            MapLineJson { id, name, full_name: *full_name, colour, patterns }
        });
        Self { stations: stations.collect(), lines: lines.collect() }
    }
}

impl AgentJson {
    /// Converts the definition of an assistant.
    pub fn of(definition: &Definition, has_map: bool) -> Self {
        let tools = definition.all_tools().into_iter().map(|tool| {
            let ToolDescription { name, description, parameters, .. } = tool.spec().description.clone();
            AgentToolJson { name, description, parameters }
        });
        Self {
            name: definition.name.clone(),
            description: definition.description.clone(),
            model: definition.model.name().to_owned(),
            tools: tools.collect(),
            has_map,
        }
    }
}

impl AgentDetailJson {
    /// Converts the definition of an assistant.
    pub fn of(definition: &Definition, has_map: bool) -> Self {
        let graph = &definition.graph;
        let graph = GraphJson { name: graph.name().to_owned(), version: graph.version(), mermaid: graph.mermaid() };
        Self { agent: AgentJson::of(definition, has_map), graph, context: PolicyJson::from(&definition.context) }
    }
}
