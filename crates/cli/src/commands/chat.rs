pub(super) mod lines;
mod reply;
mod slash;

use std::io::IsTerminal;

use anyhow::Result;
use threadkeep::agent::ApprovalState;
use threadkeep::{ThreadId, Turn, TurnStatus, Verdict};

use super::{App, Status, approvals, ask, trace};
use crate::assistants::{DEFAULT, chat_details, command_examples, names};
use crate::output::{DIM, printable_line};
use crate::session::{Session, agent_error};
use crate::store::Purpose;
use lines::{Line, Reader};
use reply::ReplyPrinter;

/// Chat with an assistant
#[derive(Debug, clap::Args)]
#[command(long_about = chat_details(), after_help = after_help())]
pub(crate) struct Arguments {
    #[arg(default_value = DEFAULT, value_name = "NAME", help = assistant_help())]
    assistant: String,
    /// The thread: its id, a prefix of the id, or its key; created with that key if it does not exist
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    /// The model: offline, PROVIDER, PROVIDER:MODEL
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

fn after_help() -> String {
    format!(
        "Examples:
  threadkeep chat                              a new conversation with the {DEFAULT} assistant{}
  threadkeep chat --thread camping             continue the thread with that key, created if needed
  threadkeep chat ./gardener.yaml              your own assistant (docs/assistants.md)
  threadkeep chat {DEFAULT} --json < questions   one turn per line

In a chat: /context, /trace, /threads, /clear, /approve, /deny, /help, /quit",
        command_examples("chat", 47)
    )
}

fn assistant_help() -> String {
    format!("The assistant: {}, a name in the assistants folder, or a YAML file", names())
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let session = Session::open(app, &arguments.assistant, arguments.model.as_deref(), Purpose::CreateOrWrite).await?;
    if app.output.is_json() {
        return answer_lines(app, &session, arguments.thread.as_deref()).await;
    }
    let thread = match &arguments.thread {
        Some(name) => Some(session.thread(Some(name)).await?),
        None => None,
    };
    Chat { app, session, thread, last: None }.run().await
}

/// Answers each line of standard input with a turn, which is printed as one line of JSON.
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

/// An interactive conversation.
struct Chat<'a> {
    app: &'a App,
    session: Session,
    /// Created with the first message, so that a chat without messages creates no thread.
    thread: Option<ThreadId>,
    last: Option<Turn>,
}

/// Whether the chat continues after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Continue,
    Quit,
}

