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
  threadkeep append notes 'Book the campsite' --create    to the thread with the key `notes`, made if needed
  threadkeep append 0193a5b2 'Done.' --role assistant
  fortune | threadkeep append notes                       what standard input says
  threadkeep append notes 'Pay rent' --key rent-may       added once, however often it is run")]
pub(crate) struct Arguments {
    /// The thread: its id, the beginning of it, or its key
    thread: String,
    /// What is said; without it, or as `-`, standard input is read
    text: Option<String>,
    /// Who speaks: system, user, assistant, tool
    #[arg(long, value_name = "ROLE", default_value = "user")]
    role: Role,
    /// The speaker's name
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// An idempotency key: the same message with the same key is added once, for seven days
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Open the thread if it is not there: a UUID becomes its id, anything else its key
    #[arg(long)]
    create: bool,
}

#[derive(Serialize)]
struct Appended {
    thread: ThreadId,
    created: bool,
    id: MessageId,
    seq: u64,
    change: u64,
    replayed: bool,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    // Before the store is made: a mistake must not leave an empty one behind.
    let text = text(app, arguments.text.as_deref())?;
    let content = Content { author: arguments.author.clone(), ..Content::text(arguments.role, text) };
    let drafts = vec![Draft::new(content)];
    let options = AppendOptions { idempotency_key: arguments.key.clone(), ..AppendOptions::default() };
    options.check(&drafts)?;
    let purpose = if arguments.create { Purpose::Fill } else { Purpose::Change };
    let (memory, scope) = (app.open(purpose).await?.memory, app.scope()?);
    let (thread, created) = thread(&memory, &scope, &arguments).await?;
    let appended = match memory.append_all(&scope, thread, drafts, &options).await {
        Err(error) if created && !error.maybe_applied() && arguments.thread.parse::<ThreadId>().is_err() => {
            // Its id was made here and nobody knows it, so nothing is lost with it; an id that was given could not come
            // back for days. The message's own failure is the one to tell.
            drop(memory.delete_thread(&scope, thread).await);
            return Err(error.into());
        }
        appended => appended?,
    };
    let Some(placed) = appended.messages.first() else {
        return Err(Failure::yours("it was added before, and erased since")
            .hint("use a new --key to add it again")
            .into());
    };
    let (id, seq) = (placed.id, placed.seq);
    if app.output.is_json() {
        let (change, replayed) = (appended.change, appended.replayed);
        app.output.json(&Appended { thread, created, id, seq, change, replayed })?;
    } else if appended.replayed {
        app.output.line(format_args!("added before, as message #{seq} of {thread}"))?;
    } else {
        let made = if created { " (new)" } else { "" };
        app.output.line(format_args!("added message #{seq} to {thread}{made}"))?;
    }
    Ok(Status::Done)
}

fn text(app: &App, given: Option<&str>) -> Result<String> {
    let text = match given {
        Some(text) if text != "-" => text.to_owned(),
        _ => {
            if std::io::stdin().is_terminal() {
                app.output.note("type the message; Ctrl-D on a line of its own ends it");
            }
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).context("standard input cannot be read")?;
            let text = String::from_utf8(bytes).map_err(|_| Failure::yours("standard input is not UTF-8 text"))?;
            text.trim_end_matches(['\n', '\r']).to_owned()
        }
    };
    if text.trim().is_empty() {
        return Err(Failure::yours("the message is empty").hint("give its text, or pipe it in").into());
    }
    Ok(text)
}

async fn thread(memory: &Memory, scope: &Scope, arguments: &Arguments) -> Result<(ThreadId, bool)> {
    if !arguments.create {
        return Ok((thread_name::get(memory, scope, &arguments.thread).await?.id, false));
    }
    // With --create a name is whole: the beginning of another thread's id must not take the message.
    let opened = match arguments.thread.parse() {
        Ok(id) => memory.open_by_id(scope, id).await?,
        Err(_) => memory.open_by_key(scope, &arguments.thread).await?,
    };
    Ok((opened.thread.id, opened.created))
}
