//! The end of a segment: all that a run made since the last one enters the conversation by one commit.

mod messages;

use threadkeep_core::{JsonText, PutDocument};
use threadkeep_graph::{Failure, Output};
use threadkeep_memory::turns::{close, lease_until, lock};
use threadkeep_memory::{BatchBuilder, Draft};

use crate::ledger::Ledger;
use crate::record::{self, KEPT_MS, Stub};
use crate::workshop::Workshop;
use crate::{Approval, ApprovalState, EarlierRequests, Result, StoredMessage, Turn, TurnEvent, TurnStatus};

pub(crate) use messages::decision_draft;

/// Ends a run.
pub(crate) async fn finish(workshop: &Workshop<'_>, ledger: &mut Ledger, end: Result<Output, Failure>) -> Result<Turn> {
    void_what_is_open(ledger);
    let drafts = match &end {
        Ok(output) => messages::answered(ledger, output),
        Err(failure) => messages::failed(workshop, ledger, failure),
    };
    match commit_end(workshop, ledger, &end, drafts).await {
        // What no store keeps must not leave the conversation without an end.
        Err(error) if error.is_not_storable() => {
            let end = Err(Failure::new("not_storable", error.to_string()));
            let drafts = messages::only_failure(workshop, ledger, &end);
            commit_end(workshop, ledger, &end, drafts).await
        }
        result => result,
    }
}

/// Puts a run away that waits for a person. The thread is free then.
pub(crate) async fn put_away(workshop: &Workshop<'_>, ledger: &mut Ledger) -> Result<Turn> {
    let requested: Vec<_> = ledger.requested.iter().map(Approval::trace).collect();
    if ledger.ask_for_approvals() && workshop.definition().approvals.earlier == EarlierRequests::Replace {
        replace_earlier(workshop, &ledger.record.turn).await?;
    }
    let (drafts, reply) = messages::waiting(workshop, ledger);
    keep_numbers(workshop, ledger).await;
    ledger.record.said = ledger.run.said().len();
    ledger.record.worked_ms = worked_ms(workshop, ledger);
    ledger.record.lease_until = lease_until(workshop.memory);
    let batch = lock::let_go(ledger.fenced(workshop.memory.batch()));
    let batch = ledger.journal(batch)?;
    let batch = ledger.put_approvals(batch, workshop.memory)?;
    let batch = ledger.append(batch, &drafts);
    let name = record::waiting(&ledger.record.turn);
    let batch = batch.put(PutDocument { name, value: JsonText::of(&ledger.record)?, expires_at: None });
    commit(workshop, ledger, batch, &drafts).await?;
    for approval in requested {
        workshop.tell(TurnEvent::ApprovalRequested(approval));
    }
    let turn = turn(workshop, ledger, TurnStatus::WaitingForApproval, reply, None, &Output::default());
    let turn = Turn { duration_ms: ledger.record.worked_ms, ..turn };
    workshop.tell(TurnEvent::ended(&turn));
    Ok(turn)
}

/// Voids what earlier turns of the thread wait for.
async fn replace_earlier(workshop: &Workshop<'_>, turn: &str) -> Result<()> {
    let (memory, place) = (workshop.memory, workshop.place);
    for waiting in place.runs(memory).await?.waiting {
        if waiting.value.turn != turn {
            let name = record::waiting(&waiting.value.turn);
            close(memory, place, &name, &waiting, ApprovalState::Replaced, None).await?;
        }
    }
    Ok(())
}

/// The turn whose end could not be stored.
pub(crate) fn unstored(workshop: &Workshop<'_>, ledger: &Ledger, failure: &Failure) -> Turn {
    let reply = workshop.assistant.failure_reply(failure);
    let error = Some(failure.clone());
    let turn = turn(workshop, ledger, TurnStatus::Failed, reply, error, &Output::default());
    workshop.tell(TurnEvent::ended(&turn));
    turn
}

