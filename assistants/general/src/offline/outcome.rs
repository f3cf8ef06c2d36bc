//! Answers "Did it work?" from the last tool call in the conversation.

use threadkeep::context::WAITING;
use threadkeep::{ChatMessage, ToolCall, ToolResult, Value};

use crate::erase_tools::FIND;

/// Answers a question about the outcome of the last call. Returns `None` if there was no call.
pub(super) fn describe_outcome(earlier: &[ChatMessage]) -> Option<String> {
    let (call, result) = last_exchange(earlier)?;
    // The list of messages to erase was only shown.
    if call.name == FIND && !result.is_error {
        let found: Value = serde_json::from_str(&result.output).unwrap_or_default();
        let is_empty = found["messages"].as_array().is_none_or(Vec::is_empty) && found["preferences"].is_null();
        return Some(match is_empty {
            true => "No: I found nothing to erase.".to_owned(),
            false => "Not yet: nothing is erased until you confirm the list.".to_owned(),
        });
    }
    let call = format!("{} {}", call.name, call.arguments);
    Some(match result {
        result if result.output == WAITING => format!("Not yet: {call} is waiting for approval."),
        result if result.is_error => format!("No: {call} – {}", result.output),
        result => format!("Yes: {call} returned {}", result.output),
    })
}

fn last_exchange(messages: &[ChatMessage]) -> Option<(&ToolCall, &ToolResult)> {
    let result = messages.iter().rev().find_map(|message| message.tool_results().last())?;
    let mut calls = messages.iter().rev().flat_map(ChatMessage::tool_calls);
    Some((calls.find(|call| call.id == result.call_id)?, result))
}
