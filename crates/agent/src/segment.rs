//! Ends a segment, the part of a run between a start and its end or suspension: one commit adds the run's new messages to the
//! conversation.

mod messages;

use threadkeep_core::{JsonText, PutRecord};
use threadkeep_graph::{Failure, Output};
use threadkeep_memory::turns::{close, lease_until, lock};
use threadkeep_memory::{BatchBuilder, Draft, Memory};

use crate::executor::EffectExecutor;
use crate::record::{self, RunRecord, TURN_RETENTION_MS, TurnRecord};
use crate::run_state::RunState;
use crate::{Approval, ApprovalState, EarlierRequests, Result, StoredMessage, Turn, TurnEvent, TurnStatus};

pub(crate) use messages::decision_draft;

/// Begins a commit of a turn that appends messages. While a turn waits for approval, the retention policy does not trim its thread.
pub(crate) fn begin_batch(memory: &Memory, record: &RunRecord) -> BatchBuilder {
    let batch = memory.batch();
    if record.skips_trimming { batch.skip_trimming() } else { batch }
}

/// Ends a run: stores its reply or failure, and its turn record.
pub(crate) async fn finish(
    executor: &EffectExecutor<'_>,
    run_state: &mut RunState,
    end: Result<Output, Failure>,
) -> Result<Turn> {
    close_open_approvals(run_state);
    let drafts = match &end {
        Ok(output) => messages::answer_drafts(run_state, output),
        Err(failure) => messages::failure_drafts(executor, run_state, failure),
    };
    match commit_end(executor, run_state, &end, drafts).await {
        // If the store rejects the messages, the turn ends with only a failure message.
        Err(error) if error.is_not_storable() => {
            let end = Err(Failure::new("not_storable", error.to_string()));
            let drafts = messages::only_failure_draft(executor, run_state, &end);
            commit_end(executor, run_state, &end, drafts).await
        }
        result => result,
    }
}

/// Suspends a run that is waiting for a person's decision, and releases the thread's lock.
pub(crate) async fn suspend(executor: &EffectExecutor<'_>, run_state: &mut RunState) -> Result<Turn> {
    let requested: Vec<_> = run_state.requested.iter().map(Approval::trace).collect();
    if run_state.take_requested_approvals()
        && executor.definition().approvals.earlier_requests == EarlierRequests::Replace
    {
        replace_earlier(executor, &run_state.record.turn).await?;
    }
    let (drafts, reply) = messages::waiting_drafts(executor, run_state);
    let question = run_state.record.pending_question.clone();
    let drafts = run_state.add_pending_question(drafts, true);
    store_context_size(executor, run_state).await;
    run_state.record.run_messages = run_state.run.messages().len();
    run_state.record.active_ms = elapsed_ms(executor, run_state);
    run_state.record.lease_until = lease_until(executor.memory);
    let batch = lock::release(run_state.require_lock(begin_batch(executor.memory, &run_state.record)));
    let batch = run_state.add_to_journal(batch)?;
    let batch = run_state.put_approvals(batch, executor.memory)?;
    let batch = run_state.append(batch, &drafts);
    let name = record::waiting_name(&run_state.record.turn);
    let batch = batch.put(PutRecord { name, value: JsonText::of(&run_state.record)?, expires_at: None });
    if let Err(error) = commit(executor, run_state, batch, &drafts).await {
        run_state.record.pending_question = question;
        return Err(error);
    }
    for approval in requested {
        executor.emit(TurnEvent::ApprovalRequested(approval));
    }
    let turn = build_turn(executor, run_state, TurnStatus::WaitingForApproval, reply, None, &Output::default());
    let turn = Turn { duration_ms: run_state.record.active_ms, ..turn };
    executor.emit(TurnEvent::of_ended_turn(&turn));
    Ok(turn)
}

/// Closes the waiting runs of earlier turns in the thread, and marks their approvals as void.
async fn replace_earlier(executor: &EffectExecutor<'_>, turn: &str) -> Result<()> {
    let (memory, access) = (executor.memory, executor.access);
    for waiting in access.runs(memory).await?.waiting {
        if waiting.value.turn != turn {
            let name = record::waiting_name(&waiting.value.turn);
            close(memory, access, &name, &waiting, ApprovalState::Void, None).await?;
        }
    }
    Ok(())
}

/// Returns a failed turn whose end could not be stored.
pub(crate) fn unstored_turn(executor: &EffectExecutor<'_>, run_state: &RunState, failure: &Failure) -> Turn {
    let reply = executor.assistant.failure_reply(failure);
    let error = Some(failure.clone());
    let turn = build_turn(executor, run_state, TurnStatus::Failed, reply, error, &Output::default());
    executor.emit(TurnEvent::of_ended_turn(&turn));
    turn
}

