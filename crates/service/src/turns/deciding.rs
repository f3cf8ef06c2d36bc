//! Decides a requested approval, and resumes the turn that was waiting for it.

use std::time::Duration;

use threadkeep::agent::{
    Approval, ApprovalState, Decision, EventSink, Stop, TurnState, find_approval, find_turn_state,
};
use threadkeep::memory::turns::TurnWaiter;
use threadkeep::{Agent, AgentError, JsonText, Scope, ThreadId, Value, Verdict};

use super::{TurnResult, resume, stopping};
use crate::error::{Error, Result};
use crate::repeats::RequestIdentity;
use crate::service::Service;

/// How long a retried decision waits for the turn that the first decision resumed.
const RETRY_WAIT: Duration = Duration::from_secs(600);

/// A decision on a requested approval.
#[derive(Debug)]
pub struct DecisionRequest {
    /// The service.
    pub service: Service,
    /// The assistant that requested the approval.
    pub agent: Agent,
    /// The scope of the caller.
    pub scope: Scope,
    /// The thread of the turn.
    pub thread: ThreadId,
    /// The id of the approval.
    pub approval: String,
    /// The id of the turn to resume.
    pub turn: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The name of the person who made the decision.
    pub by: String,
    /// What the request has in common with its retries.
    pub identity: RequestIdentity,
}

impl DecisionRequest {
    /// Makes the decision and resumes the turn. If the same decision was already made and this request may be a
    /// retry of it, returns the turn that the first decision resumed.
    pub(super) async fn run(self, events: EventSink<'_>) -> Result<TurnResult> {
        let Self { service, agent, scope, thread, approval, turn, verdict, by, identity } = &self;
        let stop = Stop::new();
        let decision =
            Decision { approval: approval.clone(), verdict: verdict.clone(), by: by.clone(), stop: stop.clone() };
        let result = tokio::select! {
            result = agent.decide_with(scope, *thread, decision, events) => result,
            never = stopping::stop_on_request(service, scope, *thread, turn, &stop) => match never {},
        };
        match result {
            Ok(turn) => Ok(TurnResult { turn, replayed: false }),
            Err(error @ AgentError::ApprovalClosed { .. }) if identity.key().is_some() || identity.is_retry() => {
                self.await_first_decided_turn(error.into()).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for the turn that the first decision resumed, if that decision was the same as this one. Otherwise returns
    /// `closed_error`.
    async fn await_first_decided_turn(&self, closed_error: Error) -> Result<TurnResult> {
        let (memory, scope, thread) = (self.agent.memory(), &self.scope, self.thread);
        let found = find_approval(memory, scope, thread, &self.approval).await?;
        let Some(approval) = found.filter(|approval| self.matches(approval)) else { return Err(closed_error) };
        let wait_for_turn = tokio::time::timeout(RETRY_WAIT, async {
            let mut waiter = TurnWaiter::begin(memory, scope, thread).await;
            loop {
                match find_turn_state(memory, scope, thread, &approval.turn).await? {
                    Some(TurnState::Running(_)) => {}
                    Some(TurnState::NotRunning(turn)) => return Ok::<_, Error>(Some(*turn)),
                    _ => return Ok(None),
                }
                resume(&self.service, &self.agent, scope, thread, &approval.turn).await?;
                waiter.wait(None).await;
            }
        });
        let turn = wait_for_turn.await.map_err(|_| Error::from(AgentError::Busy))??;
        turn.map(|turn| TurnResult { turn, replayed: true }).ok_or(closed_error)
    }

    /// Whether this decision would produce the approval's current state.
    fn matches(&self, approval: &Approval) -> bool {
        let is_denied = approval.state == ApprovalState::Denied;
        let is_same = match &self.verdict {
            Verdict::Approve => !is_denied && approval.changed.is_none(),
            Verdict::ApproveWithChanges(arguments) => {
                !is_denied && approval.changed == Some(JsonText::from(&Value::Object(arguments.clone())))
            }
            Verdict::Deny { reason } => is_denied && approval.reason == *reason,
        };
        is_same && approval.by.as_deref() == Some(self.by.as_str())
    }
}
