mod areas;
mod input;
mod list;
mod reader;
mod rows;
mod screen;
mod state;
mod view;
mod worker;

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;

use anyhow::{Context, Result};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{App, Status};
use crate::failure::Failure;
use crate::store::Purpose;
use screen::Screen;
use state::{Effect, Event, State};
use view::Theme;
use worker::Worker;

/// Browse conversations on the whole screen
///
/// Lists the conversations, searches while you type, and opens a message in its place. Press ? for the keys. docs/search.md describes
/// the search syntax.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep browse
  threadkeep browse decision ledger in:codex   start with a search
  threadkeep browse --store work.db")]
pub(crate) struct Arguments {
    /// What to search for at first
    words: Vec<String>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if app.output.is_json() || !is_terminal {
        let failure = Failure::usage("browse requires a terminal and does not support --json");
        return Err(failure
            .hint("the output of `threadkeep threads`, `search` and `show` can be redirected or piped")
            .into());
    }
    let (memory, scope) = (app.open(Purpose::Read).await?.memory, app.scope()?);
    let theme = Theme { has_colour: app.output.has_colour() };
    let worker = Worker::new(memory, scope, app.interrupt.clone());
    let mut screen = Screen::take(&app.interrupt).context("cannot use the terminal")?;
    show(&mut screen, worker, theme, &arguments.words.join(" ")).await
}

/// Shows the view until the user quits.
async fn show(screen: &mut Screen, mut worker: Worker, theme: Theme, query: &str) -> Result<Status> {
    let (columns, rows) = screen.size()?;
    let (mut state, effects) = State::new(columns, rows, query);
    let mut inputs = read_terminal();
    let mut end = std::pin::pin!(terminated());
    let mut next = carry_out(screen, &mut worker, effects)?;
    while next.is_continue() {
        screen.draw(|frame| view::draw(frame, &state, theme))?;
        let mut event = tokio::select! {
            input = inputs.recv() => match input {
                Some(input) => from_terminal(input?),
                None => break,
            },
            Some(event) = worker.next() => Some(event),
            () = &mut end => break,
        };
        loop {
            if let Some(event) = event.take() {
                next = carry_out(screen, &mut worker, state.handle(event))?;
            }
            // Keys that are already there are handled before the screen is drawn again.
            match inputs.try_recv() {
                Ok(input) if next.is_continue() => event = from_terminal(input?),
                _ => break,
            }
        }
    }
    Ok(Status::Done)
}

/// Reads the terminal in a thread, which ends with the program.
fn read_terminal() -> UnboundedReceiver<io::Result<crossterm::event::Event>> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        loop {
            let input = crossterm::event::read();
            let has_failed = input.is_err();
            if sender.send(input).is_err() || has_failed {
                break;
            }
        }
    });
    receiver
}

/// Carries out effects, and returns whether the view stays open.
fn carry_out(screen: &mut Screen, worker: &mut Worker, effects: Vec<Effect>) -> Result<ControlFlow<()>> {
    for effect in effects {
        match effect {
            Effect::Quit => return Ok(ControlFlow::Break(())),
            Effect::SetClipboard(text) => screen.set_clipboard(&text)?,
            effect => worker.start(effect),
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn from_terminal(input: crossterm::event::Event) -> Option<Event> {
    match input {
        crossterm::event::Event::Key(key) => Some(Event::Key(key)),
        crossterm::event::Event::Paste(text) => Some(Event::Paste(text)),
        crossterm::event::Event::Resize(columns, rows) => Some(Event::Resized { columns, rows }),
        _ => None,
    }
}

/// Waits until the program is asked to end.
#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::terminate()), signal(SignalKind::hangup())) {
        (Ok(mut terminate), Ok(mut hang_up)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}

/// Waits until the program is asked to end.
#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}
