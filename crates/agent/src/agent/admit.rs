//! Getting a thread for oneself.

use std::time::Duration;

use threadkeep_core::Moment;
use threadkeep_memory::turns::lock::OlderLock;
use threadkeep_memory::turns::{Place, Runs, Versioned, Waiting, close, interrupt};

use super::Agent;
use crate::event::Events;
use crate::record::{self, RunRecord};
use crate::{AgentError, ApprovalState, BusyPolicy, Result, Stop};

/// How often a run is taken over at most.
const TAKEN_OVER: u32 = 5;

impl Agent {
    /// Waits until nobody holds the thread, going on with what a driver that is gone left behind.
    /// `seen` are the turns that the first look found, where there was one.
    pub(super) async fn admit(
        &self,
        place: &Place,
        mut seen: Option<Runs>,
        stop: &Stop,
        older: &mut OlderLock,
    ) -> Result<Runs> {
        let memory = self.memory();
        let patience = match self.assistant().definition().busy {
            BusyPolicy::Wait(patience) => patience,
            BusyPolicy::Refuse => Duration::ZERO,
        };
        let (began, mut waiting) = (memory.runtime().now(), None);
        let mut gone_on_with = None;
        loop {
            let runs = match seen.take() {
                Some(runs) => runs,
                None => place.runs(memory).await?,
            };
            let Some(active) = &runs.active else {
                if older.is_free(memory, place).await? {
                    return self.without_expired(place, runs).await;
                }
                self.wait_in(place, &mut waiting, None, began + patience, stop).await?;
                continue;
            };
            if active.value.is_alive(memory) {
                self.wait_in(place, &mut waiting, Some(&active.value.driver), began + patience, stop).await?;
                continue;
            }
            // Whatever keeps it from ending must not keep the thread from going on.
            if gone_on_with.as_ref() == Some(&active.value.turn) {
                interrupt(memory, place, active).await?;
                continue;
            }
            gone_on_with = Some(active.value.turn.clone());
            self.go_on_with(place, active.clone(), &Stop::new(), &Events::new(&mut |_| {})).await?;
        }
    }

    /// Waits for a thread until it is worth another look.
    async fn wait_in(
        &self,
        place: &Place,
        waiting: &mut Option<Waiting>,
        driver: Option<&str>,
        until: Moment,
        stop: &Stop,
    ) -> Result<()> {
        let runtime = self.memory().runtime();
        if runtime.now() >= until {
            return Err(AgentError::Busy);
        }
        let Some(waiting) = waiting else {
            // What happened before this moment is seen by another look.
            *waiting = Some(Waiting::begin(self.memory(), &place.scope, place.thread).await);
            return Ok(());
        };
        tokio::select! {
            () = waiting.wait(driver) => Ok(()),
            // The last look is the one that refuses.
            () = runtime.sleep_until(until) => Ok(()),
            () = stop.wait() => Err(AgentError::Busy),
        }
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
            interrupt(self.memory(), place, &active).await?;
            return Ok(None);
        }
        match Box::pin(self.take_over(place, active, stop, events)).await {
            // Another one was first.
            Err(AgentError::Superseded { .. }) => Ok(None),
            result => result.map(Some),
        }
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
                close(self.memory(), place, &name, &run, ApprovalState::Expired, None).await?;
            }
        }
        Ok(Runs { waiting, ..runs })
    }
}
