//! Drives a run: executes its effects, and writes each outcome to the journal before the next effect starts.

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use threadkeep_graph::{Effect, Failure};
use threadkeep_memory::turns::LEASE_RENEWAL_INTERVAL;

use crate::effect_plan::{EffectPlan, plan_effect};
use crate::executor::EffectExecutor;
use crate::record::RecordedEvent;
use crate::run_state::{JournalSync, RunState};
use crate::segment;
use crate::{AgentError, ApprovalState, Result, Stop, Turn, TurnEvent};

/// Drives a run until it ends or waits for a person's decision. `claimed_approval` is the id of an approval that the caller has
/// just stored as granted, and whose call must be made now.
pub(crate) async fn drive(
    executor: &EffectExecutor<'_>,
    mut run_state: RunState,
    claimed_approval: Option<&str>,
    stop: &Stop,
) -> Result<Turn> {
    let driven = match drive_loop(executor, &mut run_state, claimed_approval, stop).await {
        Err(error) if error.is_not_storable() => {
            let failure = Failure::new("not_storable", error.to_string());
            run_state.stop(failure.clone());
            segment::finish(executor, &mut run_state, Err(failure)).await
        }
        driven => driven,
    };
    match driven {
        Err(AgentError::Memory(error)) => {
            // The run can be resumed from its journal; the next turn in the thread does so.
            let failure = Failure::new("store_failed", error.to_string());
            Ok(segment::unstored_turn(executor, &run_state, &failure))
        }
        result => result,
    }
}

async fn drive_loop(
    executor: &EffectExecutor<'_>,
    run_state: &mut RunState,
    claimed_approval: Option<&str>,
    stop: &Stop,
) -> Result<Turn> {
    let mut running_effects: FuturesUnordered<BoxFuture<'_, RecordedEvent>> = FuturesUnordered::new();
    loop {
        let mut effects = run_state.run.take_effects();
        if let Some(Effect::Finish(end)) = effects.pop_if(|effect| matches!(effect, Effect::Finish(_))) {
            drop(running_effects);
            return segment::finish(executor, run_state, end).await;
        }
        let plans: Vec<EffectPlan> =
            effects.into_iter().map(|effect| plan_effect(executor, run_state, claimed_approval, effect)).collect();
        let sync = if plans.iter().any(EffectPlan::requires_sync) { JournalSync::Now } else { JournalSync::Deferred };
        let has_work = !running_effects.is_empty() || plans.iter().any(|plan| !matches!(plan, EffectPlan::Waiting));
        if sync == JournalSync::Now || (has_work && run_state.has_unwritten()) {
            run_state.write(executor.memory, executor.access, sync).await?;
        }
        let mut finished = Vec::new();
        for plan in plans {
            match plan {
                EffectPlan::CallModel(request, model_request) => {
                    running_effects.push(Box::pin(executor.call_model(request, *model_request)))
                }
                EffectPlan::CallTool(invocation) => running_effects.push(Box::pin(executor.call_tool(*invocation))),
                EffectPlan::RunActivity { request, activity, input, .. } => {
                    running_effects.push(Box::pin(executor.run_activity(request, activity, input)));
                }
                EffectPlan::Finished(recorded) => finished.push(*recorded),
                EffectPlan::Waiting => {}
            }
        }
        if !finished.is_empty() {
            finished.into_iter().for_each(|recorded| apply(executor, run_state, recorded));
            continue;
        }
        if running_effects.is_empty() {
            return segment::suspend(executor, run_state).await;
        }
        tokio::select! {
            biased;
            () = stop.wait() => run_state.stop(Failure::new("stopped", "the turn was stopped")),
            Some(recorded) = running_effects.next() => apply(executor, run_state, recorded),
            () = executor.memory.runtime().sleep(LEASE_RENEWAL_INTERVAL) => run_state.write(executor.memory, executor.access, JournalSync::Deferred).await?,
        }
    }
}

/// Applies the outcome of an effect to the run.
fn apply(executor: &EffectExecutor<'_>, run_state: &mut RunState, recorded: RecordedEvent) {
    if let Some(trace) = recorded.tool_trace() {
        if let Some(request) = recorded.request()
            && run_state.approval(request).is_some_and(|approval| approval.state == ApprovalState::Claimed)
        {
            let state = match (recorded.is_unknown, trace.ok) {
                (true, _) => ApprovalState::OutcomeUnknown,
                (false, true) => ApprovalState::Done,
                (false, false) => ApprovalState::Failed,
            };
            run_state.set_approval(request, state);
        }
        executor.emit(TurnEvent::ToolFinished(trace));
    }
    run_state.apply(recorded);
}
