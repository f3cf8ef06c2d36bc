use anyhow::Result;
use serde::Serialize;
use textwrap::WordSeparator;
use threadkeep::exchange::ExportedMessage;
use threadkeep::{Bound, Memory, MessagePage, MessageQuery, OnCorrupt, RangeEnd, Role, Scope, Thread, ThreadKey};

use super::{App, Status};
use crate::arguments::quoted;
use crate::instants;
use crate::json::{ThreadJson, Unreadable};
use crate::output::{BOLD, DIM, printable_line};
use crate::position;
use crate::store::Purpose;
use crate::table::{counted, number};
use crate::thread_name;
use crate::transcript::{Transcript, wrapped};

/// The number of messages per read when a whole thread is printed.
const PAGE: usize = 500;
/// The maximum number of messages around a position.
const AROUND: usize = 21;

/// Show a thread's messages
///
/// Without bounds, the newest messages are shown; with only --after, the messages that follow it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep show 0193a5b2                        the newest 50, by a prefix of the id
  threadkeep show slack:T1:C123:1717.0001 -n 10   the newest 10, by key
  threadkeep show 0193a5b2 --around 17            the messages around position 17, such as that of a hit
  threadkeep show 0193a5b2 --before 101           messages before position 101
  threadkeep show 0193a5b2 --after 2026-05-04     messages since the start of a day
  threadkeep show 0193a5b2 --all --role user      all messages of the user")]
pub(crate) struct Arguments {
    /// The thread: its id, a prefix of the id, or its key
    thread: String,
    /// The maximum number of messages
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Show all messages
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Show the messages around a position, half of the limit before and half after it
    #[arg(long, value_name = "SEQ", conflicts_with_all = ["before", "after", "all"])]
    around: Option<u64>,
    /// Only messages before this position, day or instant
    #[arg(long, value_name = "BOUND", value_parser = position::bound)]
    before: Option<Bound>,
    /// Only messages after this position, day or instant
    #[arg(long, value_name = "BOUND", value_parser = position::bound)]
    after: Option<Bound>,
    /// Only messages with these roles: system, user, assistant, tool
    #[arg(long, value_name = "ROLE", value_delimiter = ',')]
    role: Vec<Role>,
}

#[derive(Serialize)]
struct ShowJson {
    thread: ThreadJson,
    messages: Vec<ExportedMessage>,
    unreadable: Vec<Unreadable>,
    more: bool,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let (memory, scope) = (app.open(Purpose::Read).await?.memory, app.scope()?);
    let thread = thread_name::get(&memory, &scope, &arguments.thread).await?;
    let query = query(&arguments);
    if app.output.is_json() {
        return show_json(app, &memory, &scope, thread, query, arguments.all).await;
    }
    show_text(app, &memory, &scope, &thread, query, &arguments).await
}

fn query(arguments: &Arguments) -> MessageQuery {
    if let Some(seq) = arguments.around {
        let limit = usize::from(arguments.limit).min(AROUND);
        let before = seq.saturating_sub(1 + (limit / 2) as u64);
        return MessageQuery {
            roles: arguments.role.clone(),
            on_corrupt: OnCorrupt::Report,
            ..MessageQuery::following(before, limit)
        };
    }
    let from_oldest = arguments.all || (arguments.after.is_some() && arguments.before.is_none());
    MessageQuery {
        before: arguments.before,
        after: arguments.after,
        roles: arguments.role.clone(),
        take: if from_oldest { RangeEnd::Oldest } else { RangeEnd::Newest },
        on_corrupt: OnCorrupt::Report,
        ..MessageQuery::newest(if arguments.all { PAGE } else { arguments.limit.into() })
    }
}

/// Returns the query for the next page, or `None` after the last page.
fn next_query(query: &MessageQuery, page: &MessagePage) -> Option<MessageQuery> {
    let broken = page.corrupt.iter().map(|row| row.seq);
    let reached = page.messages.iter().map(|message| message.seq).chain(broken).max()?;
    page.more.then(|| MessageQuery { after: Some(Bound::Seq(reached)), ..query.clone() })
}

