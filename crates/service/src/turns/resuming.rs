//! Resuming turns that were interrupted by a crash of this server, of another instance or of another program.
//!
//! Every instance polls for interrupted turns and resumes a few of them concurrently. If several instances try to resume a turn,
//! a compare-and-set on the turn's record lets one of them succeed. Interrupted model calls that no assistant made are not
//! repeated; their threads are unlocked.

use std::sync::Arc;
use std::time::Duration;

use threadkeep::agent::{InterruptedTurn, Stop, list_interrupted_turns};
use threadkeep::memory::turns::{TurnKind, remove_interrupted_completion};
use threadkeep::{Agent, AgentError, Scope, ThreadId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use super::stopping;
use crate::service::Service;

/// The maximum number of turns that an instance resumes concurrently.
const MAX_CONCURRENT: usize = 4;
/// The time between polls for interrupted turns.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Limits the turns that this instance resumes concurrently.
#[derive(Clone, Debug)]
pub(crate) struct Resumptions(Arc<Semaphore>);

impl Resumptions {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_CONCURRENT)))
    }

    /// Waits until no resumed turn is running.
    pub(crate) async fn finished(&self) {
        drop(self.0.acquire_many(u32::try_from(MAX_CONCURRENT).unwrap_or(u32::MAX)).await);
    }
}

/// Starts to resume interrupted turns periodically, until the service is asked to stop.
pub(crate) fn start(service: &Service) -> JoinHandle<()> {
    let service = service.clone();
    tokio::spawn(async move {
        while !service.is_stopping() {
            if let Err(error) = poll(&service).await {
                tracing::warn!(%error, "cannot list interrupted turns; will retry");
            }
            tokio::select! {
                () = service.stopped() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    })
}

/// Starts to resume interrupted turns, as many as the limit allows.
async fn poll(service: &Service) -> Result<(), AgentError> {
    let (completions, turns): (Vec<_>, Vec<_>) =
        list_interrupted_turns(service.memory()).await?.into_iter().partition(|turn| turn.kind == TurnKind::Completion);
    for completion in completions {
        let InterruptedTurn { scope, thread, .. } = &completion;
        if let Err(error) = remove_interrupted_completion(service.memory(), scope, *thread).await {
            tracing::warn!(%error, "cannot unlock a thread after an interrupted model call");
        }
    }
    let resumable = turns.into_iter().filter_map(|turn| Some((service.assistants().find(&turn.assistant)?, turn)));
    for (agent, turn) in resumable {
        let Ok(permit) = Arc::clone(&service.resumptions().0).try_acquire_owned() else { break };
        tokio::spawn(resume_in_background(service.clone(), agent, turn, permit));
    }
    Ok(())
}

async fn resume_in_background(
    service: Service,
    agent: Agent,
    interrupted: InterruptedTurn,
    permit: OwnedSemaphorePermit,
) {
    let InterruptedTurn { scope, thread, turn, assistant, .. } = &interrupted;
    tracing::info!(assistant, "resuming an interrupted turn");
    if let Err(error) = resume(&service, &agent, scope, *thread, turn).await {
        tracing::warn!(%error, assistant, "cannot resume an interrupted turn");
    }
    drop(permit);
}

/// Resumes a turn and runs it until it ends, waits for approval, or a client requests a stop. Does nothing if another
/// task drives the turn.
pub async fn resume(
    service: &Service,
    agent: &Agent,
    scope: &Scope,
    thread: ThreadId,
    turn: &str,
) -> Result<(), AgentError> {
    let mut call = service.instrumentation().start_turn(agent, thread);
    let (stop, mut ignore_events) = (Stop::new(), |_| {});
    let resuming = async {
        tokio::select! {
            resumed = agent.resume_with(scope, thread, &stop, &mut ignore_events) => resumed,
            never = stopping::stop_on_request(service, scope, thread, turn, &stop) => match never {},
        }
    };
    let resumed = Box::pin(call.in_scope(resuming)).await;
    match resumed.as_deref() {
        // Another task drives the turn.
        Ok([]) => call.discard(),
        Ok([.., turn]) => call.set_turn_outcome(turn),
        Err(_) => call.set_failed("not_resumed"),
    }
    resumed.map(drop)
}
