use anyhow::Result;
use serde::Serialize;
use threadkeep::agent::{Approval, ApprovalState, TurnState, find_turn_state};
use threadkeep::{Map, ThreadId, Turn, Verdict};

use super::{App, Status, ask, trace};
use crate::arguments::quoted;
use crate::assistants::{DEFAULT, Found};
use crate::failure::{Failure, sentence};
use crate::instants;
use crate::output::{printable, printable_line};
use crate::session::{Session, told};
use crate::store::Purpose;
use crate::table::{Side, Table, cut};
use crate::thread_name;

const PREVIEW: usize = 60;

/// See and decide what assistants ask leave for
///
/// An approval names one exact call. It is used once, and is void when it expires.
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
    /// List what can be decided
    List {
        /// Those that were decided or are void, too
        #[arg(long)]
        all: bool,
    },
    /// Allow a call; it is made at once
    Approve {
        /// The approval's id
        id: String,
        /// Other arguments for the call, as a JSON object
        #[arg(long, value_name = "JSON")]
        arguments: Option<String>,
        #[command(flatten)]
        asked: Asked,
    },
    /// Refuse a call
    Deny {
        /// The approval's id
        id: String,
        /// Why, in words that the assistant reads
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        asked: Asked,
    },
}

#[derive(Debug, clap::Args)]
struct Asked {
    /// The assistant that asks, where it is a YAML file outside the folder of assistants
    #[arg(long, value_name = "NAME")]
    assistant: Option<String>,
    /// The model that goes on: offline, PROVIDER, PROVIDER:MODEL
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
        Action::Approve { id, arguments, asked } => {
            let verdict = match arguments.as_deref().map(serde_json::from_str::<Map>) {
                None => Verdict::Approve,
                Some(Ok(changed)) => Verdict::ApproveChanged(changed),
                Some(Err(error)) => {
                    return Err(Failure::usage(format!("--arguments is no JSON object: {error}")).into());
                }
            };
            decide(app, &id, verdict, &asked).await
        }
        Action::Deny { id, reason, asked } => decide(app, &id, Verdict::Deny { reason }, &asked).await,
    }
}

async fn rows(session: &Session, all: bool) -> Result<Vec<Row>> {
    let now = session.memory.now();
    let mut rows = Vec::new();
    for thread in session.threads().await? {
        let approvals = session.agent.approvals(&session.scope, thread.id).await.map_err(told)?;
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
        app.output.note("nothing waits for an approval");
        return Ok(Status::Done);
    }
    let columns = ["id", "state", "what it will do", "expires (UTC)", "thread"];
    let mut table = Table::new(columns.map(|name| (name, Side::Left)));
    for Row { thread, approval } in &rows {
        table.add_row([
            approval.id.clone(),
            approval.state.to_string(),
            cut(&printable_line(&approval.preview), PREVIEW),
            instants::minute(approval.expires_at),
            thread_name::short(*thread),
        ]);
    }
    app.output.line(table.text())?;
    Ok(Status::Done)
}

async fn decide(app: &App, id: &str, verdict: Verdict, asked: &Asked) -> Result<Status> {
    let looking = Session::open(app, DEFAULT, Some("offline"), Purpose::Change).await?;
    let found = rows(&looking, true).await?.into_iter().find(|row| row.approval.id == id);
    let Some(Row { thread, approval }) = found else {
        let failure = Failure::yours(format!("there is no approval `{}`", cut(&printable_line(id), PREVIEW)));
        return Err(failure.hint("`threadkeep approvals list` lists those that are open").into());
    };
    // The turn goes on with the assistant that asked.
    let asks = match find_turn_state(&looking.memory, &looking.scope, thread, &approval.turn).await? {
        Some(TurnState::Running(running)) => running.assistant,
        Some(TurnState::Settled(turn)) => turn.agent,
        _ => DEFAULT.to_owned(),
    };
    let session = open(app, &asks, asked).await?;
    let by = app.global.user_id()?;
    let turn = session.decide(&app.interrupt, thread, (id, verdict, &by), &mut |_| {}).await?;
    if app.output.is_json() {
        app.output.json(&turn)?;
    } else {
        app.output.line(printable(&turn.reply))?;
        trace::print_sources(&app.output, &turn)?;
        tell_open(app, &session, &turn);
    }
    Ok(ask::status(&turn))
}

/// Opens the assistant that asks, by the name that it has in turns or the one that is given.
async fn open(app: &App, asks: &str, asked: &Asked) -> Result<Session> {
    let name = asked.assistant.as_deref().unwrap_or(asks);
    if let (None, Err(error)) = (&asked.assistant, Found::find(asks, &app.settings)) {
        let failure = Failure::yours(format!("the assistant that asks cannot be used: {}", sentence(&error)));
        let file = quoted(&format!("./{}.yaml", printable_line(asks)));
        return Err(failure.hint(format!("name its file: --assistant {file}")).into());
    }
    let session = Session::open(app, name, asked.model.as_deref(), Purpose::Change).await?;
    let given = &session.assistant().definition().name;
    if given != asks {
        let (given, asks) = (printable_line(given), printable_line(asks));
        return Err(Failure::usage(format!("{given} did not ask for this: {asks} did")).into());
    }
    Ok(session)
}

/// Says how to decide, in any terminal, about what a turn waits for.
pub(super) fn tell_open(app: &App, session: &Session, turn: &Turn) {
    let open = turn.approvals.iter().filter(|approval| approval.state == ApprovalState::Pending);
    for approval in open.filter(|_| !session.is_forgetful) {
        tell_how(app, session, &approval.id);
    }
}

/// Says how to decide about an approval in any terminal.
pub(super) fn tell_how(app: &App, session: &Session, id: &str) {
    let program = app.global.program();
    let assistant = session.name_elsewhere().map(|name| format!(" --assistant {}", quoted(&name))).unwrap_or_default();
    app.output.note(format_args!(
        "to decide: {program} approvals approve {id}{assistant}\n       or: {program} approvals deny {id}{assistant}"
    ));
}
