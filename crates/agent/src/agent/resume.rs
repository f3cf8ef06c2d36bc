//! Going on with what a crash, a restart or a dropped call left behind.

use threadkeep_core::{DocumentState, Failure, Scope, ThreadId};
use threadkeep_memory::turns::{Driving, Place, Versioned, close, lease_until, lock, messages_of};

use super::Agent;
use super::begin::Going;
use crate::event::{EventSink, Events};
use crate::record::{self, RunRecord};
use crate::{AgentError, ApprovalState, Result, Stop, Turn};

/// Where a run lies that is taken.
#[derive(Clone, Copy, Debug)]
enum From {
    /// With a driver that is gone, and holds the thread.
    Driver,
    /// It waits, and its decisions are made.
    Waiting,
}

impl Agent {
    /// Goes on with the turn that a driver which is gone left behind in a thread, and with those whose decisions were made
    /// meanwhile. Returns the turns that it brought further; none is the usual answer.
    ///
    /// No model is asked again whose answer is in the journal, no finished tool runs again, and of a call that changes the
    /// world and may have been made the outcome is unknown. [`Agent::chat`] does the same before it begins.
    ///
    /// # Errors
    /// `NotFound` where the scope does not reach the thread; those of the store. A turn that another one drives is left
    /// alone.
    pub async fn resume(&self, scope: &Scope, thread: ThreadId, sink: EventSink<'_>) -> Result<Vec<Turn>> {
        self.resume_with(scope, thread, &Stop::new(), sink).await
    }

    /// As [`Agent::resume`], with a way to stop the turns.
    ///
    /// # Errors
    /// As [`Agent::resume`].
    pub async fn resume_with(
        &self,
        scope: &Scope,
        thread: ThreadId,
        stop: &Stop,
        sink: EventSink<'_>,
    ) -> Result<Vec<Turn>> {
        let place = Place::find(self.memory(), scope, thread).await?;
        let events = Events::new(sink);
        let mut turns = Vec::new();
        let runs = place.runs(self.memory()).await?;
        if let Some(active) = runs.active {
            if active.value.is_alive(self.memory()) {
                return Ok(turns);
            }
            turns.extend(self.go_on_with(&place, active, stop, &events).await?);
        }
        for run in self.admit(&place, None, stop, &mut lock::OlderLock::default()).await?.waiting {
            let approvals = place.approvals_of(self.memory(), &run.value.turn).await?;
            let is_decided = approvals
                .iter()
                .any(|approval| matches!(approval.value.state, ApprovalState::Denied | ApprovalState::Claimed));
            let is_open = approvals.iter().any(|approval| approval.value.state == ApprovalState::Pending);
            if is_decided && !is_open {
                turns.push(self.take_up(&place, run, stop, &events).await?);
            }
        }
        Ok(turns)
    }

    /// Takes a run from a driver that is gone.
    pub(super) async fn take_over(
        &self,
        place: &Place,
        mut active: Versioned<RunRecord>,
        stop: &Stop,
        events: &Events<'_>,
    ) -> Result<Turn> {
        let Some((seq, question)) = self.question(place, &active.value).await? else {
            return self.give_up(place, &active).await;
        };
        let driving = Driving::begin(self.memory());
        active.value.taken_over += 1;
        let run = self.claim(place, active, From::Driver, &driving).await?;
        let going = Going { run, seq, question, stop, claimed: None, read: None };
        Box::pin(self.go(place, going, events)).await
    }

    /// Takes up a run that waits and whose decisions are made.
    async fn take_up(
        &self,
        place: &Place,
        waiting: Versioned<RunRecord>,
        stop: &Stop,
        events: &Events<'_>,
    ) -> Result<Turn> {
        let turn = waiting.value.turn.clone();
        let Some((seq, question)) = self.question(place, &waiting.value).await? else {
            return Err(AgentError::Superseded { turn });
        };
        let driving = Driving::begin(self.memory());
        let run = self.claim(place, waiting, From::Waiting, &driving).await?;
        let going = Going { run, seq, question, stop, claimed: None, read: None };
        Box::pin(self.go(place, going, events)).await
    }

    /// Makes a run one's own. Of several who try, one gets it.
    async fn claim(
        &self,
        place: &Place,
        run: Versioned<RunRecord>,
        from: From,
        driving: &Driving,
    ) -> Result<Versioned<RunRecord>> {
        let memory = self.memory();
        let Versioned { value: mut record, version } = run;
        driving.name().clone_into(&mut record.driver);
        record.lease_until = lease_until(memory);
        let (batch, version, mut older) = (memory.batch(), DocumentState::Version(version), lock::OlderLock::default());
        let batch = match from {
            From::Driver => lock::hold(batch.require(record::active(), version), &record)?,
            From::Waiting => {
                let name = record::waiting(&record.turn);
                lock::take(batch.require(name.clone(), version).delete(name), &record, &older)?
            }
        };
        match batch.commit(&place.writer, place.thread).await {
            Ok(committed) => Ok(Versioned { value: record, version: committed.tagged() }),
            Err(error) if record::is_about_runs(&error) || older.has_refused(&error) => {
                Err(AgentError::Superseded { turn: record.turn })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The user's message of a run, with its position; `None` where it was erased.
    pub(super) async fn question(&self, place: &Place, record: &RunRecord) -> Result<Option<(u64, String)>> {
        let found = messages_of(self.memory(), place, &record.turn, record.started_at, 1).await?;
        Ok(found.first().map(|message| (message.seq, message.plain_text().into_owned())))
    }

    /// Closes a run whose question was erased.
    async fn give_up(&self, place: &Place, active: &Versioned<RunRecord>) -> Result<Turn> {
        let failure = Failure::new("question_erased", "the question was erased before it was answered");
        let name = record::active();
        close(self.memory(), place, &name, active, ApprovalState::Replaced, Some(failure)).await?;
        let turn = active.value.turn.clone();
        let found = self.find_turn(&place.scope, place.thread, &turn).await?;
        found.ok_or(AgentError::Superseded { turn })
    }
}
