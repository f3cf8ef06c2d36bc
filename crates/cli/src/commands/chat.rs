mod lines;
mod says;
mod slash;

use std::io::IsTerminal;

use anyhow::Result;
use threadkeep::agent::ApprovalState;
use threadkeep::{ThreadId, Turn, TurnStatus, Verdict};

use super::{App, Status, approvals, ask, trace};
use crate::assistants::{DEFAULT, chat_details, examples_of, names};
use crate::output::{DIM, printable_line};
use crate::session::{Session, told};
use crate::store::Purpose;
use lines::{Line, Reader};
use says::Says;

/// Talk with an assistant
#[derive(Debug, clap::Args)]
#[command(long_about = chat_details(), after_help = after_help())]
pub(crate) struct Arguments {
    #[arg(default_value = DEFAULT, value_name = "NAME", help = assistant_help())]
    assistant: String,
    /// The thread: its id, the beginning of it, or its key; one with that key is made where there is none
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    /// The model that speaks: offline, PROVIDER, PROVIDER:MODEL
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

fn after_help() -> String {
    format!(
        "Examples:
  threadkeep chat                              a new conversation with the {DEFAULT} assistant{}
  threadkeep chat --thread camping             goes on in the thread with that key, made if needed
  threadkeep chat ./gardener.yaml              an assistant of your own (docs/assistants.md)
  threadkeep chat {DEFAULT} --json < questions   a turn a line

In a chat: /context, /trace, /threads, /clear, /approve, /deny, /help, /quit",
        examples_of("chat", 47)
    )
}

fn assistant_help() -> String {
    format!("The assistant: {}, a name in the folder of assistants, or a YAML file", names())
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let session = Session::open(app, &arguments.assistant, arguments.model.as_deref(), Purpose::Fill).await?;
    if app.output.is_json() {
        return answer_lines(app, &session, arguments.thread.as_deref()).await;
    }
    let thread = match &arguments.thread {
        Some(name) => Some(session.thread(Some(name)).await?),
        None => None,
    };
    Chat { app, session, thread, last: None }.run().await
}

/// Answers each line of standard input by a turn on a line.
async fn answer_lines(app: &App, session: &Session, thread: Option<&str>) -> Result<Status> {
    let mut opened = None;
    let mut status = Status::Done;
    loop {
        let Some(line) = tokio::task::block_in_place(|| lines::read_line(&mut std::io::stdin().lock()))? else {
            return Ok(status);
        };
        if line.trim().is_empty() {
            continue;
        }
        let thread = match opened {
            Some(thread) => thread,
            None => *opened.insert(session.thread(thread).await?),
        };
        let turn = session.ask(app, thread, line.trim(), &mut |_| {}).await?;
        app.output.json(&turn)?;
        match ask::status(&turn) {
            Status::Interrupted => return Ok(Status::Interrupted),
            Status::Incomplete => status = Status::Incomplete,
            _ => {}
        }
    }
}

/// A conversation at a terminal.
struct Chat<'a> {
    app: &'a App,
    session: Session,
    /// Made with the first message, so that looking in leaves nothing behind.
    thread: Option<ThreadId>,
    last: Option<Turn>,
}

/// Whether the conversation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Go,
    Quit,
}

