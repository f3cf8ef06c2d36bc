use anyhow::{Context, Result};
use clap::ArgGroup;
use serde::Serialize;
use threadkeep::memory::EraseReport;
use threadkeep::{EraseOptions, Memory, Message, Scope, SharedMessages, Thread};
use threadkeep_server::AuditLog;

use super::{App, Status};
use crate::failure::Failure;
use crate::position;
use crate::progress;
use crate::store::Purpose;
use crate::table::{counted, cut};
use crate::thread_name;

/// Erase a thread, a message, or all data of a user
///
/// When the command ends, the erased data is gone from the store's files, including the search index. On a terminal the command
/// asks for confirmation; elsewhere --yes is required.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep erase 0193a5b2                  a thread with all its messages
  threadkeep erase --message 0193a5b2 17     one message; its position stays empty
  threadkeep erase --everything --user ana   all threads and documents of a user")]
#[command(group = ArgGroup::new("what").required(true).args(["thread", "message", "everything"]))]
pub(crate) struct Arguments {
    /// The thread: its id, a prefix of the id, or its key
    thread: Option<String>,
    /// One message of a thread, by its position or id
    #[arg(long, num_args = 2, value_names = ["THREAD", "SEQ|ID"])]
    message: Option<Vec<String>>,
    /// All data of the user given by --user: threads, records, and files added with `docs add`
    #[arg(long)]
    everything: bool,
    /// With --everything and --as-tenant: also the user's messages in shared threads
    #[arg(long, requires = "everything", requires = "as_tenant")]
    shared_messages: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct EraseJson {
    #[serde(flatten)]
    report: EraseReport,
    swept: bool,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let (memory, scope) = (app.open(Purpose::Write).await?.memory, app.scope()?);
    let report = if let Some(names) = &arguments.message {
        let [thread, message] = names.as_slice() else { anyhow::bail!(Failure::usage("--message takes two values")) };
        erase_message(app, &memory, &scope, (thread, message), arguments.yes).await?
    } else if arguments.everything {
        erase_everything(app, &memory, &scope, &arguments).await?
    } else {
        let name = arguments.thread.as_deref().unwrap_or_default();
        erase_thread(app, &memory, &scope, name, arguments.yes).await?
    };
    sweep(&memory).await?;
    if app.output.is_json() {
        app.output.json(&EraseJson { report, swept: true })?;
    } else {
        app.output.line(summary(&report))?;
    }
    Ok(Status::Done)
}

async fn erase_thread(app: &App, memory: &Memory, scope: &Scope, name: &str, yes: bool) -> Result<EraseReport> {
    let thread = thread_name::get(memory, scope, name).await?;
    let messages = counted(thread.message_count, "message");
    app.confirm(&format!("Erase the thread “{}” with {messages}?", short_title(&thread)), yes)?;
    let deleting = memory.delete_thread(scope, thread.id);
    AuditLog::new(memory).audited_command(scope, "erase thread", &thread.id.to_string(), deleting).await?;
    Ok(EraseReport { threads: 1, messages: thread.message_count, ..EraseReport::default() })
}

async fn erase_message(
    app: &App,
    memory: &Memory,
    scope: &Scope,
    (thread, message): (&str, &str),
    yes: bool,
) -> Result<EraseReport> {
    let thread = thread_name::get(memory, scope, thread).await?;
    let name = position::message(message).ok_or_else(|| {
        Failure::user_error(format!("`{message}` is neither a position nor an id"))
            .hint("`threadkeep show` prints the positions")
    })?;
    let found = memory.find_messages(scope, thread.id, &[name]).await?;
    let Some(Message { id, seq, .. }) = found.first() else { return Err(thread_name::message_not_found(message)) };
    app.confirm(&format!("Erase message #{seq} of “{}”?", short_title(&thread)), yes)?;
    let (target, ids) = (format!("{}/{id}", thread.id), [*id]);
    let erasing = memory.erase_messages(scope, thread.id, &ids);
    AuditLog::new(memory).audited_command(scope, "erase message", &target, Box::pin(erasing)).await?;
    Ok(EraseReport { messages: 1, ..EraseReport::default() })
}

async fn erase_everything(app: &App, memory: &Memory, scope: &Scope, arguments: &Arguments) -> Result<EraseReport> {
    let user = app.global.user_id()?;
    let tenant = app.global.tenant_id()?;
    let shared = if arguments.shared_messages { ", and the user's messages in shared threads" } else { "" };
    let question = format!("Erase all threads and documents of the user “{user}” of “{tenant}”{shared}?");
    app.confirm(&question, arguments.yes)?;
    let shared_messages = if arguments.shared_messages { SharedMessages::Erase } else { SharedMessages::Keep };
    let erasing = memory.erase_user(scope, &user, EraseOptions { shared_messages });
    Ok(AuditLog::new(memory).audited_command(scope, "erase everything", user.as_str(), Box::pin(erasing)).await?)
}

fn short_title(thread: &Thread) -> String {
    cut(&thread_name::title(thread), 60)
}

/// Removes the bytes of erased data from the files of the store.
async fn sweep(memory: &Memory) -> Result<()> {
    let spinner = progress::spinner("removing erased data from the files…");
    let swept = memory.backend().maintenance.sweep(memory.now()).await;
    spinner.finish_and_clear();
    swept.context("erased, but some bytes remain in the store's files; `threadkeep vacuum` removes them")?;
    Ok(())
}

fn summary(report: &EraseReport) -> String {
    let parts = [
        (report.threads, "thread", ""),
        (report.messages, "message", ""),
        (report.records, "record", ""),
        (report.passages, "passage", " of added documents"),
        (report.shared_messages, "message", " in shared threads"),
    ];
    let parts = parts.into_iter().filter(|(count, _, _)| *count > 0);
    let parts: Vec<_> = parts.map(|(count, noun, location)| format!("{}{location}", counted(count, noun))).collect();
    if parts.is_empty() { "nothing to erase".to_owned() } else { format!("erased {}", parts.join(", ")) }
}
