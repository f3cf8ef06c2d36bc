use anyhow::{Context, Result};
use serde::Serialize;
use threadkeep::{
    ContextPolicy, Memory, MessageQuery, RecallFrom, RecallPolicy, Scope, SearchOptions, Thread, ThreadOrder,
    ThreadQuery, TokenCount,
};

use super::context::{Explanation, question_label};
use super::import::{self, Import, Selection};
use super::{App, Status, search};
use crate::arguments::{program_name, quoted};
use crate::output::{BOLD, DIM};
use crate::private;
use crate::store::{Location, Purpose};
use crate::table::counted;
use crate::thread_name;
use crate::transcript::Transcript;

/// The demo's conversation, in the export format.
const CONVERSATION: &str = include_str!("demo/conversation.jsonl");
const NEWEST_MESSAGES: usize = 4;
const SEARCH: &str = "who brings the stove";
/// The message that answers this question is much older than the window.
const QUESTION: &str = "Is anyone allergic to anything?";
const WINDOW: usize = 6;
const BUDGET: TokenCount = TokenCount(500);

/// Try Threadkeep on a small conversation
///
/// Imports the conversation into a separate store, shows and searches it, explains which messages a model receives when it is
/// asked about something from long ago, and suggests what to type next.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep demo
  threadkeep demo --store demo.db     keep the demo's store in a file of your choice")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct DemoJson {
    store: String,
    threads: u64,
    messages: u64,
}

pub(crate) async fn run(app: &App, _: Arguments) -> Result<Status> {
    let (name, location) = demo_store(app)?;
    let memory = app.open_at(&location, Purpose::CreateOrWrite).await?.memory;
    let report =
        Import::begin(app, memory.clone(), Selection::verbatim())?.run(&[import::built_in(CONVERSATION)]).await?;
    let scope = app.scope()?;
    let page = memory.list_threads(&scope, &ThreadQuery::new(ThreadOrder::Created, 1)).await?;
    let thread = page.threads.into_iter().next().context("the demo's thread is missing")?;
    if app.output.is_json() {
        let messages = thread.message_count;
        app.output.json(&DemoJson { store: name, threads: 1, messages })?;
        return Ok(report.status());
    }
    heading(app, &format!("Import a conversation into {name}"))?;
    report.print(&app.output)?;
    app.output.line("")?;
    heading(app, &format!("Show its newest {NEWEST_MESSAGES} messages"))?;
    show(app, &memory, &scope, &thread).await?;
    heading(app, &format!("Search for: {SEARCH}"))?;
    let options = SearchOptions { limit: 2, ..SearchOptions::default() };
    let found = memory.search(&scope, SEARCH, &options).await?;
    search::print(app, &memory, &scope, &found.hits).await?;
    heading(app, &format!("Explain the context of a question about an old message, within {BUDGET} tokens"))?;
    explain(app, &memory, &scope, &thread).await?;
    app.output.line("")?;
    heading(app, "What to type next")?;
    next_steps(app, &name, &thread)?;
    Ok(report.status())
}

/// Returns the store given on the command line, or otherwise a new one in the temporary folder. A store that the environment
/// specifies is ignored, because it contains real data.
fn demo_store(app: &App) -> Result<(String, Location)> {
    if app.global.is_store_typed() {
        return Ok((app.global.store.clone().unwrap_or_default(), app.location()?));
    }
    let folder = private::temporary_folder("threadkeep-demo-", None);
    let file = folder.context("cannot create a temporary folder")?.keep().join("demo.db");
    Ok((file.display().to_string(), Location::Sqlite(file)))
}

fn heading(app: &App, text: &str) -> Result<()> {
    app.output.line(format_args!("{}\n", app.output.paint(BOLD, format_args!("▸ {text}"))))
}

async fn show(app: &App, memory: &Memory, scope: &Scope, thread: &Thread) -> Result<()> {
    let page = memory.messages(scope, thread.id, &MessageQuery::newest(NEWEST_MESSAGES)).await?;
    let mut lines = app.output.lines();
    let earlier = counted(thread.message_count - page.messages.len() as u64, "earlier message");
    lines.line(app.output.paint(DIM, format_args!("{} · {earlier}", thread_name::title(thread))))?;
    lines.line("")?;
    let mut transcript = Transcript::new(&app.output);
    for message in &page.messages {
        transcript.message(&mut lines, message)?;
    }
    lines.finish()
}

async fn explain(app: &App, memory: &Memory, scope: &Scope, thread: &Thread) -> Result<()> {
    let recall = RecallPolicy { from: RecallFrom::Thread, ..RecallPolicy::default() };
    let policy = ContextPolicy { window: Some(WINDOW), budget: Some(BUDGET), recall, ..ContextPolicy::default() };
    let assembled = memory.context(scope, thread.id, Some(QUESTION), &policy).await?;
    let explanation = Explanation::read(memory, scope, thread, &assembled.context.report).await?;
    explanation.print(&app.output, &question_label(Some(QUESTION)))
}

fn next_steps(app: &App, store: &str, thread: &Thread) -> Result<()> {
    let (program_name, program) = (program_name(), app.global.command_prefix());
    let with_store =
        if app.global.is_store_typed() { program.clone() } else { format!("{program} --store {}", quoted(store)) };
    let key = thread.key.as_ref().map_or_else(|| thread.id.to_string(), ToString::to_string);
    let mut lines = app.output.lines();
    for (command, description) in [
        (format!("{with_store} show {key}"), "the whole conversation"),
        (
            format!("{with_store} context {key} '{QUESTION}' --recall --window {WINDOW} --budget {BUDGET}"),
            "the context explained above",
        ),
        (format!("{with_store} recall 'When does Sam leave?'"), "the messages that answer a question, and why"),
        (format!("{with_store} append {key} 'I have the keys.'"), "add a message"),
        (format!("{program_name} import conversations.json"), "import your own conversations from ChatGPT or Claude"),
        (format!("{program_name} --help"), "everything else"),
    ] {
        lines.line(format_args!("  {command}\n      {}", app.output.paint(DIM, description)))?;
    }
    lines.finish()
}