/// Closes the open approvals of a run that is ending. The outcome of an approved call that was still running is unknown.
fn close_open_approvals(run_state: &mut RunState) {
    let open: Vec<_> =
        run_state.approvals.iter().map(|approval| (approval.value.request, approval.value.state)).collect();
    for (request, state) in open {
        let request = threadkeep_graph::RequestId(request);
        match state {
            ApprovalState::Pending => run_state.set_approval(request, ApprovalState::Void),
            ApprovalState::Claimed => run_state.set_approval(request, ApprovalState::OutcomeUnknown),
            _ => {}
        }
    }
    // Approvals that were never stored do not have to be closed.
    run_state.requested.clear();
    run_state.approvals.retain(|approval| approval.version.number > 0);
}

async fn commit_end(
    executor: &EffectExecutor<'_>,
    run_state: &mut RunState,
    end: &Result<Output, Failure>,
    drafts: Vec<Draft>,
) -> Result<Turn> {
    store_context_size(executor, run_state).await;
    let output = end.as_ref().ok().cloned().unwrap_or_default();
    let (status, error) = match end {
        Ok(_) => (TurnStatus::Completed, None),
        Err(failure) => (TurnStatus::Failed, Some(failure.clone())),
    };
    let reply = drafts.last().map(|draft| draft.content.plain_text().into_owned()).unwrap_or_default();
    let question = run_state.record.pending_question.clone();
    let drafts = run_state.add_pending_question(drafts, end.is_ok());
    let mut batch = lock::release(run_state.require_lock(begin_batch(executor.memory, &run_state.record)));
    for number in 1..=run_state.record.entries {
        batch = batch.delete(record::entry_name(&run_state.record.turn, number));
    }
    batch = run_state.put_approvals(batch, executor.memory)?;
    let messages = run_state.record.messages;
    batch = run_state.append(batch, &drafts);
    let mut turn = build_turn(executor, run_state, status, reply, error, &output);
    let turn_record = PutRecord {
        name: record::turn_record_name(&turn.turn),
        value: build_turn_record(run_state, &turn).to_json()?,
        expires_at: Some(executor.now().plus_ms(TURN_RETENTION_MS)),
    };
    batch = batch.put(turn_record);
    if let Some(report) = &executor.contexts.lock().await.report {
        batch = batch.put(executor.memory.report_record(&turn.turn, report)?);
    }
    let committed = commit(executor, run_state, batch, &drafts).await;
    if committed.is_err() {
        run_state.record.messages = messages;
        run_state.record.pending_question = question;
    }
    committed?;
    turn.stored.clone_from(&run_state.stored);
    executor.emit(TurnEvent::of_ended_turn(&turn));
    Ok(turn)
}

async fn commit(
    executor: &EffectExecutor<'_>,
    run_state: &mut RunState,
    batch: BatchBuilder,
    drafts: &[Draft],
) -> Result<()> {
    let appended = run_state.commit(batch, executor.access).await?;
    let roles = drafts.iter().map(|draft| draft.content.role);
    let stored = appended.messages.iter().zip(roles).map(|(message, role)| StoredMessage { seq: message.seq, role });
    run_state.stored.extend(stored);
    Ok(())
}

/// Copies the size of the context to the run record, so that it is stored even if another driver ends the turn.
async fn store_context_size(executor: &EffectExecutor<'_>, run_state: &mut RunState) {
    let contexts = executor.contexts.lock().await;
    if contexts.report.is_some() {
        run_state.record.context = contexts.size;
    }
}

fn build_turn(
    executor: &EffectExecutor<'_>,
    run_state: &RunState,
    status: TurnStatus,
    reply: String,
    error: Option<Failure>,
    output: &Output,
) -> Turn {
    let record = &run_state.record;
    Turn {
        thread: executor.access.thread,
        turn: record.turn.clone(),
        agent: record.assistant.clone(),
        routed_agent: output.agent.clone(),
        confidence: output.confidence,
        model: run_state.model(),
        status,
        reply,
        error,
        tool_calls: run_state.tool_calls(),
        approvals: run_state.approvals.iter().map(|approval| approval.value.trace()).collect(),
        sources: output.sources.clone(),
        usage: run_state.usage(),
        context: record.context,
        data: output.data.clone(),
        stored: run_state.stored.clone(),
        started_at: record.started_at,
        duration_ms: elapsed_ms(executor, run_state),
    }
}

fn elapsed_ms(executor: &EffectExecutor<'_>, run_state: &RunState) -> u64 {
    let millis = executor.now().as_millis() - run_state.record.started_at.as_millis();
    u64::try_from(millis).unwrap_or(0)
}

fn build_turn_record(run_state: &RunState, turn: &Turn) -> TurnRecord {
    let record = &run_state.record;
    TurnRecord {
        assistant: turn.agent.clone(),
        graph: record.graph.clone(),
        version: record.version,
        model: turn.model.clone(),
        status: turn.status,
        error: turn.error.clone(),
        confidence: turn.confidence,
        usage: turn.usage,
        context: turn.context,
        messages: record.messages,
        started_at: turn.started_at,
        duration_ms: turn.duration_ms,
    }
}
