mod clients;
mod edit;
mod install;

use anyhow::Result;
use threadkeep_mcp::{ToolSelection, Toolbox, serve_stdio};

use super::{App, Status};
use crate::failure::Failure;
use crate::store::Purpose;

/// Give coding assistants and other MCP clients access to conversations and memories
///
/// Serves the Model Context Protocol over standard input and output, for one client, until it closes the connection. Clients start
/// this command themselves. Tools read and write only what belongs to --user and --tenant. docs/mcp.md describes the tools.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep mcp                                 serve the default tools
  threadkeep mcp --tools default,list_threads    serve more tools
  threadkeep mcp --tools knowledge_graph         serve the tools of a knowledge graph
  threadkeep mcp --read-only                     serve only tools that change nothing
  threadkeep mcp install claude-code             add the server to Claude Code")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    /// The tools, separated by commas: names, `default`, `knowledge_graph` or `all`
    #[arg(long, value_name = "TOOLS", default_value = "default", hide_default_value = true)]
    tools: ToolSelection,
    /// Serve only tools that change nothing. The store must exist
    #[arg(long)]
    read_only: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Install(install::Arguments),
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    if let Some(Action::Install(install)) = &arguments.action {
        return install::run(app, install);
    }
    let tools = if arguments.read_only { arguments.tools.read_only() } else { arguments.tools };
    if tools.iter().next().is_none() {
        return Err(Failure::usage("no tools selected").hint("omit --tools to serve the default tools").into());
    }
    let purpose = if arguments.read_only { Purpose::Read } else { Purpose::Serve };
    let memory = app.open(purpose).await?.memory;
    serve_stdio(Toolbox::new(memory, app.scope()?, tools)).await?;
    Ok(Status::Done)
}
