//! Deciding about an approval; its turn goes on by that.

use std::time::Duration;

use threadkeep::agent::{
    Approval, ApprovalState, Decision, EventSink, Stop, TurnState, find_approval, find_turn_state,
};
use threadkeep::memory::turns::TurnWaiter;
use threadkeep::{Agent, AgentError, JsonText, Scope, ThreadId, Value, Verdict};

use super::{Answered, resume, stopping};
use crate::error::{Error, Result};
use crate::repeats::Attempt;
use crate::service::Service;

/// How long a repeated decision waits for the turn that the first one took up.
const PATIENCE: Duration = Duration::from_secs(600);

/// A decision.
#[derive(Debug)]
pub struct DecisionRequest {
    /// Where it is decided.
    pub service: Service,
    /// The assistant that asks for leave.
    pub agent: Agent,
    /// On whose behalf.
    pub scope: Scope,
    /// The thread of the turn.
    pub thread: ThreadId,
    /// The approval.
    pub approval: String,
    /// The turn that goes on.
    pub turn: String,
    /// What is decided.
    pub verdict: Verdict,
    /// Who decides.
    pub by: String,
    /// What tells whether it was decided before.
    pub attempt: Attempt,
}

impl DecisionRequest {
    /// Decides and goes on with the turn. A decision that is repeated, with a key or by a client that says so, gets the
    /// turn of the first.
    pub(super) async fn answer(self, events: EventSink<'_>) -> Result<Answered> {
        let Self { service, agent, scope, thread, approval, turn, verdict, by, attempt } = &self;
        let stop = Stop::new();
        let decision =
            Decision { approval: approval.clone(), verdict: verdict.clone(), by: by.clone(), stop: stop.clone() };
        let decided = tokio::select! {
            decided = agent.decide_with(scope, *thread, decision, events) => decided,
            never = stopping::heed(service, scope, *thread, turn, &stop) => match never {},
        };
        match decided {
            Ok(turn) => Ok(Answered { turn, replayed: false }),
            Err(closed @ AgentError::ApprovalClosed { .. }) if attempt.key().is_some() || attempt.is_retry() => {
                self.decided_before(closed.into()).await
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn decided_before(&self, closed: Error) -> Result<Answered> {
        let (memory, scope, thread) = (self.agent.memory(), &self.scope, self.thread);
        let found = find_approval(memory, scope, thread, &self.approval).await?;
        let Some(approval) = found.filter(|approval| self.is_made_by(approval)) else { return Err(closed) };
        let over = tokio::time::timeout(PATIENCE, async {
            let mut waiting = TurnWaiter::begin(memory, scope, thread).await;
            loop {
                match find_turn_state(memory, scope, thread, &approval.turn).await? {
                    Some(TurnState::Running(_)) => {}
                    Some(TurnState::Settled(turn)) => return Ok::<_, Error>(Some(*turn)),
                    _ => return Ok(None),
                }
                resume(&self.service, &self.agent, scope, thread, &approval.turn).await?;
                waiting.wait(None).await;
            }
        });
        let turn = over.await.map_err(|_| Error::from(AgentError::Busy))??;
        turn.map(|turn| Answered { turn, replayed: true }).ok_or(closed)
    }

    /// Whether an approval stands as this decision made it.
    fn is_made_by(&self, approval: &Approval) -> bool {
        let is_denied = approval.state == ApprovalState::Denied;
        let is_same = match &self.verdict {
            Verdict::Approve => !is_denied && approval.changed.is_none(),
            Verdict::ApproveChanged(arguments) => {
                !is_denied && approval.changed == Some(JsonText::from(&Value::Object(arguments.clone())))
            }
            Verdict::Deny { reason } => is_denied && approval.reason == *reason,
        };
        is_same && approval.by.as_deref() == Some(self.by.as_str())
    }
}
