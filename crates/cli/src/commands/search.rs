use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;
use threadkeep::core::limits::PAGE;
use threadkeep::core::query::TextQuery;
use threadkeep::exchange::ExportedMessage;
use threadkeep::{Correction, Hit, Memory, Message, Role, Scope, SearchOptions, Snippet, ThreadId, Timestamp};
use unicode_width::UnicodeWidthStr;

use super::{App, Status};
use crate::arguments::MetadataArguments;
use crate::failure::Failure;
use crate::instants;
use crate::output::{self, DIM, MATCH, Output, printable_line};
use crate::store::Purpose;
use crate::table::cut;
use crate::thread_name;
use crate::transcript::speaker;

/// The minimum width for a title. If less space is available, the title is omitted.
const MIN_TITLE_COLUMNS: usize = 12;

/// Search messages
///
/// Finds messages with any of the words, in any grammatical form, best matches first. A query can contain "phrases", -exclusions,
/// prefixes* of words, title:WORD, in:FORMAT, project:FOLDER, role:ROLE, since:DATE and until:DATE. Quote it for the shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep search camping stove
  threadkeep search 'ledger \"SQLite file\" -postgres migrat*'
  threadkeep search 'decision title:ledger' --since 2026-03 --until 2026-03 --in claude-code
  threadkeep search --project pier --role user    the newest messages in a project
  threadkeep search 'who has the keys' --thread 0193a5b2 --role user
  threadkeep search tent --json | jq -r '.hits[].snippet.text'")]
