use anyhow::Result;
use serde::Serialize;
use threadkeep::agent::{Approval, ApprovalState, TurnState, find_turn_state};
use threadkeep::{Map, ThreadId, Turn, Verdict};

use super::{App, Status, ask, trace};
use crate::arguments::quoted;
use crate::assistants::{AssistantSource, DEFAULT};
use crate::failure::{Failure, sentence};
use crate::instants;
use crate::output::{printable, printable_line};
use crate::session::{Session, agent_error};
use crate::store::Purpose;
use crate::table::{Align, Table, cut};
use crate::thread_name;

const PREVIEW_COLUMNS: usize = 60;

/// List the approvals that assistants request, and approve or deny them
///
/// An approval allows exactly one call. It can be used once, until it expires.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep approvals list
  threadkeep approvals approve 0199a6f2-…
  threadkeep approvals approve 0199a6f2-… --arguments '{\"name\": \"web-2\"}'
  threadkeep approvals deny 0199a6f2-… --reason 'not on a Friday'")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List open approvals
    List {
        /// Also list decided and expired approvals
        #[arg(long)]
        all: bool,
    },
    /// Allow a call and run it immediately
    Approve {
        /// The approval's id
        id: String,
        /// Arguments that replace those of the call, as a JSON object
        #[arg(long, value_name = "JSON")]
        arguments: Option<String>,
        #[command(flatten)]
        options: AssistantOptions,
    },
    /// Deny a call
    Deny {
        /// The approval's id
        id: String,
        /// The reason, which is passed to the assistant
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        options: AssistantOptions,
    },
}

#[derive(Debug, clap::Args)]
struct AssistantOptions {
    /// The assistant that requested the approval, if it is a YAML file outside the assistants folder
    #[arg(long, value_name = "NAME")]
    assistant: Option<String>,
    /// The model that continues the turn: offline, PROVIDER, PROVIDER:MODEL
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

#[derive(Serialize)]
struct Row {
    thread: ThreadId,
    #[serde(flatten)]
    approval: Approval,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    match arguments.action {
        Action::List { all } => list(app, all).await,
        Action::Approve { id, arguments, options } => {
            let verdict = match arguments.as_deref().map(serde_json::from_str::<Map>) {
                None => Verdict::Approve,
                Some(Ok(changed)) => Verdict::ApproveWithChanges(changed),
                Some(Err(error)) => {
                    return Err(Failure::usage(format!("--arguments is not a JSON object: {error}")).into());
                }
            };
            decide(app, &id, verdict, &options).await
        }
        Action::Deny { id, reason, options } => decide(app, &id, Verdict::Deny { reason }, &options).await,
    }
}

async fn rows(session: &Session, all: bool) -> Result<Vec<Row>> {
    let now = session.memory.now();
    let mut rows = Vec::new();
    for thread in session.threads().await? {
        let approvals = session.agent.approvals(&session.scope, thread.id).await.map_err(agent_error)?;
        let wanted = approvals.into_iter().filter(|approval| all || approval.is_open(now));
        rows.extend(wanted.map(|approval| Row { thread: thread.id, approval }));
    }
    rows.sort_by_key(|row| row.approval.requested_at);
    Ok(rows)
}

async fn list(app: &App, all: bool) -> Result<Status> {
    let session = Session::open(app, DEFAULT, Some("offline"), Purpose::Read).await?;
    let rows = rows(&session, all).await?;
    if app.output.is_json() {
        app.output.json(&serde_json::json!({"approvals": rows}))?;
        return Ok(Status::Done);
    }
    if rows.is_empty() {
        app.output.note("no open approvals");
        return Ok(Status::Done);
    }
    let columns = ["id", "state", "call", "expires", "thread"];
    let mut table = Table::new(columns.map(|name| (name, Align::Left)));
    for Row { thread, approval } in &rows {
        table.add_row([
            approval.id.clone(),
            approval.state.to_string(),
            cut(&printable_line(&approval.preview), PREVIEW_COLUMNS),
            instants::minute(approval.expires_at),
            thread_name::short(*thread),
        ]);
    }
    app.output.line(table.text())?;
    Ok(Status::Done)
}

async fn decide(app: &App, id: &str, verdict: Verdict, options: &AssistantOptions) -> Result<Status> {
    let session = Session::open(app, DEFAULT, Some("offline"), Purpose::Write).await?;
    let found = rows(&session, true).await?.into_iter().find(|row| row.approval.id == id);
    let Some(Row { thread, approval }) = found else {
        let failure =
            Failure::user_error(format!("approval `{}` not found", cut(&printable_line(id), PREVIEW_COLUMNS)));
        return Err(failure.hint("`threadkeep approvals list` lists open approvals").into());
    };
    // The assistant that requested the approval also continues the turn.
    let requester = match find_turn_state(&session.memory, &session.scope, thread, &approval.turn).await? {
        Some(TurnState::Running(running)) => running.assistant,
        Some(TurnState::NotRunning(turn)) => turn.agent,
        _ => DEFAULT.to_owned(),
    };
    let session = open(app, &requester, options).await?;
    let by = app.global.user_id()?;
    let turn = session.decide(&app.interrupt, thread, (id, verdict, &by), &mut |_| {}).await?;
    if app.output.is_json() {
        app.output.json(&turn)?;
    } else {
        app.output.line(printable(&turn.reply))?;
        trace::print_sources(&app.output, &turn)?;
        print_open_approvals(app, &session, &turn);
    }
    Ok(ask::status(&turn))
}

/// Opens the assistant that requested an approval: the one named in `options`, or else the one that the turn recorded.
async fn open(app: &App, requester: &str, options: &AssistantOptions) -> Result<Session> {
    let name = options.assistant.as_deref().unwrap_or(requester);
    if let (None, Err(error)) = (&options.assistant, AssistantSource::find(requester, &app.settings)) {
        let failure =
            Failure::user_error(format!("cannot load the assistant that requested the approval: {}", sentence(&error)));
        let file = quoted(&format!("./{}.yaml", printable_line(requester)));
        return Err(failure.hint(format!("specify its file: --assistant {file}")).into());
    }
    let session = Session::open(app, name, options.model.as_deref(), Purpose::Write).await?;
    let given = &session.assistant().definition().name;
    if given != requester {
        let (given, requester) = (printable_line(given), printable_line(requester));
        let failure = Failure::usage(format!("the approval was requested by assistant {requester}, not by {given}"));
        return Err(failure.into());
    }
    Ok(session)
}

/// Prints the commands that approve or deny a turn's pending calls.
pub(super) fn print_open_approvals(app: &App, session: &Session, turn: &Turn) {
    let open = turn.approvals.iter().filter(|approval| approval.state == ApprovalState::Pending);
    for approval in open.filter(|_| !session.is_in_memory) {
        print_decision_commands(app, session, &approval.id);
    }
}

/// Prints the commands that approve or deny a call.
pub(super) fn print_decision_commands(app: &App, session: &Session, id: &str) {
    let program = app.global.command_prefix();
    let assistant = session.name_to_suggest().map(|name| format!(" --assistant {}", quoted(&name))).unwrap_or_default();
    app.output.note(format_args!(
        "to approve: {program} approvals approve {id}{assistant}\n   to deny: {program} approvals deny {id}{assistant}"
    ));
}
