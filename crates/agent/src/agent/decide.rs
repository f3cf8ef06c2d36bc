//! Decisions about requests for approval.

use threadkeep_core::{JsonText, RecordState, Scope, TaggedNumber, ThreadId, ToolEffect, Value};
use threadkeep_memory::turns::{Driver, ThreadAccess, Versioned, close, lease_until, lock};

use super::Agent;
use super::start::ClaimedRun;
use crate::event::{EventSink, Events};
use crate::record::{self, RunRecord};
use crate::segment::{begin_batch, decision_draft};
use crate::{AgentError, Approval, ApprovalState, Result, Stop, Turn, TurnEvent, Verdict, list_approvals};

/// A decision about a request for approval.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The id of the request for approval.
    pub approval: String,
    /// Whether the call is approved or denied.
    pub verdict: Verdict,
    /// The name of the person who decides, as authenticated by the caller.
    pub by: String,
    /// Stops the resumed turn. Stopping does not undo the decision.
    pub stop: Stop,
}

/// Maximum number of retries after storing a decision conflicts with another commit.
const MAX_RETRIES: usize = 64;

impl Agent {
    /// Approves or denies a request for approval, once, and resumes its turn.
    ///
    /// Before the approved call is made, one commit stores the decision and claims the call. Of several concurrent decisions, one
    /// succeeds; the others fail with [`AgentError::ApprovalClosed`]. `by` is the name of the person who decides, as authenticated by
    /// the caller.
    ///
    /// # Errors
    /// `ApprovalNotFound`, `ApprovalClosed`, `NotAllowed`; `Busy` if another turn is still running when the
    /// assistant's waiting time ends. If `Busy` is returned, the decision was not stored.
    pub async fn decide(
        &self,
        scope: &Scope,
        thread: ThreadId,
        approval: &str,
        verdict: Verdict,
        by: &str,
        sink: EventSink<'_>,
    ) -> Result<Turn> {
        let decision = Decision { approval: approval.to_owned(), verdict, by: by.to_owned(), stop: Stop::new() };
        self.decide_with(scope, thread, decision, sink).await
    }

    /// Like [`Agent::decide`], with a handle that stops the turn.
    ///
    /// # Errors
    /// The same as [`Agent::decide`].
    pub async fn decide_with(
        &self,
        scope: &Scope,
        thread: ThreadId,
        decision: Decision,
        sink: EventSink<'_>,
    ) -> Result<Turn> {
        let Decision { approval, verdict, by, stop } = decision;
        let (approval, by) = (approval.as_str(), by.as_str());
        self.check_decider(by)?;
        let access = ThreadAccess::find(self.memory(), scope, thread).await?;
        let (mut retries_left, mut legacy) = (MAX_RETRIES, lock::LegacyLock::default());
        let (run, (seq, question), decided, _driver) = loop {
            let found = self.open_approval_or_close(&access, approval).await?;
            let runs = match self.admit(&access, None, &stop, &mut legacy).await {
                Err(AgentError::Busy) => {
                    // The running turn may be the turn of this approval, resumed by a concurrent decision.
                    self.open_approval_or_close(&access, approval).await?;
                    return Err(AgentError::Busy);
                }
                result => result?,
            };
            // While this call waited, the turn may have been resumed or closed.
            let waiting = runs.waiting.into_iter().find(|run| run.value.turn == found.value.turn);
            let Some(waiting) = waiting else {
                let state = self.find_approval(&access, approval).await?.value.state;
                return Err(AgentError::ApprovalClosed { id: approval.to_owned(), state });
            };
            let Some(question) = self.find_question(&access, &waiting.value).await? else {
                return Err(self.close_without_question(&access, &waiting, approval).await?);
            };
            let driver = Driver::begin(self.memory());
            let decided = self.apply_decision(&found.value, &verdict, by);
            match self.claim_decision(&access, waiting, (&decided, found.version), &driver, &mut legacy).await {
                Ok(run) => break (run, question, decided, driver),
                Err(AgentError::Superseded { .. }) if retries_left > 0 => retries_left -= 1,
                Err(error) => return Err(error),
            }
        };
        let events = Events::new(sink);
        let started = (run.value.turn.clone(), run.value.assistant.clone());
        events.send(TurnEvent::Started { thread, turn: started.0, agent: started.1 });
        let claimed = (decided.state == ApprovalState::Claimed).then_some(approval);
        let claimed_run = ClaimedRun { run, seq, question, stop: &stop, claimed_approval: claimed, read: None };
        Box::pin(self.drive_claimed(&access, claimed_run, &events)).await
    }

    /// Lists the approvals of a thread that can be decided, oldest first.
    ///
    /// # Errors
    /// `NotFound` if the scope does not include the thread.
    pub async fn list_open_approvals(&self, scope: &Scope, thread: ThreadId) -> Result<Vec<Approval>> {
        let now = self.memory().now();
        let mut approvals = self.approvals(scope, thread).await?;
        approvals.retain(|approval| approval.is_open(now));
        Ok(approvals)
    }

    /// Lists all approvals of a thread, oldest first. Closed approvals are kept for 30 days.
    ///
    /// # Errors
    /// `NotFound` if the scope does not include the thread.
    pub async fn approvals(&self, scope: &Scope, thread: ThreadId) -> Result<Vec<Approval>> {
        Ok(list_approvals(self.memory(), scope, thread).await?)
    }

