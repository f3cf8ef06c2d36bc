use anyhow::Result;
use threadkeep::agent::{ToolCallTrace, TurnUsage};
use threadkeep::{Source, Turn, TurnStatus, Value};

use super::{App, Status};
use crate::assistants::DEFAULT;
use crate::failure::Failure;
use crate::instants;
use crate::output::{BOLD, DIM, Output, printable, printable_line};
use crate::session::Session;
use crate::store::Purpose;
use crate::table::{counted, cut, number, pairs};
use crate::thread_name;

/// The number of columns after which arguments and results are truncated.
const DETAIL_COLUMNS: usize = 200;

/// Show the details of a turn: tools, sources, tokens
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep trace 0199a6f2-7d11-7aa3-8c05-3f1d7a2b9c44
  threadkeep trace TURN --json                      the turn, as `ask --json` printed it
  threadkeep context --turn TURN --explain          the context that the model received, and why")]
pub(crate) struct Arguments {
    /// The turn's id
    turn: String,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let session = Session::open(app, DEFAULT, Some("offline"), Purpose::Read).await?;
    let Some(turn) = session.find_turn(&arguments.turn).await? else {
        let failure = Failure::user_error(format!("turn `{}` not found", cut(&printable_line(&arguments.turn), 60)));
        return Err(failure.hint("`threadkeep ask --json` prints the turn's id; turns are stored for 30 days").into());
    };
    if app.output.is_json() {
        app.output.json(&turn)?;
    } else {
        print(&app.output, &turn)?;
    }
    Ok(Status::Done)
}

/// Prints the details of a turn.
pub(super) fn print(output: &Output, turn: &Turn) -> Result<()> {
    let mut lines = output.lines();
    let ended = match (&turn.status, &turn.error) {
        (TurnStatus::Failed, Some(error)) => format!("failed: {} ({})", error.message, error.code),
        (TurnStatus::Failed, None) => "failed".to_owned(),
        (TurnStatus::WaitingForApproval, _) => "waiting for approval".to_owned(),
        (TurnStatus::Completed, _) => "completed".to_owned(),
    };
    let routed = turn.routed_agent.as_ref().map(|agent| format!(" · {agent}")).unwrap_or_default();
    let context = turn.context;
    lines.line(output.paint(BOLD, format!("turn {}", turn.turn)))?;
    lines.line(pairs([
        ("thread", thread_name::short(turn.thread)),
        ("assistant", format!("{}{routed}", turn.agent)),
        ("model", printable_line(&turn.model)),
        ("status", printable_line(&ended)),
        ("started", format!("{}, took {} ms", instants::minute(turn.started_at), number(turn.duration_ms))),
        ("context", format!("{}, {}", counted(context.messages, "message"), counted(context.tokens, "token"))),
        ("usage", usage(&turn.usage)),
    ]))?;
    for call in &turn.tool_calls {
        lines.line("")?;
        for line in tool_lines(output, call) {
            lines.line(line)?;
        }
    }
    for approval in &turn.approvals {
        lines.line(format_args!(
            "\napproval {} · {}: {}",
            approval.id,
            approval.state,
            printable_line(&approval.preview)
        ))?;
    }
    lines.finish()?;
    print_sources(output, turn)
}

fn usage(usage: &TurnUsage) -> String {
    let calls = counted(usage.model_calls, "model call");
    let tokens = format!("{} tokens in, {} out", number(usage.input_tokens), number(usage.output_tokens));
    match usage.cost_usd {
        Some(cost) => format!("{calls}, {tokens}, ${cost:.4}"),
        None => format!("{calls}, {tokens}, price unknown"),
    }
}

fn tool_lines(output: &Output, call: &ToolCallTrace) -> Vec<String> {
    let arguments = cut(&printable_line(call.arguments.as_str()), DETAIL_COLUMNS);
    let cached = if call.cached { ", cached" } else { "" };
    let outcome = match (&call.result, &call.error) {
        (Some(result), _) => cut(&printable_line(result.as_str()), DETAIL_COLUMNS),
        (None, Some(error)) => format!("failed: {}", cut(&printable_line(error), DETAIL_COLUMNS)),
        (None, None) => "no result".to_owned(),
    };
    let took = format!("({} ms{cached})", call.duration_ms);
    vec![format!("tool {}{} {}", call.name, arguments, output.paint(DIM, took)), format!("  → {outcome}")]
}

/// Prints the sources of a reply, with the numbers by which the reply cites them.
pub(super) fn print_sources(output: &Output, turn: &Turn) -> Result<()> {
    if turn.sources.is_empty() {
        return Ok(());
    }
    let mut lines = output.lines();
    lines.line("")?;
    for source in &turn.sources {
        lines.line(output.paint(DIM, source_line(source)))?;
    }
    lines.finish()
}

fn source_line(source: &Source) -> String {
    let cited = source.fields.get("cited_as").and_then(Value::as_u64);
    let mark = cited.map_or_else(|| "  ·".to_owned(), |number| format!("[{number}]"));
    let title = printable_line(source.title.as_deref().unwrap_or(&source.id));
    let location = match (source.fields.get("thread").and_then(Value::as_str), source.fields.get("seq")) {
        (Some(thread), Some(seq)) => {
            let id: String = thread.chars().take(thread_name::SHORT_ID_CHARS).collect();
            format!(" (message #{seq} of thread {})", printable(&id))
        }
        _ => String::new(),
    };
    format!("{mark} {title}{location}")
}
