use anyhow::Result;
use threadkeep::{Turn, TurnStatus};

use super::{App, Status, approvals, trace};
use crate::assistants::{DEFAULT, command_examples};
use crate::failure::Failure;
use crate::output::printable;
use crate::session::{Session, was_stopped};
use crate::store::Purpose;

/// Ask an assistant one question
///
/// If no language model is configured, the offline model answers. With --thread the question and its answer become part of
/// that conversation. Without it they are stored for one day, so that a call can wait for approval and `trace` can show the
/// turn; they are not listed, searched, recalled or exported.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub(crate) struct Arguments {
    /// The assistant (general if omitted) and the question
    #[arg(required = true, num_args = 1..=2, value_names = ["NAME", "TEXT"])]
    words: Vec<String>,
    /// The thread: its id, a prefix of the id, or its key; created with that key if it does not exist
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    /// The model: offline, PROVIDER, PROVIDER:MODEL
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

fn after_help() -> String {
    format!(
        "Examples:
  threadkeep ask 'What did I say about the tent?'
  threadkeep ask 'And the stove?' --thread camping     in the thread with the key `camping`, created if needed{}
  threadkeep ask {DEFAULT} 'Who has the keys?' --json    the whole turn, as described in docs/cli.md",
        command_examples("ask", 55)
    )
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let (name, text) = match &arguments.words[..] {
        [name, text] => (name.as_str(), text.as_str()),
        [text] => (DEFAULT, text.as_str()),
        _ => return Err(Failure::usage("put the question in quotes").into()),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the question is empty").into());
    }
    let model = arguments.model.as_deref();
    let (session, thread) = match &arguments.thread {
        Some(thread) => {
            let session = Session::open(app, name, model, Purpose::CreateOrWrite).await?;
            let thread = session.thread(Some(thread)).await?;
            (session, thread)
        }
        None => {
            let session = Session::open_ephemeral(app, name, model).await?;
            let thread = session.ephemeral_thread().await?;
            (session, thread)
        }
    };
    let turn = session.ask(app, thread, text, &mut |_| {}).await?;
    if app.output.is_json() {
        app.output.json(&turn)?;
    } else {
        app.output.line(printable(&turn.reply))?;
        trace::print_sources(&app.output, &turn)?;
        approvals::print_open_approvals(app, &session, &turn);
        // The reply may say that the assistant will remember something, so the note says for how long.
        if arguments.thread.is_none() && !session.is_in_memory {
            app.output.note("stored for one day, outside any conversation; --thread NAME stores it in one");
        }
    }
    Ok(status(&turn))
}

/// Returns the status of the command for a turn.
pub(super) fn status(turn: &Turn) -> Status {
    match turn.status {
        TurnStatus::Failed if was_stopped(turn) => Status::Interrupted,
        TurnStatus::Failed => Status::Incomplete,
        TurnStatus::Completed | TurnStatus::WaitingForApproval => Status::Done,
    }
}
