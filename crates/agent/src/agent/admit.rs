//! Admission: a new turn waits until no other turn holds the thread's lock.

use std::time::Duration;

use threadkeep_core::MonotonicTime;
use threadkeep_memory::turns::lock::LegacyLock;
use threadkeep_memory::turns::{Runs, ThreadAccess, TurnWaiter, Versioned, close, interrupt};

use super::Agent;
use crate::event::Events;
use crate::record::{self, RunRecord};
use crate::{AgentError, ApprovalState, BusyPolicy, Result, Stop};

/// Maximum number of times that a run is taken over.
const MAX_TAKEOVERS: u32 = 5;

impl Agent {
    /// Waits until no turn holds the thread's lock, and resumes a run whose driver has ended. `known_runs` are the thread's runs if
    /// they have already been read.
    pub(super) async fn admit(
        &self,
        access: &ThreadAccess,
        mut known_runs: Option<Runs>,
        stop: &Stop,
        legacy: &mut LegacyLock,
    ) -> Result<Runs> {
        let memory = self.memory();
        let timeout = match self.assistant().definition().busy {
            BusyPolicy::Wait(timeout) => timeout,
            BusyPolicy::Refuse => Duration::ZERO,
        };
        let (deadline, mut waiter) = (memory.runtime().now() + timeout, None);
        let mut resumed_turn = None;
        loop {
            let runs = match known_runs.take() {
                Some(runs) => runs,
                None => access.runs(memory).await?,
            };
            let Some(active) = &runs.active else {
                if legacy.is_free(memory, access).await? {
                    return self.close_expired(access, runs).await;
                }
                self.wait_for_thread(access, &mut waiter, None, deadline, stop).await?;
                continue;
            };
            if active.value.is_alive(memory) {
                self.wait_for_thread(access, &mut waiter, Some(&active.value.driver), deadline, stop).await?;
                continue;
            }
            // The run was resumed in this call already. A run that cannot be ended must not block the thread.
            if resumed_turn.as_ref() == Some(&active.value.turn) {
                interrupt(memory, access, active).await?;
                continue;
            }
            resumed_turn = Some(active.value.turn.clone());
            self.resume_run(access, active.clone(), &Stop::new(), &Events::new(&mut |_| {})).await?;
        }
    }

    /// Waits until the thread may have changed and should be read again.
    async fn wait_for_thread(
        &self,
        access: &ThreadAccess,
        waiter: &mut Option<TurnWaiter>,
        driver: Option<&str>,
        deadline: MonotonicTime,
        stop: &Stop,
    ) -> Result<()> {
        let runtime = self.memory().runtime();
        if runtime.now() >= deadline {
            return Err(AgentError::Busy);
        }
        let Some(waiter) = waiter else {
            // The caller reads the thread again, because a change before this subscription would be missed.
            *waiter = Some(TurnWaiter::begin(self.memory(), &access.scope, access.thread).await);
            return Ok(());
        };
        tokio::select! {
            () = waiter.wait(driver) => Ok(()),
            // The caller reads the thread once more; the next call of this function returns `Busy`.
            () = runtime.sleep_until(deadline) => Ok(()),
            () = stop.wait() => Err(AgentError::Busy),
        }
    }

    /// Resumes a run whose driver has ended, and drives it to its end. A run of another assistant, or a run that was taken over too
    /// often, is closed instead: then the result is `None`. It is also `None` if another driver takes over the run first.
    pub(super) async fn resume_run(
        &self,
        access: &ThreadAccess,
        active: Versioned<RunRecord>,
        stop: &Stop,
        events: &Events<'_>,
    ) -> Result<Option<crate::Turn>> {
        let belongs_to_another_assistant = active.value.assistant != self.assistant().definition().name;
        // A run that crashes the process every time must not be resumed forever.
        if belongs_to_another_assistant || active.value.taken_over >= MAX_TAKEOVERS {
            interrupt(self.memory(), access, &active).await?;
            return Ok(None);
        }
        match Box::pin(self.take_over(access, active, stop, events)).await {
            // Another driver claimed it first.
            Err(AgentError::Superseded { .. }) => Ok(None),
            result => result.map(Some),
        }
    }

    /// Closes waiting runs whose approvals have expired.
    async fn close_expired(&self, access: &ThreadAccess, mut runs: Runs) -> Result<Runs> {
        if runs.waiting.is_empty() {
            return Ok(runs);
        }
        let (approvals, now) = (access.approvals(self.memory()).await?, self.memory().now());
        let mut waiting = Vec::new();
        for run in std::mem::take(&mut runs.waiting) {
            let all = approvals.iter().map(|approval| &approval.value);
            let mut approvals_of_run = all.filter(|approval| approval.turn == run.value.turn);
            if approvals_of_run.any(|approval| approval.state != ApprovalState::Pending || now < approval.expires_at) {
                waiting.push(run);
            } else {
                let name = record::waiting_name(&run.value.turn);
                close(self.memory(), access, &name, &run, ApprovalState::Expired, None).await?;
            }
        }
        Ok(Runs { waiting, ..runs })
    }
}