impl Chat<'_> {
    async fn run(mut self) -> Result<Status> {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let mut reader = Reader::new(is_terminal)?;
        self.greet().await?;
        self.show_open_approvals().await?;
        loop {
            let line = match tokio::task::block_in_place(|| reader.read())? {
                Line::Text(line) => line,
                Line::Interrupted => {
                    self.app.output.note("to quit, type /quit or press Ctrl-D");
                    continue;
                }
                Line::End => break,
            };
            let line = line.trim();
            if let Err(error) = self.show_decided_elsewhere().await {
                self.last = None;
                let _code = crate::failure::report(&error, &self.app.output);
            }
            if line.is_empty() {
                continue;
            }
            let next = match line.strip_prefix('/') {
                Some(command) => self.command(command).await,
                None => self.ask(line).await.map(|()| Next::Continue),
            };
            match next {
                Ok(Next::Continue) => {}
                Ok(Next::Quit) => break,
                // In an interactive chat, an error affects only the current message.
                Err(error) if is_terminal => drop(crate::failure::report(&error, &self.app.output)),
                Err(error) => return Err(error),
            }
        }
        self.print_resume_command();
        Ok(Status::Done)
    }

    async fn greet(&self) -> Result<()> {
        let definition = self.session.assistant().definition();
        let model = match definition.model.name() {
            "offline" => "the offline model".to_owned(),
            model => printable_line(model),
        };
        let conversation = match self.thread {
            Some(thread) => {
                let found = self.session.memory.get_thread(&self.session.scope, thread).await?;
                match found.message_count {
                    0 => "a new conversation".to_owned(),
                    count => format!(
                        "{}, {} so far",
                        crate::thread_name::title(&found),
                        crate::table::counted(count, "message")
                    ),
                }
            }
            None => "a new conversation".to_owned(),
        };
        let not_stored = if self.session.is_in_memory { ", not stored" } else { "" };
        self.app
            .output
            .note(format_args!("{} · {model} · {conversation}{not_stored} · /help", printable_line(&definition.name)));
        Ok(())
    }

    async fn thread(&mut self) -> Result<ThreadId> {
        match self.thread {
            Some(thread) => Ok(thread),
            None => Ok(*self.thread.insert(self.session.thread(None).await?)),
        }
    }

    async fn ask(&mut self, text: &str) -> Result<()> {
        let thread = self.thread().await?;
        let mut printer = ReplyPrinter::new(&self.app.output);
        let turn = self.session.ask(self.app, thread, text, &mut |event| printer.on_event(&event)).await?;
        self.finish_turn(printer, turn)
    }

    /// Prints the rest of a turn: the end of the reply, the sources, and how to decide open approvals.
    fn finish_turn(&mut self, printer: ReplyPrinter<'_>, turn: Turn) -> Result<()> {
        printer.finish(&turn)?;
        trace::print_sources(&self.app.output, &turn)?;
        let has_pending_approval = turn.approvals.iter().any(|approval| approval.state == ApprovalState::Pending);
        if turn.status == TurnStatus::WaitingForApproval && has_pending_approval {
            self.app.output.note("decide with /approve or /deny [REASON]");
            approvals::print_open_approvals(self.app, &self.session, &turn);
        }
        self.app.output.line("")?;
        self.last = Some(turn);
        Ok(())
    }

    /// Approves or denies the oldest pending call.
    async fn decide(&mut self, verdict: Verdict) -> Result<()> {
        let open = match self.thread {
            Some(thread) => {
                let open =
                    self.session.agent.list_open_approvals(&self.session.scope, thread).await.map_err(agent_error)?;
                open.into_iter().next().map(|approval| (thread, approval))
            }
            None => None,
        };
        let Some((thread, approval)) = open else {
            self.app.output.note("no open approval in this conversation");
            return Ok(());
        };
        let by = self.app.global.user_id()?;
        let mut printer = ReplyPrinter::new(&self.app.output);
        let decision = (approval.id.as_str(), verdict, &by);
        let sink = &mut |event| printer.on_event(&event);
        let turn = self.session.decide(&self.app.interrupt, thread, decision, sink).await?;
        self.finish_turn(printer, turn)
    }

    /// Prints the last turn again if it waited for approval and another program has decided.
    async fn show_decided_elsewhere(&mut self) -> Result<()> {
        let Some(last) = self.last.as_ref().filter(|last| last.status == TurnStatus::WaitingForApproval) else {
            return Ok(());
        };
        let found =
            self.session.agent.find_turn(&self.session.scope, last.thread, &last.turn).await.map_err(agent_error)?;
        let Some(turn) = found.filter(|turn| turn.status != TurnStatus::WaitingForApproval) else { return Ok(()) };
        self.app.output.note("decided elsewhere:");
        self.finish_turn(ReplyPrinter::new(&self.app.output), turn)
    }

    /// Prints the open approvals of the current thread.
    async fn show_open_approvals(&self) -> Result<()> {
        let Some(thread) = self.thread else { return Ok(()) };
        let open = self.session.agent.list_open_approvals(&self.session.scope, thread).await.map_err(agent_error)?;
        for approval in &open {
            self.app.output.line(format_args!("⚠️ waiting for approval: {}", printable_line(&approval.preview)))?;
            self.app.output.note("decide with /approve or /deny [REASON]");
            approvals::print_decision_commands(self.app, &self.session, &approval.id);
        }
        Ok(())
    }

    /// Prints the command that resumes the conversation.
    fn print_resume_command(&self) {
        if let Some(thread) = self.thread.filter(|_| !self.session.is_in_memory) {
            let program = self.app.global.command_prefix();
            let name = &self.session.name;
            let name = if name == DEFAULT { String::new() } else { format!(" {}", crate::arguments::quoted(name)) };
            let command = format!("{program} chat{name} --thread {thread}");
            self.app.output.note(self.app.output.paint(DIM, format!("to resume: {command}")));
        }
    }
}
