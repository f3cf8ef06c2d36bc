//! The messages that a segment adds to the conversation.

use threadkeep_core::{ChatMessage, Content, JsonText, Map, Part, Role, Value, limits};
use threadkeep_graph::{Event, Failure, Outcome, Output};
use threadkeep_memory::Draft;
use threadkeep_memory::turns::{metadata, note_draft, result_draft};

use crate::bounded::{bound_name, bound_text, storable, storable_call, storable_source};
use crate::ledger::{Ledger, answers};
use crate::record::Recorded;
use crate::workshop::Workshop;
use crate::{Approval, ApprovalState};

/// What an answered turn adds: what the run made, the answer last.
pub(super) fn answered(ledger: &Ledger, output: &Output) -> Vec<Draft> {
    let mut drafts = said(ledger);
    let is_reply = |draft: &Draft| {
        let content = &draft.content;
        let calls = content.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        content.role == Role::Assistant && !calls && content.plain_text() == output.reply.as_str()
    };
    if !drafts.last().is_some_and(is_reply) {
        drafts.extend(close_calls(ledger, "not done: the turn was over before"));
        drafts.push(note_draft(&ledger.record.turn, &output.reply));
    }
    if let Some(last) = drafts.last_mut() {
        let content = &mut last.content;
        content.agent.clone_from(&output.agent);
        content.data.clone_from(&output.data);
        content.sources = output.sources.iter().take(limits::SOURCES).map(storable_source).collect();
    }
    drafts
}

/// What a failed turn adds: what was done until then, each call with a result, and words for the user.
pub(super) fn failed(workshop: &Workshop<'_>, ledger: &Ledger, failure: &Failure) -> Vec<Draft> {
    let mut drafts = said(ledger);
    drafts.extend(close_calls(ledger, &format!("not done: {}", failure.message)));
    drafts.push(failure_draft(workshop, ledger, failure));
    drafts
}

/// As [`failed`], without anything of the run's own making.
pub(super) fn only_failure<T>(workshop: &Workshop<'_>, ledger: &Ledger, end: &Result<T, Failure>) -> Vec<Draft> {
    end.as_ref().err().map(|failure| failure_draft(workshop, ledger, failure)).into_iter().collect()
}

/// What a turn adds before it waits, and what the user reads.
pub(super) fn waiting(workshop: &Workshop<'_>, ledger: &Ledger) -> (Vec<Draft>, String) {
    let mut drafts = said(ledger);
    let pending = ledger.approvals.iter().map(|approval| &approval.value);
    let pending: Vec<&Approval> = pending.filter(|approval| approval.state == ApprovalState::Pending).collect();
    let previews: Vec<&str> = pending.iter().map(|approval| approval.preview.as_str()).collect();
    let reply = workshop.assistant.approval_reply(&previews);
    let mut draft = note_draft(&ledger.record.turn, &reply);
    let ids = pending.iter().map(|approval| Value::String(approval.id.clone())).collect();
    draft.content.metadata.insert("approvals".to_owned(), Value::Array(ids));
    drafts.push(draft);
    (drafts, reply)
}

/// What a person decided, as the conversation has it.
pub(crate) fn decision_draft(approval: &Approval) -> Draft {
    let verb = if approval.state == ApprovalState::Claimed { "Approved" } else { "Denied" };
    let changed = approval.changed.as_ref().map(|changed| format!(" with {changed}")).unwrap_or_default();
    let reason = approval.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let text = format!("{verb}: {}{changed}{reason}", approval.preview);
    let mut draft = Draft::new(Content::text(Role::User, bound_text(&text)));
    draft.content.author = approval.by.as_deref().map(bound_name);
    draft.content.metadata = metadata(&approval.turn);
    draft.content.metadata.insert("approval".to_owned(), Value::String(approval.id.clone()));
    draft
}

fn failure_draft(workshop: &Workshop<'_>, ledger: &Ledger, failure: &Failure) -> Draft {
    let mut draft = note_draft(&ledger.record.turn, &workshop.assistant.failure_reply(failure));
    draft.content.metadata.insert("error".to_owned(), Value::String(failure.code.clone()));
    draft
}

/// What the run made that is not in the thread yet.
fn said(ledger: &Ledger) -> Vec<Draft> {
    let new = ledger.run.said().get(ledger.record.said..).unwrap_or_default();
    new.iter().map(|message| draft(ledger, message)).collect()
}

fn draft(ledger: &Ledger, message: &ChatMessage) -> Draft {
    let mut content = Content::empty(message.role);
    content.parts = storable(message);
    content.metadata = metadata(&ledger.record.turn);
    if let Some(result) = message.tool_results().next()
        && let Some(recorded) = ledger.result_of(&result.call_id)
    {
        describe_result(&mut content, recorded);
    }
    let made = answers(&ledger.recorded).find(|answer| answer.parts == message.parts);
    content.usage = made.and_then(|answer| answer.usage.clone());
    if let Some(usage) = &mut content.usage {
        usage.cost_usd = usage.cost_usd.filter(|cost| cost.is_finite());
    }
    Draft::new(content)
}

/// What is kept beside a result: how it came about, and all of it where the model read a part.
fn describe_result(content: &mut Content, recorded: &Recorded) {
    let Some(outcome) = recorded.tool_outcome() else { return };
    content.metadata.insert("duration_ms".to_owned(), recorded.duration_ms.into());
    if recorded.cached {
        content.metadata.insert("cached".to_owned(), true.into());
    }
    let mut data = Map::new();
    if let Some(value) = outcome.value.as_ref().and_then(|value| value.read().ok()) {
        data.insert("value".to_owned(), value);
    }
    if let Some(whole) = &recorded.whole {
        data.insert("whole".to_owned(), Value::String(whole.clone()));
    }
    if let Some(call) = &recorded.call {
        let arguments = storable_call(call).arguments;
        data.insert("arguments".to_owned(), arguments.read().unwrap_or_default());
    }
    content.data = Some(JsonText::from(&Value::Object(data)));
}

/// A result for each call of this turn that has none in the conversation: no model takes a call without one.
fn close_calls(ledger: &Ledger, why: &str) -> Vec<Draft> {
    let said = ledger.run.said();
    let has_result = |id: &str| said.iter().flat_map(ChatMessage::tool_results).any(|result| result.call_id == id);
    let calls = said.iter().flat_map(ChatMessage::tool_calls).filter(|call| !has_result(&call.id));
    let close = |call: &threadkeep_core::ToolCall| match ledger.result_of(&call.id) {
        Some(Recorded { event: Event::Finished { outcome: Outcome::Tool(outcome), .. }, .. }) => {
            draft(ledger, &crate::result_message(outcome.clone()))
        }
        _ => result_draft(&ledger.record.turn, &storable_call(call).id, why),
    };
    calls.map(close).collect()
}
