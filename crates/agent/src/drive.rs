//! Driving a run: executes its effects, and writes each outcome to the journal before the next effect starts.

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use threadkeep_graph::{Effect, Failure};
use threadkeep_memory::turns::LEASE_RENEWAL_INTERVAL;

use crate::effect_plan::{EffectPlan, plan_effect};
use crate::executor::EffectExecutor;
use crate::record::RecordedEvent;
use crate::run_state::RunState;
use crate::segment;
use crate::{AgentError, ApprovalState, Result, Stop, Turn, TurnEvent};

/// Drives a run to its end, or until it waits for a person. `claimed_approval` is the id of the approval that the caller has
/// just stored as granted, whose call is to be made.
pub(crate) async fn drive(
    executor: &EffectExecutor<'_>,
    mut run_state: RunState,
    claimed: Option<&str>,
    stop: &Stop,
) -> Result<Turn> {
    let driven = match drive_on(executor, &mut run_state, claimed, stop).await {
        Err(error) if error.is_not_storable() => {
            let failure = Failure::new("not_storable", error.to_string());
            run_state.stop(failure.clone());
            segment::finish(executor, &mut run_state, Err(failure)).await
        }
        driven => driven,
    };
    match driven {
        Err(AgentError::Memory(error)) => {
            // The run remains as its journal has it; the next turn of the thread resumes it.
            let failure = Failure::new("store_failed", error.to_string());
            Ok(segment::unstored_turn(executor, &run_state, &failure))
        }
        result => result,
    }
}

async fn drive_on(
    executor: &EffectExecutor<'_>,
    run_state: &mut RunState,
    claimed: Option<&str>,
    stop: &Stop,
) -> Result<Turn> {
    let mut at_work: FuturesUnordered<BoxFuture<'_, RecordedEvent>> = FuturesUnordered::new();
    loop {
        let mut effects = run_state.run.take_effects();
        if let Some(Effect::Finish(end)) = effects.pop_if(|effect| matches!(effect, Effect::Finish(_))) {
            drop(at_work);
            return segment::finish(executor, run_state, end).await;
        }
        let plans: Vec<EffectPlan> =
            effects.into_iter().map(|effect| plan_effect(executor, run_state, claimed, effect)).collect();
        let is_urgent = plans.iter().any(EffectPlan::is_urgent);
        let has_work = !at_work.is_empty() || plans.iter().any(|plan| !matches!(plan, EffectPlan::Waiting));
        if is_urgent || (has_work && run_state.has_unwritten()) {
            run_state.write(executor.memory, executor.access, is_urgent).await?;
        }
        let mut finished = Vec::new();
        for plan in plans {
            match plan {
                EffectPlan::CallModel(request, ask) => at_work.push(Box::pin(executor.call_model(request, *ask))),
                EffectPlan::CallTool(invocation) => at_work.push(Box::pin(executor.call_tool(*invocation))),
                EffectPlan::RunActivity { request, activity, input, .. } => {
                    at_work.push(Box::pin(executor.run_activity(request, activity, input)));
                }
                EffectPlan::Finished(recorded) => finished.push(*recorded),
                EffectPlan::Waiting => {}
            }
        }
        if !finished.is_empty() {
            finished.into_iter().for_each(|recorded| apply(executor, run_state, recorded));
            continue;
        }
        if at_work.is_empty() {
            return segment::suspend(executor, run_state).await;
        }
        tokio::select! {
            biased;
            () = stop.wait() => run_state.stop(Failure::new("stopped", "the turn was stopped")),
            Some(recorded) = at_work.next() => apply(executor, run_state, recorded),
            () = executor.memory.runtime().sleep(LEASE_RENEWAL_INTERVAL) => run_state.write(executor.memory, executor.access, false).await?,
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
