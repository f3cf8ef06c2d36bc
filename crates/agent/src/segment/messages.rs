//! The messages that are added to the conversation at the end of a segment.

use threadkeep_core::{ChatMessage, Content, JsonText, Map, Part, Role, Value, limits};
use threadkeep_graph::{Event, Failure, Outcome, Output};
use threadkeep_memory::Draft;
use threadkeep_memory::turns::{approval_notice_draft, error_result_draft, metadata, notice_draft};

use crate::bounded::{bound_name, limit_text, storable, storable_call, storable_source};
use crate::executor::EffectExecutor;
use crate::record::RecordedEvent;
use crate::run_state::{RunState, model_answers};
use crate::{Approval, ApprovalState};

/// Returns the messages of a completed turn, the reply last.
pub(super) fn answer_drafts(run_state: &RunState, output: &Output) -> Vec<Draft> {
    let mut drafts = new_messages(run_state);
    let is_reply = |draft: &Draft| {
        let content = &draft.content;
        let has_calls = content.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        content.role == Role::Assistant && !has_calls && content.plain_text() == output.reply.as_str()
    };
    if !drafts.last().is_some_and(is_reply) {
        drafts.extend(close_calls(run_state, "not done: the turn ended first"));
        drafts.push(notice_draft(&run_state.record.turn, &output.reply));
    }
    if let Some(last) = drafts.last_mut() {
        let content = &mut last.content;
        content.agent.clone_from(&output.agent);
        content.data.clone_from(&output.data);
        content.sources = output.sources.iter().take(limits::SOURCES).map(storable_source).collect();
    }
    drafts
}

/// Returns the messages of a failed turn: those before the failure, an error result for each unfinished call, and a reply for the
/// user.
pub(super) fn failure_drafts(executor: &EffectExecutor<'_>, run_state: &RunState, failure: &Failure) -> Vec<Draft> {
    let mut drafts = new_messages(run_state);
    drafts.extend(close_calls(run_state, &format!("not done: {}", failure.message)));
    drafts.push(failure_draft(executor, run_state, failure));
    drafts
}

/// Like [`failure_drafts`], but only with the reply for the user; empty if the run did not fail.
pub(super) fn only_failure_draft<T>(
    executor: &EffectExecutor<'_>,
    run_state: &RunState,
    end: &Result<T, Failure>,
) -> Vec<Draft> {
    end.as_ref().err().map(|failure| failure_draft(executor, run_state, failure)).into_iter().collect()
}

/// Returns the messages of a turn that is waiting for approval, and its reply for the user.
pub(super) fn waiting_drafts(executor: &EffectExecutor<'_>, run_state: &RunState) -> (Vec<Draft>, String) {
    let mut drafts = new_messages(run_state);
    let pending = run_state.approvals.iter().map(|approval| &approval.value);
    let pending: Vec<&Approval> = pending.filter(|approval| approval.state == ApprovalState::Pending).collect();
    let previews: Vec<&str> = pending.iter().map(|approval| approval.preview.as_str()).collect();
    let reply = executor.assistant.approval_reply(&previews);
    let ids = pending.iter().map(|approval| approval.id.as_str());
    drafts.push(approval_notice_draft(&run_state.record.turn, &reply, ids));
    (drafts, reply)
}

/// Returns the message that records a decision in the conversation.
pub(crate) fn decision_draft(approval: &Approval) -> Draft {
    let verb = if approval.state == ApprovalState::Claimed { "Approved" } else { "Denied" };
    let changed = approval.changed.as_ref().map(|changed| format!(" with {changed}")).unwrap_or_default();
    let reason = approval.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let text = format!("{verb}: {}{changed}{reason}", approval.preview);
    let mut draft = Draft::new(Content::text(Role::User, limit_text(&text)));
    draft.content.author = approval.by.as_deref().map(bound_name);
    draft.content.metadata = metadata(&approval.turn);
    draft.content.metadata.insert("approval".to_owned(), Value::String(approval.id.clone()));
    draft
}

fn failure_draft(executor: &EffectExecutor<'_>, run_state: &RunState, failure: &Failure) -> Draft {
    let mut draft = notice_draft(&run_state.record.turn, &executor.assistant.failure_reply(failure));
    draft.content.metadata.insert("error".to_owned(), Value::String(failure.code.clone()));
    draft
}

/// Returns the run's messages that are not in the thread yet.
fn new_messages(run_state: &RunState) -> Vec<Draft> {
    let new = run_state.run.messages().get(run_state.record.run_messages..).unwrap_or_default();
    new.iter().map(|message| create_draft(run_state, message)).collect()
}

fn create_draft(run_state: &RunState, message: &ChatMessage) -> Draft {
    let mut content = Content::empty(message.role);
    content.parts = storable(message);
    content.metadata = metadata(&run_state.record.turn);
    if let Some(result) = message.tool_results().next()
        && let Some(recorded) = run_state.result_of(&result.call_id)
    {
        describe_result(&mut content, recorded);
    }
    let answer = model_answers(&run_state.recorded).find(|answer| answer.parts == message.parts);
    content.usage = answer.and_then(|answer| answer.usage.clone());
    if let Some(usage) = &mut content.usage {
        usage.cost_usd = usage.cost_usd.filter(|cost| cost.is_finite());
    }
    Draft::new(content)
}

/// Adds details of a tool call to its result message: duration, arguments, value, and the full text if it was truncated.
fn describe_result(content: &mut Content, recorded: &RecordedEvent) {
    let Some(outcome) = recorded.tool_outcome() else { return };
    content.metadata.insert("duration_ms".to_owned(), recorded.duration_ms.into());
    if recorded.cached {
        content.metadata.insert("cached".to_owned(), true.into());
    }
    let mut data = Map::new();
    if let Some(value) = outcome.value.as_ref().and_then(|value| value.read().ok()) {
        data.insert("value".to_owned(), value);
    }
    if let Some(full_result) = &recorded.full_result {
        data.insert("whole".to_owned(), Value::String(full_result.clone()));
    }
    if let Some(call) = &recorded.call {
        let arguments = storable_call(call).arguments;
        data.insert("arguments".to_owned(), arguments.read().unwrap_or_default());
    }
    content.data = Some(JsonText::from(&Value::Object(data)));
}

/// Returns a result for each call of this turn that has none, because models reject calls without results.
fn close_calls(run_state: &RunState, reason: &str) -> Vec<Draft> {
    let messages = run_state.run.messages();
    let has_result = |id: &str| messages.iter().flat_map(ChatMessage::tool_results).any(|result| result.call_id == id);
    let calls = messages.iter().flat_map(ChatMessage::tool_calls).filter(|call| !has_result(&call.id));
    let close = |call: &threadkeep_core::ToolCall| match run_state.result_of(&call.id) {
        Some(RecordedEvent { event: Event::Finished { outcome: Outcome::Tool(outcome), .. }, .. }) => {
            create_draft(run_state, &crate::result_message(outcome.clone()))
        }
        _ => error_result_draft(&run_state.record.turn, &storable_call(call).id, reason),
    };
    calls.map(close).collect()
}
