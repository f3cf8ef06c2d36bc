//! Going on with turns that were cut off: by a crash of this server, of another instance, or of another program.
//!
//! Every instance looks for them, from its start on, and takes a few at a time. Of several that try one gets a turn; what
//! decides is the version of the turn's record, not a clock. A call of a model is not made again: its thread is freed.

use std::sync::Arc;
use std::time::Duration;

use threadkeep::agent::{InterruptedTurn, Stop, list_interrupted_turns};
use threadkeep::memory::turns::{TurnKind, remove_interrupted_completion};
use threadkeep::{Agent, AgentError, Scope, ThreadId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use super::stopping;
use crate::service::Service;

/// Turns that are gone on with at a time.
const AT_ONCE: usize = 4;
/// How often it is looked for others.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The turns that this instance goes on with.
#[derive(Clone, Debug)]
pub(crate) struct Resumed(Arc<Semaphore>);

impl Resumed {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }

    /// Waits until none is on its way.
    pub(crate) async fn over(&self) {
        drop(self.0.acquire_many(u32::try_from(AT_ONCE).unwrap_or(u32::MAX)).await);
    }
}

/// Goes on with what was cut off, from now on.
pub(crate) fn start(service: &Service) -> JoinHandle<()> {
    let service = service.clone();
    tokio::spawn(async move {
        while !service.is_stopping() {
            if let Err(error) = look(&service).await {
                tracing::warn!(%error, "it is not known which turns were cut off; the next look makes up for it");
            }
            tokio::select! {
                () = service.stopped() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    })
}

/// Begins to go on with as many as may be.
async fn look(service: &Service) -> Result<(), AgentError> {
    let (calls, cut): (Vec<_>, Vec<_>) =
        list_interrupted_turns(service.memory()).await?.into_iter().partition(|cut| cut.kind == TurnKind::Completion);
    for cut in calls {
        if let Err(error) = remove_interrupted_completion(service.memory(), &cut.scope, cut.thread).await {
            tracing::warn!(%error, "a thread that a call of a model left could not be freed");
        }
    }
    let served = cut.into_iter().filter_map(|cut| Some((service.assistants().find(&cut.assistant)?, cut)));
    for (agent, cut) in served {
        let Ok(permit) = Arc::clone(&service.resumed().0).try_acquire_owned() else { break };
        tokio::spawn(go_on(service.clone(), agent, cut, permit));
    }
    Ok(())
}

async fn go_on(service: Service, agent: Agent, cut: InterruptedTurn, permit: OwnedSemaphorePermit) {
    tracing::info!(assistant = cut.assistant, "going on with a turn that was cut off");
    if let Err(error) = resume(&service, &agent, &cut.scope, cut.thread, &cut.turn).await {
        tracing::warn!(%error, assistant = cut.assistant, "a turn could not be gone on with");
    }
    drop(permit);
}

/// Goes on with a turn whose driver may be gone, until it is over or asked to stop. One that is driven is left alone.
pub async fn resume(
    service: &Service,
    agent: &Agent,
    scope: &Scope,
    thread: ThreadId,
    turn: &str,
) -> Result<(), AgentError> {
    let mut watched = service.watch().turn(agent, thread);
    let (stop, mut unheard) = (Stop::new(), |_| {});
    let resuming = async {
        tokio::select! {
            resumed = agent.resume_with(scope, thread, &stop, &mut unheard) => resumed,
            never = stopping::heed(service, scope, thread, turn, &stop) => match never {},
        }
    };
    let resumed = Box::pin(watched.around(resuming)).await;
    match resumed.as_deref() {
        // Another one drives it.
        Ok([]) => watched.pass_over(),
        Ok([.., turn]) => watched.told(turn),
        Err(_) => watched.failed("not_resumed"),
    }
    resumed.map(drop)
}
