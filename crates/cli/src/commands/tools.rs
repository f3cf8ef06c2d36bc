use anyhow::Result;
use threadkeep::ToolSwitch;

use super::{App, Status};
use crate::output::printable_line;
use crate::store::Purpose;
use crate::thread_name;

/// Show which tools are switched off in a thread, switch them off or on again
///
/// A tool that is switched off is not offered to the model in this thread, and refused if it is called. No tool is added to those that
/// the assistant has.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep tools beds                          which tools are switched off
  threadkeep tools beds --off set_preference
  threadkeep tools beds --on set_preference")]
pub(crate) struct Arguments {
    /// The thread: its id, a prefix of the id, or its key
    thread: String,
    /// Switch a tool off
    #[arg(long, value_name = "TOOL")]
    off: Vec<String>,
    /// Switch a tool on again
    #[arg(long, value_name = "TOOL")]
    on: Vec<String>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let off = arguments.off.into_iter().map(|name| (name, ToolSwitch::Off));
    let on = arguments.on.into_iter().map(|name| (name, ToolSwitch::On));
    let switches: Vec<(String, ToolSwitch)> = off.chain(on).collect();
    let purpose = if switches.is_empty() { Purpose::Read } else { Purpose::Write };
    let (memory, scope) = (app.open(purpose).await?.memory, app.scope()?);
    let thread = thread_name::get(&memory, &scope, &arguments.thread).await?.id;
    let config = if switches.is_empty() {
        memory.thread_config(&scope, thread).await?
    } else {
        memory.switch_tools(&scope, thread, &switches).await?
    };
    if app.output.is_json() {
        let (enabled, disabled) = (&config.enabled_tools, &config.disabled_tools);
        app.output.json(&serde_json::json!({ "thread": thread, "enabled": enabled, "disabled": disabled }))?;
        return Ok(Status::Done);
    }
    let list =
        |names: &[String]| names.iter().map(|name| printable_line(name).to_string()).collect::<Vec<_>>().join(", ");
    if let Some(enabled) = &config.enabled_tools {
        app.output.line(format_args!("only these tools may be called: {}", list(enabled)))?;
    }
    match config.disabled_tools.as_slice() {
        [] => app.output.line("no tool is switched off")?,
        disabled => app.output.line(format_args!("switched off: {}", list(disabled)))?,
    }
    Ok(Status::Done)
}
