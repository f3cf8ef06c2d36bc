use anyhow::Result;
use serde::Serialize;
use threadkeep::agent::Approval;
use threadkeep::{Map, ThreadId, Verdict};

use super::{App, Status, ask, trace};
use crate::assistants::DEFAULT;
use crate::failure::Failure;
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
    },
    /// Refuse a call
    Deny {
        /// The approval's id
        id: String,
        /// Why, in words that the assistant reads
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
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
        Action::Approve { id, arguments: None } => decide(app, &id, Verdict::Approve).await,
        Action::Approve { id, arguments: Some(json) } => {
            let changed: Map = serde_json::from_str(&json)
                .map_err(|error| Failure::usage(format!("--arguments is no JSON object: {error}")))?;
            decide(app, &id, Verdict::ApproveChanged(changed)).await
        }
        Action::Deny { id, reason } => decide(app, &id, Verdict::Deny { reason }).await,
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

async fn decide(app: &App, id: &str, verdict: Verdict) -> Result<Status> {
    let looking = Session::open(app, DEFAULT, Some("offline"), Purpose::Change).await?;
    let found = rows(&looking, true).await?.into_iter().find(|row| row.approval.id == id);
    let Some(Row { thread, approval }) = found else {
        let failure = Failure::yours(format!("there is no approval `{}`", cut(&printable_line(id), PREVIEW)));
        return Err(failure.hint("`threadkeep approvals list` lists those that are open").into());
    };
    // The turn goes on with the assistant that asked.
    let turn = looking.agent.find_turn(&looking.scope, thread, &approval.turn).await.map_err(told)?;
    let name = turn.map_or_else(|| DEFAULT.to_owned(), |turn| turn.agent);
    let session = Session::open(app, &name, None, Purpose::Change).await?;
    let by = app.global.user_id()?;
    let decided = session.agent.decide(&session.scope, thread, id, verdict, by.as_str(), &mut |_| {}).await;
    let turn = decided.map_err(told)?;
    if app.output.is_json() {
        app.output.json(&turn)?;
    } else {
        app.output.line(printable(&turn.reply))?;
        trace::print_sources(&app.output, &turn)?;
        trace::tell_approvals(app, &turn);
    }
    Ok(ask::status(&turn))
}
