//! Reorders calls and results as providers require: all calls of an answer in one message, directly followed by their
//! results.

use std::borrow::Cow;

use threadkeep_core::{ChatMessage, Part, Role};

/// Returns the messages in an order that providers accept.
///
/// Clients that store an answer item by item store each of its calls as a message, and a result may arrive after other
/// messages. A result without a call stays in its place.
pub(super) fn in_order(messages: &[ChatMessage]) -> Vec<Cow<'_, ChatMessage>> {
    let mut ordered: Vec<Cow<'_, ChatMessage>> = Vec::with_capacity(messages.len());
    for message in messages {
        if let Some(last) = ordered.last_mut()
            && is_one_answer(last, message)
        {
            last.to_mut().parts.extend(message.parts.iter().cloned());
        } else if let Some(index) = index_of_results(&ordered, message) {
            ordered.insert(index, Cow::Borrowed(message));
        } else {
            ordered.push(Cow::Borrowed(message));
        }
    }
    ordered
}

fn is_one_answer(before: &ChatMessage, message: &ChatMessage) -> bool {
    let calls = |message: &ChatMessage| message.tool_calls().next().is_some();
    before.role == Role::Assistant && message.role == Role::Assistant && (calls(before) || calls(message))
}

/// Returns the index at which to insert a message that contains only results, or `None` to append it.
fn index_of_results(ordered: &[Cow<'_, ChatMessage>], message: &ChatMessage) -> Option<usize> {
    let mut results =
        message.parts.iter().map(|part| if let Part::ToolResult(result) = part { Some(result) } else { None });
    let called = results.next()??.call_id.as_str();
    if !results.all(|result| result.is_some()) {
        return None;
    }
    let calling = ordered.iter().rposition(|before| before.tool_calls().any(|call| call.id == called))?;
    let existing_results =
        ordered.iter().skip(calling + 1).take_while(|before| before.tool_results().next().is_some()).count();
    Some(calling + 1 + existing_results)
}

#[cfg(test)]
mod tests {
    use threadkeep_core::{JsonText, ToolCall, ToolResult};

    use super::*;

    fn text_message(role: Role, text: &str) -> ChatMessage {
        ChatMessage::text(role, text)
    }

    fn with(role: Role, part: Part) -> ChatMessage {
        ChatMessage { role, author: None, parts: vec![part], seq: None }
    }

    fn call(id: &str) -> ChatMessage {
        let arguments = JsonText::of(&serde_json::json!({})).unwrap();
        with(Role::Assistant, Part::ToolCall(ToolCall { id: id.to_owned(), name: "look".to_owned(), arguments }))
    }

    fn result(id: &str) -> ChatMessage {
        let result = ToolResult { call_id: id.to_owned(), output: "seen".to_owned(), is_error: false };
        with(Role::Tool, Part::ToolResult(result))
    }

    /// Describes each message: its role, then `?` and the id for each call, or `=` and the id for each result.
    fn shape(messages: &[ChatMessage]) -> Vec<String> {
        let summary = |message: &Cow<'_, ChatMessage>| {
            let calls = message.tool_calls().map(|call| format!("?{}", call.id));
            let results = message.tool_results().map(|result| format!("={}", result.call_id));
            format!("{}{}{}", message.role.as_str(), calls.collect::<String>(), results.collect::<String>())
        };
        in_order(messages).iter().map(summary).collect()
    }

    #[test]
    fn calls_of_one_answer_are_merged() {
        let (user, text) = (text_message(Role::User, "look twice"), text_message(Role::Assistant, "I look."));
        let messages = [user.clone(), text, call("a"), call("b"), result("a"), result("b"), user];
        assert_eq!(shape(&messages), ["user", "assistant?a?b", "tool=a", "tool=b", "user"]);
    }

    #[test]
    fn a_late_result_moves_to_its_call() {
        let (user, text) = (text_message(Role::User, "hm"), text_message(Role::Assistant, "I still look."));
        let messages = [call("a"), result("a"), call("b"), call("c"), result("c"), user, text, result("b")];
        let expected = ["assistant?a", "tool=a", "assistant?b?c", "tool=c", "tool=b", "user", "assistant"];
        assert_eq!(shape(&messages), expected);
    }

    #[test]
    fn other_messages_stay_in_place() {
        let messages = [
            text_message(Role::Assistant, "a"),
            text_message(Role::Assistant, "b"),
            result("unknown"),
            text_message(Role::User, "c"),
        ];
        assert_eq!(shape(&messages), ["assistant", "assistant", "tool=unknown", "user"]);
    }
}
