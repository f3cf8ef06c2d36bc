//! "Did it work?": what became of the last call, as the conversation has it.

use threadkeep::context::WAITING;
use threadkeep::{ChatMessage, ToolCall, ToolResult};

/// How people ask what became of something, as whole messages.
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

/// Answers such a question; `None` for any other, and where nothing was called.
pub(super) fn tell_outcome(words: &[String], earlier: &[ChatMessage]) -> Option<String> {
    if !QUESTIONS.contains(&words.join(" ").as_str()) {
        return None;
    }
    let (call, result) = last_exchange(earlier)?;
    let what = format!("{} {}", call.name, call.arguments);
    Some(match result {
        result if result.output == WAITING => format!("Not yet: {what} waits for an approval."),
        result if result.is_error => format!("No: {what} – {}", result.output),
        result => format!("Yes: {what} gave {}", result.output),
    })
}

fn last_exchange(messages: &[ChatMessage]) -> Option<(&ToolCall, &ToolResult)> {
    let result = messages.iter().rev().find_map(|message| message.tool_results().last())?;
    let mut calls = messages.iter().rev().flat_map(ChatMessage::tool_calls);
    Some((calls.find(|call| call.id == result.call_id)?, result))
}
