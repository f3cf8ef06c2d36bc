//! Resuming turns that a crash, a restart or a dropped call interrupted.

use threadkeep_core::{Failure, RecordState, Scope, ThreadId};
use threadkeep_memory::turns::{Driver, ThreadAccess, Versioned, close, lease_until, lock, read_turn_messages};

use super::Agent;
use super::start::ClaimedRun;
use crate::event::{EventSink, Events};
use crate::record::{self, RunRecord};
use crate::{AgentError, ApprovalState, Result, Stop, Turn};

/// The state of a run before a driver claims it.
#[derive(Clone, Copy, Debug)]
enum ClaimFrom {
    /// The run's driver has ended, but the run still holds the thread's lock.
    EndedDriver,
    /// The run was waiting for approval, and all its requests have been decided.
    Waiting,
}

impl Agent {
    /// Resumes the interrupted turn of a thread, if there is one, and waiting turns whose approvals have all been decided.
    /// Returns the turns that were resumed; usually none.
    ///
    /// Model answers in the journal are reused, and finished tools do not run again. A call with side effects that may have been made
    /// is not repeated; its outcome is recorded as unknown. [`Agent::chat`] also resumes an interrupted turn before its own turn.
    ///
    /// # Errors
    /// `NotFound` if the scope does not include the thread; errors from the store. A turn that another driver is running is neither
    /// resumed nor an error.
    pub async fn resume(&self, scope: &Scope, thread: ThreadId, sink: EventSink<'_>) -> Result<Vec<Turn>> {
        self.resume_with(scope, thread, &Stop::new(), sink).await
    }

    /// Like [`Agent::resume`], with a handle that stops the turns.
    ///
    /// # Errors
    /// The same as [`Agent::resume`].
    pub async fn resume_with(
        &self,
        scope: &Scope,
        thread: ThreadId,
        stop: &Stop,
        sink: EventSink<'_>,
    ) -> Result<Vec<Turn>> {
        let access = ThreadAccess::find(self.memory(), scope, thread).await?;
        let events = Events::new(sink);
        let mut turns = Vec::new();
        let runs = access.runs(self.memory()).await?;
        if let Some(active) = runs.active {
            if active.value.is_alive(self.memory()) {
                return Ok(turns);
            }
            turns.extend(self.resume_run(&access, active, stop, &events).await?);
        }
        for run in self.admit(&access, None, stop, &mut lock::LegacyLock::default()).await?.waiting {
            let approvals = access.approvals_of_turn(self.memory(), &run.value.turn).await?;
            let is_decided = approvals
                .iter()
                .any(|approval| matches!(approval.value.state, ApprovalState::Denied | ApprovalState::Claimed));
            let is_open = approvals.iter().any(|approval| approval.value.state == ApprovalState::Pending);
            if is_decided && !is_open {
                turns.push(self.resume_waiting(&access, run, stop, &events).await?);
            }
        }
        Ok(turns)
    }

    /// Takes over a run whose driver has ended.
    pub(super) async fn take_over(
        &self,
        access: &ThreadAccess,
        mut active: Versioned<RunRecord>,
        stop: &Stop,
        events: &Events<'_>,
    ) -> Result<Turn> {
        let Some((seq, question)) = self.find_question(access, &active.value).await? else {
            return self.close_erased(access, &active).await;
        };
        let driver = Driver::begin(self.memory());
        active.value.taken_over += 1;
        let run = self.claim(access, active, ClaimFrom::EndedDriver, &driver).await?;
        let claimed_run = ClaimedRun { run, seq, question, stop, claimed_approval: None, read: None };
        Box::pin(self.drive_claimed(access, claimed_run, events)).await
    }

    /// Resumes a waiting run whose approvals have all been decided.
    async fn resume_waiting(
        &self,
        access: &ThreadAccess,
        waiting: Versioned<RunRecord>,
        stop: &Stop,
        events: &Events<'_>,
    ) -> Result<Turn> {
        let turn = waiting.value.turn.clone();
        let Some((seq, question)) = self.find_question(access, &waiting.value).await? else {
            return Err(AgentError::Superseded { turn });
        };
        let driver = Driver::begin(self.memory());
        let run = self.claim(access, waiting, ClaimFrom::Waiting, &driver).await?;
        let claimed_run = ClaimedRun { run, seq, question, stop, claimed_approval: None, read: None };
        Box::pin(self.drive_claimed(access, claimed_run, events)).await
    }

    /// Claims a run for this driver. Of several concurrent claims, one succeeds; the others return [`AgentError::Superseded`].
    async fn claim(
        &self,
        access: &ThreadAccess,
        run: Versioned<RunRecord>,
        from: ClaimFrom,
        driver: &Driver,
    ) -> Result<Versioned<RunRecord>> {
        let memory = self.memory();
        let Versioned { value: mut record, version } = run;
        driver.name().clone_into(&mut record.driver);
        record.lease_until = lease_until(memory);
        let (batch, version, mut legacy) = (memory.batch(), RecordState::Version(version), lock::LegacyLock::default());
        let batch = match from {
            ClaimFrom::EndedDriver => lock::renew(batch.require(record::active_name(), version), &record)?,
            ClaimFrom::Waiting => {
                let name = record::waiting_name(&record.turn);
                lock::acquire(batch.require(name.clone(), version).delete(name), &record, &legacy)?
            }
        };
        match batch.commit(&access.writer, access.thread).await {
            Ok(committed) => Ok(Versioned { value: record, version: committed.tagged() }),
            Err(error) if record::is_run_conflict(&error) || legacy.is_conflict(&error) => {
                Err(AgentError::Superseded { turn: record.turn })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the position and text of a run's user message; `None` if it was erased. A message that is not stored yet has the next
    /// position of the thread.
    pub(super) async fn find_question(
        &self,
        access: &ThreadAccess,
        record: &RunRecord,
    ) -> Result<Option<(u64, String)>> {
        if let Some(question) = &record.pending_question {
            let thread = self.memory().get_thread(&access.scope, access.thread).await?;
            return Ok(Some((thread.positions.seq + 1, question.text.clone())));
        }
        let found = read_turn_messages(self.memory(), access, &record.turn, record.started_at, 1).await?;
        Ok(found.first().map(|message| (message.seq, message.plain_text().into_owned())))
    }

    /// Closes a run whose user message was erased.
    async fn close_erased(&self, access: &ThreadAccess, active: &Versioned<RunRecord>) -> Result<Turn> {
        let failure = Failure::new("question_erased", "the question was erased before it was answered");
        let name = record::active_name();
        close(self.memory(), access, &name, active, ApprovalState::Void, Some(failure)).await?;
        let turn = active.value.turn.clone();
        let found = self.find_turn(&access.scope, access.thread, &turn).await?;
        found.ok_or(AgentError::Superseded { turn })
    }
}
