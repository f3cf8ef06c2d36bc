use anyhow::Result;
use serde::Serialize;
use threadkeep::Memory;

use super::{App, Status};
use crate::assistants::{DEFAULT, Found, Parts, built_in};
use crate::subway;

/// Draw how an assistant works, as a Mermaid flowchart
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep graph subway
  threadkeep graph ./gardener.yaml > gardener.mmd")]
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

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let memory: Memory = threadkeep::open("memory:").await?;
    let subway = subway::options(&app.settings);
    let parts = Parts { memory, model: None, embedder: None, subway };
    let assistant = Found::find(&arguments.name, &app.settings)?.make(parts)?;
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
        assistants: built_in().map(|(name, _)| name).collect(),
    })?;
    Ok(Status::Done)
}