pub(crate) struct Arguments {
    /// What to search for
    #[arg(required_unless_present_any = ["role", "since", "until", "formats", "project"])]
    words: Vec<String>,
    /// Only messages of this thread: its id, a prefix of the id, or its key
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    #[command(flatten)]
    metadata: MetadataArguments,
    /// Only messages with these roles: system, user, assistant, tool
    #[arg(long, value_name = "ROLE", value_delimiter = ',')]
    role: Vec<Role>,
    /// Only messages from this time or later: 2026, 2026-03, 2026-03-14 or a timestamp
    #[arg(long, value_name = "DATE", value_parser = first_instant)]
    since: Option<Timestamp>,
    /// Only messages from this time or earlier, inclusive
    #[arg(long, value_name = "DATE", value_parser = last_instant)]
    until: Option<Timestamp>,
    /// Only conversations imported from this format, such as claude-code; can be repeated
    #[arg(long = "in", value_name = "FORMAT")]
    formats: Vec<String>,
    /// Only conversations of a project, by part of its folder; can be repeated
    #[arg(long, value_name = "FOLDER")]
    project: Vec<String>,
    /// The page of results, starting at 1
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    page: u16,
    /// The maximum number of messages
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

#[derive(Serialize)]
struct SearchJson {
    hits: Vec<HitJson>,
    truncated: bool,
    incomplete: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    corrections: Vec<CorrectionJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page: Option<u16>,
}

/// A word that was corrected.
#[derive(Serialize)]
struct CorrectionJson {
    word: String,
    instead: String,
}

#[derive(Serialize)]
struct HitJson {
    thread: ThreadId,
    score: f64,
    snippet: Snippet,
    message: ExportedMessage,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let (memory, scope) = (app.open(Purpose::Read).await?.memory, app.scope()?);
    let mut query = arguments.words.join(" ");
    for (name, values) in [("in", &arguments.formats), ("project", &arguments.project)] {
        values.iter().for_each(|value| {
            // Writing to a String cannot fail.
            let _ = write!(query, " {name}:\"{}\"", value.replace('"', " "));
        });
    }
    let has_conditions = !arguments.role.is_empty() || arguments.since.is_some() || arguments.until.is_some();
    if TextQuery::parse(&query).is_empty() {
        if !has_conditions {
            let hint = "use at least one word that contains letters or digits, or a condition such as --since 2026-03";
            return Err(Failure::user_error("no word to search for").hint(hint).into());
        }
        // A query needs a condition. Every message meets this one, so the options alone decide which messages are found.
        query.push_str(" since:0001");
    }
    let thread = match &arguments.thread {
        Some(name) => Some(thread_name::get(&memory, &scope, name).await?.id),
        None => None,
    };
    let roles = arguments.role;
    let (metadata, since, until) = (arguments.metadata.filter(), arguments.since, arguments.until);
    let (first, size) = (usize::from(arguments.page - 1) * usize::from(arguments.limit), usize::from(arguments.limit));
    // The hits of all pages are ranked together, so the earlier pages are fetched and skipped.
    let limit = (first + size + 1).min(PAGE);
    let options = SearchOptions { thread, metadata, roles, since, until, limit, ..SearchOptions::default() };
    let mut found = memory.search(&scope, &query, &options).await?;
    let next_page = (found.hits.len() > first + size).then(|| arguments.page + 1);
    found.hits = found.hits.into_iter().skip(first).take(size).collect();
    let incomplete = !found.unsearched.is_empty();
    if app.output.is_json() {
        let hits = found.hits.into_iter().map(HitJson::from).collect();
        let corrections =
            found.corrections.into_iter().map(|Correction { word, instead }| CorrectionJson { word, instead });
        let corrections = corrections.collect();
        app.output.json(&SearchJson { hits, truncated: found.truncated, incomplete, corrections, next_page })?;
        return Ok(Status::Done);
    }
    for Correction { word, instead } in &found.corrections {
        app.output.note(format_args!(
            "no message contains `{}`; searched for `{}`",
            printable_line(word),
            printable_line(instead)
        ));
    }
    print(app, &memory, &scope, &found.hits).await?;
    if let Some(next) = next_page {
        app.output.note(format_args!("for more: --page {next}"));
    }
    if found.hits.is_empty() {
        app.output.note("nothing found");
    }
    if incomplete {
        app.output.note("the newest messages are not indexed yet: try again in a moment");
    }
    Ok(Status::Done)
}

fn first_instant(text: &str) -> Result<Timestamp, String> {
    date(text).map(|(first, _)| first)
}

fn last_instant(text: &str) -> Result<Timestamp, String> {
    date(text).map(|(_, end)| end)
}

fn date(text: &str) -> Result<(Timestamp, Timestamp), String> {
    let range = threadkeep::core::query::date_range(text);
    range.ok_or_else(|| "expected a date such as 2026, 2026-03, 2026-03-14 or 2026-03-14T09:00:00Z".to_owned())
}

impl From<Hit> for HitJson {
    fn from(hit: Hit) -> Self {
        let Hit { thread, message, score, snippet } = hit;
        Self { thread, score, snippet, message: message.into() }
    }
}

/// Prints hits, each with its speaker, time, position and thread.
pub(super) async fn print(app: &App, memory: &Memory, scope: &Scope, hits: &[Hit]) -> Result<()> {
    let output = &app.output;
    let titles = titles(memory, scope, hits.iter().map(|hit| hit.thread)).await?;
    let mut lines = output.lines();
    for hit in hits {
        lines.line(heading(output, titles.get(&hit.thread), hit.thread, &hit.message))?;
        for line in wrapped(output, &hit.snippet) {
            lines.line(line)?;
        }
        lines.line("")?;
    }
    lines.finish()
}

/// Returns the heading of a message: speaker, time, position and thread.
pub(super) fn heading(output: &Output, title: Option<&String>, thread: ThreadId, message: &Message) -> String {
    let role = message.content.role;
    let name = speaker(message.content.author.as_deref(), role);
    let at = instants::minute(message.created_at);
    let mut details = format!(" · {at} · #{} of {}", message.seq, thread_name::short(thread));
    let room =
        output.columns().map_or(usize::MAX, |columns| columns.saturating_sub(name.width() + details.width() + 3));
    if room >= MIN_TITLE_COLUMNS {
        details = format!("{details} · {}", cut(title.map_or("", String::as_str), room.min(60)));
    }
    format!("{}{}", output.paint(output::speaker_style(role), name), output.paint(DIM, details))
}

/// Returns the titles of the given threads.
pub(super) async fn titles(
    memory: &Memory,
    scope: &Scope,
    threads: impl Iterator<Item = ThreadId>,
) -> Result<BTreeMap<ThreadId, String>> {
    let mut titles = BTreeMap::new();
    for id in threads {
        if let Entry::Vacant(entry) = titles.entry(id) {
            let thread = memory.find_thread(scope, id).await?;
            entry.insert(thread.as_ref().map(thread_name::title).unwrap_or_default());
        }
    }
    Ok(titles)
}

/// Returns the lines of a snippet with highlighted matches. Wrapped here, because the output's own wrapping would count
/// colour codes as columns.
fn wrapped(output: &Output, snippet: &Snippet) -> Vec<String> {
    let text = highlighted(output, snippet);
    match output.text_columns() {
        Some(columns) => {
            let options = textwrap::Options::new(columns.max(20)).initial_indent("  ").subsequent_indent("  ");
            textwrap::wrap(text.trim(), options).into_iter().map(Cow::into_owned).collect()
        }
        None => vec![format!("  {}", text.trim())],
    }
}

fn highlighted(output: &Output, snippet: &Snippet) -> String {
    let mut text = String::new();
    for (piece, is_match) in excerpt(snippet) {
        // Writing to a String cannot fail.
        let _ = if is_match { write!(text, "{}", output.paint(MATCH, piece)) } else { write!(text, "{piece}") };
    }
    text
}

/// Returns the pieces of a snippet, each with whether it matches, as a printable line.
pub(super) fn excerpt(snippet: &Snippet) -> Vec<(String, bool)> {
    let mut pieces = Vec::new();
    let mut before = String::from(if snippet.cut_before { "… " } else { "" });
    let mut at = 0;
    for found in &snippet.matches {
        before.push_str(&line_piece(&snippet.text[at..found.start]));
        pieces.push((std::mem::take(&mut before), false));
        pieces.push((line_piece(&snippet.text[found.clone()]), true));
        at = found.end;
    }
    before.push_str(&line_piece(&snippet.text[at..]));
    before.push_str(if snippet.cut_after { " …" } else { "" });
    pieces.push((before, false));
    pieces.retain(|(piece, _)| !piece.is_empty());
    pieces
}

/// Makes a piece of a line printable. Keeps white space at its ends, which separates it from the adjacent pieces.
fn line_piece(text: &str) -> String {
    output::printable(text).chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { c }).collect()
}
