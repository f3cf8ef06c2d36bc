//! Getting a thread for oneself.

use std::time::Duration;

use threadkeep_graph::Failure;
use tokio::time::Instant;

use super::Agent;
use crate::drivers::{is_alive, wait_a_moment};
use crate::event::Events;
use crate::place::{Place, Runs, Versioned};
use crate::record::{self, RunRecord};
use crate::{AgentError, ApprovalState, BusyPolicy, Result, Stop, closing};

/// How often a run is taken over at most.
const TAKEN_OVER: u32 = 5;
/// How long a turn of another process is waited for before it is looked at again.
const MOMENT: Duration = Duration::from_millis(50);

impl Agent {
    /// Waits until nobody drives the thread, going on with what a driver that is gone left behind.
    pub(super) async fn admit(&self, place: &Place, stop: &Stop) -> Result<Runs> {
        let patience = match self.assistant().definition().busy {
            BusyPolicy::Wait(patience) => patience,
            BusyPolicy::Refuse => Duration::ZERO,
        };
        let began = Instant::now();
        let mut gone_on_with = None;
        loop {
            let runs = place.runs(self.memory()).await?;
            let Some(active) = &runs.active else {
                return self.without_expired(place, runs).await;
            };
            if !self.is_alive(&active.value) {
                // Whatever keeps it from ending must not keep the thread from going on.
                if gone_on_with.as_ref() == Some(&active.value.turn) {
                    self.close_interrupted(place, active).await?;
                    continue;
                }
                gone_on_with = Some(active.value.turn.clone());
                self.go_on_with(place, active.clone(), &Stop::new(), &Events::new(&mut |_| {})).await?;
                continue;
            }
            if began.elapsed() >= patience {
                return Err(AgentError::Busy);
            }
            tokio::select! {
                () = wait_a_moment(MOMENT) => {}
                () = stop.wait() => return Err(AgentError::Busy),
            }
        }
    }

    /// Whether somebody drives a run.
    pub(super) fn is_alive(&self, record: &RunRecord) -> bool {
        is_alive(&record.driver, record.lease_until, self.memory().now())
    }

    /// Goes on with the run of a driver that is gone: to its end where it is one of this assistant's, else it is closed.
    pub(super) async fn go_on_with(
        &self,
        place: &Place,
        active: Versioned<RunRecord>,
        stop: &Stop,
        events: &Events<'_>,
    ) -> Result<Option<crate::Turn>> {
        let is_another_ones = active.value.assistant != self.assistant().definition().name;
        // What ends the program each time must not do so for ever.
        if is_another_ones || active.value.taken_over >= TAKEN_OVER {
            self.close_interrupted(place, &active).await?;
            return Ok(None);
        }
        match Box::pin(self.take_over(place, active, stop, events)).await {
            // Another one was first.
            Err(AgentError::Superseded { .. }) => Ok(None),
            result => result.map(Some),
        }
    }

    async fn close_interrupted(&self, place: &Place, active: &Versioned<RunRecord>) -> Result<()> {
        let failure = Failure::new("interrupted", "the program ended before this was answered");
        closing::close(self.memory(), place, &record::active(), active, ApprovalState::Replaced, Some(failure)).await
    }

    /// Closes runs whose approvals nobody gave in time.
    async fn without_expired(&self, place: &Place, mut runs: Runs) -> Result<Runs> {
        if runs.waiting.is_empty() {
            return Ok(runs);
        }
        let (approvals, now) = (place.approvals(self.memory()).await?, self.memory().now());
        let mut waiting = Vec::new();
        for run in std::mem::take(&mut runs.waiting) {
            let mut own = approvals.iter().map(|approval| &approval.value).filter(|own| own.turn == run.value.turn);
            if own.any(|approval| approval.state != ApprovalState::Pending || now < approval.expires_at) {
                waiting.push(run);
            } else {
                let name = record::waiting(&run.value.turn);
                closing::close(self.memory(), place, &name, &run, ApprovalState::Expired, None).await?;
            }
        }
        Ok(Runs { waiting, ..runs })
    }
}
