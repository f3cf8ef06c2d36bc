use anyhow::Result;
use serde::Serialize;
use threadkeep::Memory;
use threadkeep::agent::plugin::AssistantParts;

use super::{App, Status};
use crate::assistants::{AssistantSource, BUILT_IN, DEFAULT, command_examples};

/// Draw an assistant's graph as a Mermaid flowchart
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub(crate) struct Arguments {
    /// The assistant
    #[arg(default_value = DEFAULT)]
    name: String,
}

#[derive(Serialize)]
struct GraphJson<'a> {
    assistant: &'a str,
    graph: &'a str,
    version: u32,
    mermaid: String,
    tools: Vec<&'a str>,
    assistants: Vec<&'static str>,
}

fn after_help() -> String {
    format!("Examples:{}\n  threadkeep graph ./gardener.yaml > gardener.mmd", command_examples("graph", 0))
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let memory: Memory = threadkeep::open("memory:").await?;
    let parts = AssistantParts { memory, model: None, embedder: None, tool_sources: Vec::new() };
    let assistant = AssistantSource::find(&arguments.name, &app.settings)?.make(parts, &app.settings)?;
    let definition = assistant.definition();
    let mermaid = definition.graph.mermaid();
    if !app.output.is_json() {
        app.output.line(mermaid.trim_end())?;
        return Ok(Status::Done);
    }
    app.output.json(&GraphJson {
        assistant: &definition.name,
        graph: definition.graph.name(),
        version: definition.graph.version(),
        mermaid,
        tools: definition.tools.iter().map(|tool| tool.spec().name()).collect(),
        assistants: BUILT_IN.iter().map(|plugin| plugin.name).collect(),
    })?;
    Ok(Status::Done)
}
