//! Checks that every result of a tool call has its call. Model providers reject a result without one.

use std::collections::HashSet;

use threadkeep::core::ChatMessage;
use threadkeep::core::limits::PAGE;
use threadkeep::{Bound, Draft, MessageQuery, Part, Scope, ThreadId};

use crate::app::App;
use crate::error::ApiError;

/// The maximum number of pages of a thread that are searched for a call.
const MAX_PAGES: usize = 3;

/// Checks that the call of each result in the input is either before it in the input or in the context.
///
/// # Errors
/// `tool_call_not_found` with the parameter `param`.
pub(super) fn check(input: &[Draft], context: &[ChatMessage], param: &'static str) -> Result<(), ApiError> {
    match find_without_calls(input, context).into_iter().next() {
        Some(id) => Err(not_found(&id, param)),
        None => Ok(()),
    }
}

/// Like [`check`], but the call can also be anywhere in the thread; the context contains only its latest messages. A result is
/// also accepted if its call may have been in the part of the thread that was trimmed.
///
/// # Errors
/// `tool_call_not_found` with the parameter `param`; errors from the store.
pub(super) async fn check_in_thread(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    input: &[Draft],
    context: &[ChatMessage],
    param: &'static str,
) -> Result<(), ApiError> {
    let mut missing = find_without_calls(input, context);
    let (mut query, mut pages) = (MessageQuery::newest(PAGE), 0);
    while !missing.is_empty() {
        let page = app.memory().messages(scope, thread, &query).await?;
        pages += 1;
        let parts = page.messages.iter().flat_map(|message| &message.content.parts);
        let calls: HashSet<&str> = parts.filter_map(call_id).collect();
        missing.retain(|id| !calls.contains(id.as_str()));
        let first = page.messages.first().map(|message| message.seq);
        match (missing.first(), first) {
            (None, _) => break,
            (Some(_), Some(first)) if page.more && pages < MAX_PAGES => query.before = Some(Bound::Seq(first)),
            (Some(id), _) => {
                let is_fully_searched = !page.more && page.positions.first_seq <= 1;
                return if is_fully_searched { Err(not_found(id, param)) } else { Ok(()) };
            }
        }
    }
    Ok(())
}

/// Returns the ids of results whose calls are neither before them in the input nor in the context.
fn find_without_calls(input: &[Draft], context: &[ChatMessage]) -> Vec<String> {
    let mut calls: HashSet<&str> = context.iter().flat_map(|message| &message.parts).filter_map(call_id).collect();
    let mut missing = Vec::new();
    for part in input.iter().flat_map(|draft| &draft.content.parts) {
        calls.extend(call_id(part));
        if let Part::ToolResult(result) = part
            && !calls.contains(result.call_id.as_str())
        {
            missing.push(result.call_id.clone());
        }
    }
    missing
}

fn call_id(part: &Part) -> Option<&str> {
    if let Part::ToolCall(call) = part { Some(&call.id) } else { None }
}

fn not_found(id: &str, param: &'static str) -> ApiError {
    let id: String = id.chars().take(100).collect();
    let message = format!("Invalid '{param}': there is no tool call with the id '{id}' before its output.");
    ApiError::invalid(param, message).code("tool_call_not_found")
}
