use anyhow::Result;
use serde::Serialize;
use threadkeep::{Owner, Thread, ThreadOrder, ThreadQuery};

use super::{App, Status};
use crate::arguments::{MetadataArguments, quoted};
use crate::instants;
use crate::json::ThreadJson;
use crate::store::Purpose;
use crate::table::{Align, Table, counted, cut, number};
use crate::thread_name::{self, SHORT_ID};

const FULL_ID: usize = 36;
/// The minimum width of a terminal for full ids.
const WIDE_COLUMNS: usize = 120;

/// List threads
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep threads                     the 20 most recently changed
  threadkeep threads --created --limit 5 the 5 oldest
  threadkeep threads --metadata env=prod --metadata ticket=42
  threadkeep threads --json | jq -r '.threads[].id'")]
pub(crate) struct Arguments {
    /// Sort by last change, newest first (the default)
    #[arg(long, conflicts_with = "created")]
    recent: bool,
    /// Sort by creation, oldest first: a stable order
    #[arg(long)]
    created: bool,
    #[command(flatten)]
    metadata: MetadataArguments,
    /// The maximum number of threads
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Continue after a page, with the value that was printed at its end
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
}

#[derive(Serialize)]
struct Page {
    threads: Vec<ThreadJson>,
    next: Option<String>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let (memory, scope) = (app.open(Purpose::Read).await?.memory, app.scope()?);
    let order = if arguments.created { ThreadOrder::Created } else { ThreadOrder::Recent };
    let metadata = arguments.metadata.filter();
    let has_filter = !metadata.is_empty();
    let query = ThreadQuery { after: arguments.after, metadata, ..ThreadQuery::new(order, arguments.limit.into()) };
    let mut page = memory.list_threads(&scope, &query).await?;
    page.threads.retain(|thread| !thread.is_ephemeral());
    if app.output.is_json() {
        let threads = page.threads.into_iter().map(ThreadJson::from).collect();
        app.output.json(&Page { threads, next: page.next })?;
        return Ok(Status::Done);
    }
    let is_empty = page.threads.is_empty() && page.next.is_none();
    if is_empty && has_filter {
        app.output.note("no thread has this metadata");
        return Ok(Status::Done);
    }
    if is_empty {
        app.output.note("no threads; create some with `threadkeep import FILE` or `threadkeep append KEY --create`");
        return Ok(Status::Done);
    }
    app.output.line(table(app, &page.threads))?;
    if let Some(next) = page.next {
        let order = if arguments.created { " --created" } else { "" };
        let filter = arguments.metadata.text();
        let shown = counted(page.threads.len() as u64, "thread");
        app.output.note(format_args!(
            "\n{shown} shown; for more: {} threads{order}{filter} --after {}",
            app.global.command_prefix(),
            quoted(&next)
        ));
    }
    Ok(Status::Done)
}

fn table(app: &App, threads: &[Thread]) -> String {
    let columns = app.output.columns();
    let id_width = if columns.is_some_and(|columns| columns < WIDE_COLUMNS) { SHORT_ID } else { FULL_ID };
    let has_owners = app.global.as_tenant;
    let mut headers =
        vec![("id", Align::Left), ("title", Align::Left), ("messages", Align::Right), ("updated (UTC)", Align::Left)];
    if has_owners {
        headers.push(("owner", Align::Left));
    }
    let others = id_width + "messages".len() + "2026-05-04 18:12".len() + 8 + if has_owners { 12 } else { 0 };
    let title_width = columns.map_or(usize::MAX, |columns| columns.saturating_sub(others).max(12));
    let mut table = Table::new(headers);
    for thread in threads {
        let id: String = thread.id.to_string().chars().take(id_width).collect();
        let mark = thread_name::branch(thread).map_or_else(String::new, |mark| format!(" ({mark})"));
        let title = cut(&thread_name::title(thread), title_width.saturating_sub(mark.len()).max(12)) + &mark;
        let mut row = vec![id, title, number(thread.message_count), instants::minute(thread.updated_at)];
        if has_owners {
            row.push(cut(&owner(&thread.owner), 12));
        }
        table.add_row(row);
    }
    table.text()
}

fn owner(owner: &Owner) -> String {
    match owner {
        Owner::Tenant => "(shared)".to_owned(),
        Owner::User(user) => user.to_string(),
    }
}
