//! Answers "Did it work?" from the last tool call in the conversation.

use threadkeep::context::WAITING;
use threadkeep::{ChatMessage, ToolCall, ToolResult};

/// Questions about the outcome of a call, as whole messages.
const QUESTIONS: [&str; 14] = [
    "did it work",
    "did that work",
    "has it worked",
    "was it done",
    "was that done",
    "is it done",
    "is that done",
    "is it done yet",
    "did you do it",
    "what happened",
    "what came of it",
    "funciono",
    "esta hecho",
    "ya esta",
];

/// Answers a question about the outcome of the last call. Returns `None` for any other message, or if there was no call.
pub(super) fn describe_outcome(words: &[String], earlier: &[ChatMessage]) -> Option<String> {
    if !QUESTIONS.contains(&words.join(" ").as_str()) {
        return None;
    }
    let (call, result) = last_exchange(earlier)?;
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