    fn check_decider(&self, by: &str) -> Result<()> {
        let deciders = &self.assistant().definition().approvals.deciders;
        match deciders {
            Some(deciders) if !deciders.iter().any(|decider| decider == by) => {
                Err(AgentError::NotAllowed { by: by.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Returns the approval with the decision applied. If the decision changes the arguments, the description of the
    /// call follows them.
    fn apply_decision(&self, approval: &Approval, verdict: &Verdict, by: &str) -> Approval {
        let decided = apply_decision(approval, verdict, by, self.memory().now());
        let Verdict::ApproveWithChanges(arguments) = verdict else { return decided };
        let mut tools = self.assistant().definition().all_tools().into_iter();
        let tool = tools.find(|tool| !approval.is_question && tool.spec().name() == approval.tool);
        match tool.map(|tool| tool.effect(arguments)) {
            Some(ToolEffect::HasSideEffects { preview }) => Approval { preview, ..decided },
            _ => decided,
        }
    }

    async fn find_approval(&self, access: &ThreadAccess, id: &str) -> Result<Versioned<Approval>> {
        let not_found = || AgentError::ApprovalNotFound { id: id.to_owned() };
        // An id that is not a valid record key cannot belong to an approval.
        if id.is_empty() || id.len() > 100 || id.chars().any(char::is_control) {
            return Err(not_found());
        }
        let found = self.memory().find_thread_record(&access.writer, access.thread, &record::approval_name(id)).await?;
        let record = found.ok_or_else(not_found)?;
        Ok(Versioned { value: record.value.read()?, version: record.tagged() })
    }

    /// Returns the approval if it can still be decided. An expired approval is closed together with its turn.
    async fn open_approval_or_close(&self, access: &ThreadAccess, id: &str) -> Result<Versioned<Approval>> {
        let found = self.find_approval(access, id).await?;
        if found.value.is_open(self.memory().now()) {
            return Ok(found);
        }
        let mut state = found.value.state;
        if state == ApprovalState::Pending {
            state = ApprovalState::Expired;
            let runs = access.runs(self.memory()).await?;
            if let Some(run) = runs.waiting.iter().find(|run| run.value.turn == found.value.turn) {
                let name = record::waiting_name(&run.value.turn);
                close(self.memory(), access, &name, run, state, None).await?;
            }
        }
        Err(AgentError::ApprovalClosed { id: id.to_owned(), state })
    }

    /// Closes a waiting turn whose question is no longer stored. Returns the error for the decision.
    async fn close_without_question(
        &self,
        access: &ThreadAccess,
        waiting: &Versioned<RunRecord>,
        approval: &str,
    ) -> Result<AgentError> {
        let (name, state) = (record::waiting_name(&waiting.value.turn), ApprovalState::Void);
        close(self.memory(), access, &name, waiting, state, None).await?;
        Ok(AgentError::ApprovalClosed { id: approval.to_owned(), state })
    }

    /// Stores the decision and claims the turn's run in one commit.
    async fn claim_decision(
        &self,
        access: &ThreadAccess,
        waiting: Versioned<RunRecord>,
        (decided, approval_version): (&Approval, TaggedNumber),
        driver: &Driver,
        legacy: &mut lock::LegacyLock,
    ) -> Result<Versioned<RunRecord>> {
        let memory = self.memory();
        let Versioned { value: mut record, version } = waiting;
        driver.name().clone_into(&mut record.driver);
        record.lease_until = lease_until(memory);
        let id = record::message_id(&record.turn, record.started_at, record.messages);
        record.messages += 1;
        record.skips_trimming = true;
        let name = record::waiting_name(&record.turn);
        let batch = lock::acquire(begin_batch(memory, &record), &record, legacy)?
            .require(name.clone(), RecordState::Version(version))
            .require(record::approval_name(&decided.id), RecordState::Version(approval_version))
            .delete(name)
            .put(decided.record(memory.now())?)
            .append(record.mark_if_ephemeral(decision_draft(decided)).with_id(id));
        match batch.commit(&access.writer, access.thread).await {
            Ok(committed) => Ok(Versioned { value: record, version: committed.tagged() }),
            Err(error)
                if record::is_run_conflict(&error)
                    || record::is_approval_conflict(&error)
                    || legacy.is_conflict(&error) =>
            {
                Err(AgentError::Superseded { turn: record.turn })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the approval with the decision applied.
fn apply_decision(approval: &Approval, verdict: &Verdict, by: &str, now: threadkeep_core::Timestamp) -> Approval {
    // An approved call is claimed: this process makes it, and no other does.
    let (state, changed, reason) = match verdict {
        Verdict::Approve => (ApprovalState::Claimed, None, None),
        Verdict::ApproveWithChanges(arguments) => {
            (ApprovalState::Claimed, Some(JsonText::from(&Value::Object(arguments.clone()))), None)
        }
        Verdict::Deny { reason } => (ApprovalState::Denied, None, reason.clone()),
    };
    let (by, decided_at) = (Some(by.to_owned()), Some(now));
    Approval { state, changed, reason, by, decided_at, ..approval.clone() }
}
