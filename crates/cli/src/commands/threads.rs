use anyhow::Result;
use serde::Serialize;
use threadkeep::{Owner, Thread, ThreadOrder, ThreadQuery, Timestamp};

use super::{App, Status};
use crate::arguments::{MetadataArguments, quoted};
use crate::failure::Failure;
use crate::instants;
use crate::json::ThreadJson;
use crate::store::Purpose;
use crate::table::{Align, Table, counted, cut, number};
use crate::thread_name::{self, SHORT_ID_CHARS};

const FULL_ID_CHARS: usize = 36;
/// The minimum width of a terminal for full ids.
const WIDE_COLUMNS: usize = 120;

/// List threads
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep threads                     the 20 with the newest messages
  threadkeep threads --recent            the 20 that changed last, for example by an import
  threadkeep threads --created --limit 5 the 5 oldest
  threadkeep threads --metadata env=prod --metadata ticket=42
  threadkeep threads --json | jq -r '.threads[].id'")]
pub(crate) struct Arguments {
    /// Sort by last change, newest first, instead of by the time of the last message
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

/// A page of threads, each with the time that the list shows.
struct DatedThreads {
    threads: Vec<(Thread, Timestamp)>,
    next: Option<String>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let (memory, scope) = (app.open(Purpose::Read).await?.memory, app.scope()?);
    let metadata = arguments.metadata.filter();
    let has_filter = !metadata.is_empty();
    let limit = usize::from(arguments.limit);
    let (page, order) = if arguments.created || arguments.recent {
        let order = if arguments.created { ThreadOrder::Created } else { ThreadOrder::Recent };
        let query = ThreadQuery { after: arguments.after, metadata, ..ThreadQuery::new(order, limit) };
        let page = memory.list_threads(&scope, &query).await?;
        let threads = page.threads.into_iter().filter(|thread| !thread.is_ephemeral());
        let dated = threads.map(|thread| (thread.updated_at, thread)).map(|(at, thread)| (thread, at)).collect();
        (DatedThreads { threads: dated, next: page.next }, if arguments.created { " --created" } else { " --recent" })
    } else {
        let first: usize = match &arguments.after {
            Some(after) => after
                .parse()
                .map_err(|_| Failure::user_error("invalid --after: use the value printed at the end of a page"))?,
            None => 0,
        };
        let all = memory.list_by_last_message(&scope, &metadata).await?;
        let next = (all.len() > first + limit).then(|| (first + limit).to_string());
        (DatedThreads { threads: all.into_iter().skip(first).take(limit).collect(), next }, "")
    };
    if app.output.is_json() {
        let is_by_message = order.is_empty();
        let threads = page.threads.into_iter().map(|(thread, at)| match is_by_message {
            true => ThreadJson::from(thread).with_last_message_at(at),
            false => ThreadJson::from(thread),
        });
        let threads = threads.collect();
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
    app.output.line(table(app, &page.threads, order.is_empty()))?;
    if let Some(next) = page.next {
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

fn table(app: &App, threads: &[(Thread, Timestamp)], is_by_message: bool) -> String {
    let columns = app.output.columns();
    let id_width = if columns.is_some_and(|columns| columns < WIDE_COLUMNS) { SHORT_ID_CHARS } else { FULL_ID_CHARS };
    let has_owners = app.global.as_tenant;
    let time = if is_by_message { "last message" } else { "updated" };
    let mut headers =
        vec![("id", Align::Left), ("title", Align::Left), ("messages", Align::Right), (time, Align::Left)];
    if has_owners {
        headers.push(("owner", Align::Left));
    }
    let others =
        id_width + "messages".len() + time.len().max("2026-05-04 18:12".len()) + 8 + if has_owners { 12 } else { 0 };
    let title_width = columns.map_or(usize::MAX, |columns| columns.saturating_sub(others).max(12));
    let mut table = Table::new(headers);
    for (thread, at) in threads {
        let id: String = thread.id.to_string().chars().take(id_width).collect();
        let mark = thread_name::branch(thread).map_or_else(String::new, |mark| format!(" ({mark})"));
        let title = cut(&thread_name::title(thread), title_width.saturating_sub(mark.len()).max(12)) + &mark;
        let mut row = vec![id, title, number(thread.message_count), instants::minute(*at)];
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
