//! Deciding about an approval; its turn goes on by that.

use std::time::Duration;

use threadkeep::agent::{Approval, ApprovalState, EventSink, find_approval, find_running_turn};
use threadkeep::{Agent, AgentError, JsonText, Scope, ThreadId, Value, Verdict};

use super::Answered;
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::repeats::Attempt;

/// How long a repeated decision waits for the turn that the first one took up.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often it looks whether that is over.
const MOMENT: Duration = Duration::from_millis(100);

/// A decision.
#[derive(Debug)]
pub(crate) struct Deciding {
    pub(crate) app: App,
    pub(crate) agent: Agent,
    pub(crate) scope: Scope,
    pub(crate) thread: ThreadId,
    pub(crate) approval: String,
    pub(crate) verdict: Verdict,
    /// Who decides.
    pub(crate) by: String,
    pub(crate) attempt: Attempt,
}

impl Deciding {
    /// Decides and goes on with the turn. A decision that is repeated, with a key or by a client that says so, gets the
    /// turn of the first.
    pub(super) async fn answer(self, events: EventSink<'_>) -> Result<Answered> {
        let Self { agent, scope, thread, approval, verdict, by, attempt, .. } = &self;
        match agent.decide(scope, *thread, approval, verdict.clone(), by, events).await {
            Ok(turn) => Ok(Answered { turn, replayed: false }),
            Err(closed @ AgentError::ApprovalClosed { .. }) if attempt.key().is_some() || attempt.is_retry() => {
                self.decided_before(closed.into()).await
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn decided_before(&self, closed: ApiError) -> Result<Answered> {
        let (memory, scope, thread) = (self.agent.memory(), &self.scope, self.thread);
        let found = find_approval(memory, scope, thread, &self.approval).await?;
        let Some(approval) = found.filter(|approval| self.is_made_by(approval)) else { return Err(closed) };
        let over = tokio::time::timeout(PATIENCE, async {
            loop {
                let running = find_running_turn(memory, scope, thread).await?;
                if running.is_none_or(|running| running.turn != approval.turn) {
                    return Ok::<_, ApiError>(());
                }
                self.agent.resume(scope, thread, &mut |_| {}).await?;
                tokio::time::sleep(MOMENT).await;
            }
        });
        over.await.map_err(|_| ApiError::from(AgentError::Busy))??;
        let turn = self.agent.find_turn(scope, thread, &approval.turn).await?;
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