impl Chat<'_> {
    async fn run(mut self) -> Result<Status> {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let mut reader = Reader::new(is_terminal)?;
        self.greet().await?;
        self.show_open().await?;
        loop {
            let line = match tokio::task::block_in_place(|| reader.read())? {
                Line::Said(line) => line,
                Line::Interrupted => {
                    self.app.output.note("/quit or Ctrl-D ends the conversation");
                    continue;
                }
                Line::End => break,
            };
            let line = line.trim();
            if let Err(error) = self.catch_up().await {
                self.last = None;
                let _code = crate::failure::report(&error, &self.app.output);
            }
            if line.is_empty() {
                continue;
            }
            let next = match line.strip_prefix('/') {
                Some(command) => self.command(command).await,
                None => self.say(line).await.map(|()| Next::Go),
            };
            match next {
                Ok(Next::Go) => {}
                Ok(Next::Quit) => break,
                // What went wrong with one message is no reason to end the conversation.
                Err(error) if is_terminal => drop(crate::failure::report(&error, &self.app.output)),
                Err(error) => return Err(error),
            }
        }
        self.part();
        Ok(Status::Done)
    }

    async fn greet(&self) -> Result<()> {
        let definition = self.session.assistant().definition();
        let model = match definition.model.name() {
            "offline" => "the offline model".to_owned(),
            model => printable_line(model),
        };
        let which = match self.thread {
            Some(thread) => {
                let found = self.session.memory.get_thread(&self.session.scope, thread).await?;
                match found.message_count {
                    0 => "a new conversation".to_owned(),
                    count => format!(
                        "{}, so far {}",
                        crate::thread_name::title(&found),
                        crate::table::counted(count, "message")
                    ),
                }
            }
            None => "a new conversation".to_owned(),
        };
        let kept = if self.session.is_forgetful { " that is not kept" } else { "" };
        self.app.output.note(format_args!("{} · {model} · {which}{kept} · /help", printable_line(&definition.name)));
        Ok(())
    }

    async fn thread(&mut self) -> Result<ThreadId> {
        match self.thread {
            Some(thread) => Ok(thread),
            None => Ok(*self.thread.insert(self.session.thread(None).await?)),
        }
    }

    async fn say(&mut self, text: &str) -> Result<()> {
        let thread = self.thread().await?;
        let mut says = Says::new(&self.app.output);
        let turn = self.session.ask(self.app, thread, text, &mut |event| says.hear(&event)).await?;
        self.heard(says, turn)
    }

    fn heard(&mut self, says: Says<'_>, turn: Turn) -> Result<()> {
        says.finish(&turn)?;
        trace::print_sources(&self.app.output, &turn)?;
        let waits = turn.approvals.iter().any(|approval| approval.state == ApprovalState::Pending);
        if turn.status == TurnStatus::WaitingForApproval && waits {
            self.app.output.note("/approve or /deny [REASON] decides");
            approvals::tell_open(self.app, &self.session, &turn);
        }
        self.app.output.line("")?;
        self.last = Some(turn);
        Ok(())
    }

    /// Decides about the oldest approval that is open.
    async fn decide(&mut self, verdict: Verdict) -> Result<()> {
        let open = match self.thread {
            Some(thread) => {
                let open = self.session.agent.open_approvals(&self.session.scope, thread).await.map_err(told)?;
                open.into_iter().next().map(|approval| (thread, approval))
            }
            None => None,
        };
        let Some((thread, approval)) = open else {
            self.app.output.note("nothing waits for an approval here");
            return Ok(());
        };
        let by = self.app.global.user_id()?;
        let mut says = Says::new(&self.app.output);
        let decision = (approval.id.as_str(), verdict, &by);
        let sink = &mut |event| says.hear(&event);
        let turn = self.session.decide(&self.app.interrupt, thread, decision, sink).await?;
        self.heard(says, turn)
    }

    /// Tells what was decided elsewhere about what the last turn waited for.
    async fn catch_up(&mut self) -> Result<()> {
        let Some(last) = self.last.as_ref().filter(|last| last.status == TurnStatus::WaitingForApproval) else {
            return Ok(());
        };
        let found = self.session.agent.find_turn(&self.session.scope, last.thread, &last.turn).await.map_err(told)?;
        let Some(turn) = found.filter(|turn| turn.status != TurnStatus::WaitingForApproval) else { return Ok(()) };
        self.app.output.note("decided elsewhere:");
        self.heard(Says::new(&self.app.output), turn)
    }

    /// Shows what waits in the thread that the chat begins with.
    async fn show_open(&self) -> Result<()> {
        let Some(thread) = self.thread else { return Ok(()) };
        let open = self.session.agent.open_approvals(&self.session.scope, thread).await.map_err(told)?;
        for approval in &open {
            self.app.output.line(format_args!("⚠️ waits for an approval: {}", printable_line(&approval.preview)))?;
            self.app.output.note("/approve or /deny [REASON] decides");
            approvals::tell_how(self.app, &self.session, &approval.id);
        }
        Ok(())
    }

    /// Says how to come back.
    fn part(&self) {
        if let Some(thread) = self.thread.filter(|_| !self.session.is_forgetful) {
            let program = self.app.global.program();
            let name = &self.session.name;
            let name = if name == DEFAULT { String::new() } else { format!(" {}", crate::arguments::quoted(name)) };
            let back = format!("{program} chat{name} --thread {thread}");
            self.app.output.note(self.app.output.paint(DIM, format!("to go on: {back}")));
        }
    }
}
