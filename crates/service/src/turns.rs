//! Turns of assistants for clients. An accepted request is completed whether or not the client waits for it.
//!
//! Each turn runs in its own task. The task owns a guard, such as that of the connection, so that shutdown waits for the turn. A
//! turn that a crash interrupted can be resumed from the journal of its thread. Instances resume such turns periodically; a turn
//! is also resumed when a client retries the request, reads the turn with write access, or starts the next turn of the thread.

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
use crate::telemetry::{self, Instrumentation};

/// The result of a request for a turn.
#[derive(Debug)]
pub struct TurnResult {
    /// The turn, which has ended or waits for approval.
    pub turn: Turn,
    /// Whether an earlier request started this turn.
    pub replayed: bool,
}

/// A request for a turn.
#[derive(Debug)]
pub enum TurnTask {
    /// Asks an assistant.
    Ask(AskRequest),
    /// Decides on an approval.
    Decide(DecisionRequest),
}

/// An update of a running turn.
#[derive(Debug)]
pub enum TurnUpdate {
    /// An event, except the end of the turn.
    Event(TurnEvent),
    /// The turn has ended or waits for approval.
    End(Result<Box<TurnResult>>),
}

/// The updates of a running turn.
pub type TurnUpdates = mpsc::UnboundedReceiver<TurnUpdate>;

impl TurnTask {
    /// Returns the service's instrumentation, the agent and the thread of the turn.
    fn instrumented_parts(&self) -> (Instrumentation, Agent, ThreadId) {
        let (service, agent, thread): (&Service, _, _) = match self {
            Self::Ask(AskRequest { service, agent, thread, .. })
            | Self::Decide(DecisionRequest { service, agent, thread, .. }) => (service, agent, thread),
        };
        (service.instrumentation().clone(), agent.clone(), *thread)
    }

    async fn run(self, events: EventSink<'_>) -> Result<TurnResult> {
        match self {
            Self::Ask(request) => request.run(events).await,
            Self::Decide(request) => request.run(events).await,
        }
    }
}

/// Starts a turn in its own task, which continues if the returned receiver is dropped. `guard` is dropped when the turn ends.
pub fn start(guard: impl Send + 'static, request: TurnTask) -> TurnUpdates {
    // The channel needs no bound, because the limits of a turn also limit the number of its events.
    let (sender, updates) = mpsc::unbounded_channel();
    tokio::spawn(telemetry::in_current_span(async move {
        let mut send_event = |event| {
            if !matches!(event, TurnEvent::Completed(_) | TurnEvent::Failed(_)) {
                // Sending fails if the client is no longer waiting.
                drop(sender.send(TurnUpdate::Event(event)));
            }
        };
        let (instrumentation, agent, thread) = request.instrumented_parts();
        let mut call = instrumentation.start_turn(&agent, thread);
        let result = Box::pin(call.in_scope(request.run(&mut send_event))).await;
        match &result {
            Ok(result) if result.replayed => call.discard(),
            Ok(result) => call.set_turn_outcome(&result.turn),
            Err(error) => call.set_failed(error.code),
        }
        drop(call);
        drop(sender.send(TurnUpdate::End(result.map(Box::new))));
        drop(guard);
    }));
    updates
}

/// Waits until a turn has ended or waits for approval, and returns its result.
pub async fn wait_for_result(mut updates: TurnUpdates) -> Result<Box<TurnResult>> {
    while let Some(update) = updates.recv().await {
        if let TurnUpdate::End(result) = update {
            return result;
        }
    }
    Err(Error::internal("the task of a turn ended without a result"))
}