async fn show_json(
    app: &App,
    memory: &Memory,
    scope: &Scope,
    thread: Thread,
    query: MessageQuery,
    all: bool,
) -> Result<Status> {
    let (id, mut next) = (thread.id, Some(query));
    let mut json = ShowJson { thread: thread.into(), messages: Vec::new(), unreadable: Vec::new(), more: false };
    while let Some(query) = next {
        let page = memory.messages(scope, id, &query).await?;
        next = if all { next_query(&query, &page) } else { None };
        json.more = page.more;
        json.messages.extend(page.messages.into_iter().map(ExportedMessage::from));
        json.unreadable.extend(page.corrupt.into_iter().map(Unreadable::from));
    }
    app.output.json(&json)?;
    Ok(status(json.unreadable.len()))
}

async fn show_text(
    app: &App,
    memory: &Memory,
    scope: &Scope,
    thread: &Thread,
    query: MessageQuery,
    arguments: &Arguments,
) -> Result<Status> {
    let output = &app.output;
    let mut lines = output.lines();
    lines.line(output.paint(BOLD, thread_name::title(thread)))?;
    for line in wrapped(output, &description(thread), "", WordSeparator::AsciiSpace) {
        lines.line(output.paint(DIM, line))?;
    }
    lines.line("")?;
    let mut transcript = Transcript::new(output);
    let (mut next, mut shown, mut broken) = (Some(query), 0, 0);
    while let Some(query) = next {
        let page = memory.messages(scope, thread.id, &query).await?;
        for message in &page.messages {
            transcript.message(&mut lines, message)?;
        }
        for row in &page.corrupt {
            output.note(format_args!("cannot read message #{}: {}", row.seq, row.detail));
        }
        shown += page.messages.len();
        broken += page.corrupt.len();
        next = if arguments.all { next_query(&query, &page) } else { None };
        if page.more && !arguments.all {
            lines.finish()?;
            output.note(format_args!("{} {}", more(&query, &page), next_page_command(app, &query, &page, arguments)));
            return Ok(status(broken));
        }
    }
    lines.finish()?;
    if shown == 0 && broken == 0 {
        output.note(if thread.message_count == 0 { "no messages yet" } else { "no messages match" });
    }
    Ok(status(broken))
}

fn status(broken: usize) -> Status {
    if broken == 0 { Status::Done } else { Status::Incomplete }
}

fn description(thread: &Thread) -> String {
    let key = thread.key.as_ref().map(ThreadKey::as_str).filter(|_| thread.title.is_some());
    let key = key.map_or_else(String::new, |key| format!(" · {}", printable_line(key)));
    let messages = counted(thread.message_count, "message");
    let branch = [thread_name::branch(thread).map(str::to_owned), thread_name::forked_from(thread)];
    let branch: String = branch.into_iter().flatten().map(|text| format!(" · {text}")).collect();
    format!("{}{key}{branch} · {messages} · updated {}", thread.id, instants::minute(thread.updated_at))
}

/// Returns the note that more messages exist.
fn more(query: &MessageQuery, page: &MessagePage) -> String {
    let which = match query.take {
        RangeEnd::Newest => "earlier",
        RangeEnd::Oldest => "later",
    };
    format!("{} shown; for {which} ones:", number(page.messages.len() as u64))
}

/// Returns the command that shows the next page.
fn next_page_command(app: &App, query: &MessageQuery, page: &MessagePage, arguments: &Arguments) -> String {
    let seqs = page.messages.iter().map(|message| message.seq).chain(page.corrupt.iter().map(|row| row.seq));
    let bound = match query.take {
        RangeEnd::Newest => format!("--before {}", seqs.min().unwrap_or(0)),
        RangeEnd::Oldest => format!("--after {}", seqs.max().unwrap_or(0)),
    };
    let roles: Vec<_> = arguments.role.iter().map(|role| role.as_str()).collect();
    let role = if roles.is_empty() { String::new() } else { format!(" --role {}", roles.join(",")) };
    format!("{} show {} {bound}{role}", app.global.command_prefix(), quoted(&arguments.thread))
}
