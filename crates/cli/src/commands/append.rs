use std::io::{IsTerminal, Read};

use anyhow::{Context, Result};
use serde::Serialize;
use threadkeep::{AppendOptions, Content, Draft, Memory, MessageId, Role, Scope, ThreadId};

use super::{App, Status};
use crate::failure::Failure;
use crate::store::Purpose;
use crate::thread_name;

/// Add a message to a thread
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep append notes 'Book the campsite' --create    to the thread with the key `notes`, created if needed
  threadkeep append 0193a5b2 'Done.' --role assistant
  fortune | threadkeep append notes                       text from standard input
  threadkeep append notes 'Pay rent' --key rent-may       added only once, even if the command is run again")]
pub(crate) struct Arguments {
    /// The thread: its id, a prefix of the id, or its key
    thread: String,
    /// The message's text; omit it or pass `-` to read standard input
    text: Option<String>,
    /// The author's role: system, user, assistant, tool
    #[arg(long, value_name = "ROLE", default_value = "user")]
    role: Role,
    /// The author's name
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// An idempotency key: within seven days, the same message with the same key is added only once
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Create the thread if it does not exist: a UUID becomes its id, anything else its key
    #[arg(long)]
    create: bool,
}

#[derive(Serialize)]
struct AppendedJson {
    thread: ThreadId,
    created: bool,
    id: MessageId,
    seq: u64,
    change: u64,
    replayed: bool,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    // Checked before the store is created, so that an error leaves no empty store behind.
    let text = text(app, arguments.text.as_deref())?;
    let content = Content { author: arguments.author.clone(), ..Content::text(arguments.role, text) };
    let drafts = vec![Draft::new(content)];
    let options = AppendOptions { idempotency_key: arguments.key.clone(), ..AppendOptions::default() };
    options.check(&drafts)?;
    let purpose = if arguments.create { Purpose::CreateOrWrite } else { Purpose::Write };
    let (memory, scope) = (app.open(purpose).await?.memory, app.scope()?);
    let (thread, created) = thread(&memory, &scope, &arguments).await?;
    let appended = match memory.append_all(&scope, thread, drafts, &options).await {
        Err(error) if created && !error.maybe_applied() && arguments.thread.parse::<ThreadId>().is_err() => {
            // No one knows the generated id of the new thread, so the thread can be deleted. A thread with a given id is not
            // deleted, because the id could not be used again for days. Even if deleting fails, the error of the append is
            // returned.
            drop(memory.delete_thread(&scope, thread).await);
            return Err(error.into());
        }
        appended => appended?,
    };
    let Some(message) = appended.messages.first() else {
        return Err(Failure::user_error("the message was added earlier and has since been erased")
            .hint("use a new --key to add it again")
            .into());
    };
    let (id, seq) = (message.id, message.seq);
    if app.output.is_json() {
        let (change, replayed) = (appended.change, appended.replayed);
        app.output.json(&AppendedJson { thread, created, id, seq, change, replayed })?;
    } else if appended.replayed {
        app.output.line(format_args!("already added as message #{seq} of {thread}"))?;
    } else {
        let new = if created { " (new)" } else { "" };
        app.output.line(format_args!("added message #{seq} to {thread}{new}"))?;
    }
    Ok(Status::Done)
}

fn text(app: &App, given: Option<&str>) -> Result<String> {
    let text = match given {
        Some(text) if text != "-" => text.to_owned(),
        _ => {
            if std::io::stdin().is_terminal() {
                app.output.note("type the message, then press Ctrl-D on an empty line");
            }
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
            let text = String::from_utf8(bytes).map_err(|_| Failure::user_error("standard input is not UTF-8 text"))?;
            text.trim_end_matches(['\n', '\r']).to_owned()
        }
    };
    if text.trim().is_empty() {
        return Err(Failure::user_error("the message is empty")
            .hint("pass its text as an argument, or pipe it in")
            .into());
    }
    Ok(text)
}

async fn thread(memory: &Memory, scope: &Scope, arguments: &Arguments) -> Result<(ThreadId, bool)> {
    if !arguments.create {
        return Ok((thread_name::get(memory, scope, &arguments.thread).await?.id, false));
    }
    // With --create, a prefix of an id is not accepted: otherwise the message could go to an existing thread whose id
    // merely starts with the argument.
    let opened = match arguments.thread.parse() {
        Ok(id) => memory.open_by_id(scope, id).await?,
        Err(_) => memory.open_by_key(scope, &arguments.thread).await?,
    };
    Ok((opened.thread.id, opened.created))
}
