//! Closing a run that nobody will drive on: its open approvals are void, its calls get a result, its journal goes.

use threadkeep_core::{DocumentName, DocumentState, PutDocument, Timestamp};
use threadkeep_graph::Failure;
use threadkeep_memory::{Memory, MemoryError};

use crate::ledger::{self, approval_document};
use crate::place::{Place, Versioned};
use crate::plan::not_made;
use crate::record::{self, KEPT_MS, Recorded, RunRecord, Stub};
use crate::segment::{note_draft, result_draft};
use crate::workshop::Workshop;
use crate::{ApprovalState, Result, TurnStatus};

/// Voids what earlier turns of the thread wait for.
pub(crate) async fn replace_earlier(workshop: &Workshop<'_>, turn: &str) -> Result<()> {
    let (memory, place) = (workshop.memory, workshop.place);
    for waiting in place.runs(memory).await?.waiting {
        if waiting.value.turn != turn {
            let name = record::waiting(&waiting.value.turn);
            close(memory, place, &name, &waiting, ApprovalState::Replaced, None).await?;
        }
    }
    Ok(())
}

/// Closes a run as it lies under `name`. Others who were first, by a decision or by closing it too, win.
pub(crate) async fn close(
    memory: &Memory,
    place: &Place,
    name: &DocumentName,
    run: &Versioned<RunRecord>,
    state: ApprovalState,
    failure: Option<Failure>,
) -> Result<()> {
    let record = &run.value;
    let mut batch = memory.batch().require(name.clone(), DocumentState::Version(run.version)).delete(name.clone());
    let mut drafts = Vec::new();
    let mut previews = Vec::new();
    for mut approval in place.approvals_of(memory, &record.turn).await? {
        let condition = DocumentState::Version(approval.version);
        let value = &mut approval.value;
        let closed = match value.state {
            ApprovalState::Pending => state,
            ApprovalState::Claimed => ApprovalState::OutcomeUnknown,
            _ => continue,
        };
        value.state = closed;
        if !value.is_question {
            drafts.push(result_draft(&record.turn, &value.call_id, &not_made(closed, None)));
        }
        previews.push(value.preview.clone());
        batch = batch.require(record::approval(&value.id), condition).put(approval_document(value, memory)?);
    }
    let failure = failure.unwrap_or_else(|| Failure::new(format!("approval_{}", code(state)), not_made(state, None)));
    drafts.push(note_draft(&record.turn, &words(&failure, &previews)));
    for number in 1..=record.entries {
        batch = batch.delete(record::entry(&record.turn, number));
    }
    let messages = record.messages + u16::try_from(drafts.len()).unwrap_or(u16::MAX);
    for (draft, number) in drafts.into_iter().zip(record.messages..) {
        let id = record::message_id(&record.turn, record.started_at, number);
        batch = batch.append(record.marked(draft).with_id(id));
    }
    // A journal that cannot be read must not keep the run from being closed.
    let recorded = place.journal(memory, &record.turn).await.unwrap_or_default();
    let stub = stub(record, &recorded, failure, messages, memory.now());
    let expires_at = Some(memory.now().plus_ms(KEPT_MS));
    batch = batch.put(PutDocument { name: record::stub(&record.turn), value: stub.to_json()?, expires_at });
    match batch.commit(&place.writer, place.thread).await {
        Err(error) if is_lost(&error) => Ok(()),
        result => Ok(result.map(|_| ())?),
    }
}

fn is_lost(error: &MemoryError) -> bool {
    record::is_about_runs(error) || record::is_about_approvals(error)
}

const fn code(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Expired => "expired",
        ApprovalState::Replaced => "replaced",
        _ => "closed",
    }
}

fn words(failure: &Failure, previews: &[String]) -> String {
    let previews: Vec<String> = previews.iter().map(|preview| format!("`{preview}`")).collect();
    match previews.is_empty() {
        true => failure.message.clone(),
        false => format!("{}: {}", previews.join(", "), failure.message),
    }
}

fn stub(record: &RunRecord, recorded: &[Recorded], failure: Failure, messages: u16, now: Timestamp) -> Stub {
    Stub {
        assistant: record.assistant.clone(),
        graph: record.graph.clone(),
        version: record.version,
        model: ledger::model(record, recorded),
        status: TurnStatus::Failed,
        error: Some(failure),
        confidence: None,
        usage: ledger::usage(record, recorded),
        context: record.context,
        messages,
        started_at: record.started_at,
        duration_ms: u64::try_from(now.as_millis() - record.started_at.as_millis()).unwrap_or(0),
    }
}