/// A run that is over needs no leave, and a call that was under way when it was stopped may have been made.
fn void_what_is_open(ledger: &mut Ledger) {
    let open: Vec<_> = ledger.approvals.iter().map(|approval| (approval.value.request, approval.value.state)).collect();
    for (request, state) in open {
        let request = threadkeep_graph::RequestId(request);
        match state {
            ApprovalState::Pending => ledger.set_approval(request, ApprovalState::Replaced),
            ApprovalState::Claimed => ledger.set_approval(request, ApprovalState::OutcomeUnknown),
            _ => {}
        }
    }
    // What nobody has seen needs no ending either.
    ledger.requested.clear();
    ledger.approvals.retain(|approval| approval.version.number > 0);
}

async fn commit_end(
    workshop: &Workshop<'_>,
    ledger: &mut Ledger,
    end: &Result<Output, Failure>,
    drafts: Vec<Draft>,
) -> Result<Turn> {
    keep_numbers(workshop, ledger).await;
    let output = end.as_ref().ok().cloned().unwrap_or_default();
    let (status, error) = match end {
        Ok(_) => (TurnStatus::Completed, None),
        Err(failure) => (TurnStatus::Failed, Some(failure.clone())),
    };
    let reply = drafts.last().map(|draft| draft.content.plain_text().into_owned()).unwrap_or_default();
    let mut batch = lock::let_go(ledger.fenced(workshop.memory.batch()));
    for number in 1..=ledger.record.entries {
        batch = batch.delete(record::entry(&ledger.record.turn, number));
    }
    batch = ledger.put_approvals(batch, workshop.memory)?;
    let messages = ledger.record.messages;
    batch = ledger.append(batch, &drafts);
    let mut turn = turn(workshop, ledger, status, reply, error, &output);
    let stub = PutDocument {
        name: record::stub(&turn.turn),
        value: stub(ledger, &turn).to_json()?,
        expires_at: Some(workshop.now().plus_ms(KEPT_MS)),
    };
    batch = batch.put(stub);
    if let Some(report) = &workshop.contexts.lock().await.report {
        batch = batch.put(workshop.memory.report_document(&turn.turn, report)?);
    }
    let committed = commit(workshop, ledger, batch, &drafts).await;
    if committed.is_err() {
        ledger.record.messages = messages;
    }
    committed?;
    turn.stored.clone_from(&ledger.stored);
    workshop.tell(TurnEvent::ended(&turn));
    Ok(turn)
}

async fn commit(workshop: &Workshop<'_>, ledger: &mut Ledger, batch: BatchBuilder, drafts: &[Draft]) -> Result<()> {
    let appended = ledger.commit(batch, workshop.place).await?;
    let roles = drafts.iter().map(|draft| draft.content.role);
    let stored = appended.messages.iter().zip(roles).map(|(placed, role)| StoredMessage { seq: placed.seq, role });
    ledger.stored.extend(stored);
    Ok(())
}

/// Notes what the model saw, for a turn whose end is told by another driver.
async fn keep_numbers(workshop: &Workshop<'_>, ledger: &mut Ledger) {
    let contexts = workshop.contexts.lock().await;
    if contexts.report.is_some() {
        ledger.record.context = contexts.numbers;
    }
}

fn turn(
    workshop: &Workshop<'_>,
    ledger: &Ledger,
    status: TurnStatus,
    reply: String,
    error: Option<Failure>,
    output: &Output,
) -> Turn {
    let record = &ledger.record;
    Turn {
        thread: workshop.place.thread,
        turn: record.turn.clone(),
        agent: record.assistant.clone(),
        routed_agent: output.agent.clone(),
        confidence: output.confidence,
        model: ledger.model(),
        status,
        reply,
        error,
        tool_calls: ledger.tool_calls(),
        approvals: ledger.approvals.iter().map(|approval| approval.value.trace()).collect(),
        sources: output.sources.clone(),
        usage: ledger.usage(),
        context: record.context,
        data: output.data.clone(),
        stored: ledger.stored.clone(),
        started_at: record.started_at,
        duration_ms: worked_ms(workshop, ledger),
    }
}

fn worked_ms(workshop: &Workshop<'_>, ledger: &Ledger) -> u64 {
    let worked_ms = workshop.now().as_millis() - ledger.record.started_at.as_millis();
    u64::try_from(worked_ms).unwrap_or(0)
}

fn stub(ledger: &Ledger, turn: &Turn) -> Stub {
    let record = &ledger.record;
    Stub {
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
