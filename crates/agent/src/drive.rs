//! Driving a run: effects are carried out, outcomes are written down before the next effect begins.

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use threadkeep_graph::{Effect, Failure};
use threadkeep_memory::turns::SIGN_OF_LIFE;

use crate::ledger::Ledger;
use crate::plan::{Plan, plan};
use crate::record::Recorded;
use crate::segment;
use crate::workshop::Workshop;
use crate::{AgentError, ApprovalState, Result, Stop, Turn, TurnEvent};

/// Drives a run to its end, or until it waits for a person. `claimed` is the approval that was given just now.
pub(crate) async fn drive(
    workshop: &Workshop<'_>,
    mut ledger: Ledger,
    claimed: Option<&str>,
    stop: &Stop,
) -> Result<Turn> {
    let driven = match drive_on(workshop, &mut ledger, claimed, stop).await {
        Err(error) if error.is_not_storable() => {
            let failure = Failure::new("not_storable", error.to_string());
            ledger.stop(failure.clone());
            segment::finish(workshop, &mut ledger, Err(failure)).await
        }
        driven => driven,
    };
    match driven {
        Err(AgentError::Memory(error)) => {
            // The run stays as its journal has it, and goes on when somebody looks at the thread again.
            let failure = Failure::new("store_failed", error.to_string());
            Ok(segment::unstored(workshop, &ledger, &failure))
        }
        result => result,
    }
}

async fn drive_on(workshop: &Workshop<'_>, ledger: &mut Ledger, claimed: Option<&str>, stop: &Stop) -> Result<Turn> {
    let mut at_work: FuturesUnordered<BoxFuture<'_, Recorded>> = FuturesUnordered::new();
    loop {
        let mut effects = ledger.run.take_effects();
        if let Some(Effect::Finish(end)) = effects.pop_if(|effect| matches!(effect, Effect::Finish(_))) {
            drop(at_work);
            return segment::finish(workshop, ledger, end).await;
        }
        let plans: Vec<Plan> = effects.into_iter().map(|effect| plan(workshop, ledger, claimed, effect)).collect();
        let is_urgent = plans.iter().any(Plan::is_urgent);
        let goes_on = !at_work.is_empty() || plans.iter().any(|plan| !matches!(plan, Plan::Waits));
        if is_urgent || (goes_on && ledger.has_unwritten()) {
            ledger.write(workshop.memory, workshop.place, is_urgent).await?;
        }
        let mut known = Vec::new();
        for plan in plans {
            match plan {
                Plan::Ask(request, ask) => at_work.push(Box::pin(workshop.ask_model(request, *ask))),
                Plan::Call(admitted) => at_work.push(Box::pin(workshop.call_tool(*admitted))),
                Plan::Run { request, activity, input, .. } => {
                    at_work.push(Box::pin(workshop.run_activity(request, activity, input)));
                }
                Plan::Known(recorded) => known.push(*recorded),
                Plan::Waits => {}
            }
        }
        if !known.is_empty() {
            known.into_iter().for_each(|recorded| take(workshop, ledger, recorded));
            continue;
        }
        if at_work.is_empty() {
            return segment::put_away(workshop, ledger).await;
        }
        tokio::select! {
            biased;
            () = stop.wait() => ledger.stop(Failure::new("stopped", "it was stopped")),
            Some(recorded) = at_work.next() => take(workshop, ledger, recorded),
            () = workshop.memory.runtime().sleep(SIGN_OF_LIFE) => ledger.write(workshop.memory, workshop.place, false).await?,
        }
    }
}

/// Takes what came of an effect.
fn take(workshop: &Workshop<'_>, ledger: &mut Ledger, recorded: Recorded) {
    if let Some(trace) = recorded.tool_trace() {
        if let Some(request) = recorded.request()
            && ledger.approval(request).is_some_and(|approval| approval.state == ApprovalState::Claimed)
        {
            let state = match (recorded.is_unknown, trace.ok) {
                (true, _) => ApprovalState::OutcomeUnknown,
                (false, true) => ApprovalState::Done,
                (false, false) => ApprovalState::Failed,
            };
            ledger.set_approval(request, state);
        }
        workshop.tell(TurnEvent::ToolFinished(trace));
    }
    ledger.take(recorded);
}
