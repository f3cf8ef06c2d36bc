//! Turns of assistants on behalf of clients: what was accepted is finished, whether the client waits for it or not.
//!
//! A turn runs in a task of its own, which holds what asked for it, a connection for example, so that a server that is asked
//! to stop waits for it. A turn that a crash cut off lies in its thread's journal; instances look for such turns and go on with them,
//! and so does whoever repeats the request, asks for the turn and may write, or begins the next one of the thread.

mod asking;
mod deciding;
pub(crate) mod resuming;
mod stopping;

pub use asking::AskRequest;
pub use deciding::DecisionRequest;
pub use resuming::resume;

use threadkeep::agent::EventSink;
use threadkeep::{Agent, ThreadId, Turn, TurnEvent};
use tokio::sync::mpsc;

use crate::error::{Error, Result};
use crate::service::Service;
use crate::telemetry::{self, Watch};

/// What came of a request.
#[derive(Debug)]
pub struct Answered {
    /// The turn as it ended, or as it waits.
    pub turn: Turn,
    /// Whether an earlier request had this turn.
    pub replayed: bool,
}

/// What is to be done.
#[derive(Debug)]
pub enum Work {
    /// An assistant is asked.
    Ask(AskRequest),
    /// An approval is decided about.
    Decide(DecisionRequest),
}

/// What whoever waits is told.
#[derive(Debug)]
pub enum TurnUpdate {
    /// Something happened on the way; the end is told by itself.
    Event(TurnEvent),
    /// The turn is over, or waits.
    End(Result<Box<Answered>>),
}

/// A turn on its way, as whoever waits hears of it.
pub type Waiting = mpsc::UnboundedReceiver<TurnUpdate>;

impl Work {
    /// What counts and traces it, the assistant, and the thread.
    fn watched(&self) -> (Watch, Agent, ThreadId) {
        let (service, agent, thread): (&Service, _, _) = match self {
            Self::Ask(AskRequest { service, agent, thread, .. })
            | Self::Decide(DecisionRequest { service, agent, thread, .. }) => (service, agent, thread),
        };
        (service.watch().clone(), agent.clone(), *thread)
    }

    async fn run(self, events: EventSink<'_>) -> Result<Answered> {
        match self {
            Self::Ask(asking) => asking.answer(events).await,
            Self::Decide(deciding) => deciding.answer(events).await,
        }
    }
}

/// Begins. Nobody has to wait for the end; `held` is held until then.
pub fn start(held: impl Send + 'static, work: Work) -> Waiting {
    // What a turn says is bounded by what a turn may take.
    let (sender, waiting) = mpsc::unbounded_channel();
    tokio::spawn(telemetry::carried(async move {
        let mut tell = |event| {
            if !matches!(event, TurnEvent::Completed(_) | TurnEvent::Failed(_)) {
                // A client that is gone hears nothing.
                drop(sender.send(TurnUpdate::Event(event)));
            }
        };
        let (watch, agent, thread) = work.watched();
        let mut watched = watch.turn(&agent, thread);
        let ended = Box::pin(watched.around(work.run(&mut tell))).await;
        match &ended {
            Ok(answered) if answered.replayed => watched.pass_over(),
            Ok(answered) => watched.told(&answered.turn),
            Err(error) => watched.failed(error.code),
        }
        drop(watched);
        drop(sender.send(TurnUpdate::End(ended.map(Box::new))));
        drop(held);
    }));
    waiting
}

/// Waits for the end.
pub async fn whole(mut waiting: Waiting) -> Result<Box<Answered>> {
    while let Some(told) = waiting.recv().await {
        if let TurnUpdate::End(ended) = told {
            return ended;
        }
    }
    Err(Error::internal("a turn broke off"))
}
