//! Calls and results in the order that providers demand: the calls of one answer in one message, each with its results right
//! behind it.

use std::borrow::Cow;

use threadkeep_core::{ChatMessage, Part, Role};

/// The same messages in an order that providers take.
///
/// Whoever keeps an answer item by item shows each of its calls as a message, and a result may come when others have spoken
/// since. A result that nobody called for stays where it is.
pub(super) fn in_order(messages: &[ChatMessage]) -> Vec<Cow<'_, ChatMessage>> {
    let mut ordered: Vec<Cow<'_, ChatMessage>> = Vec::with_capacity(messages.len());
    for message in messages {
        if let Some(last) = ordered.last_mut()
            && is_one_answer(last, message)
        {
            last.to_mut().parts.extend(message.parts.iter().cloned());
        } else if let Some(place) = place_of_results(&ordered, message) {
            ordered.insert(place, Cow::Borrowed(message));
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

/// Where the results of a message belong that brings nothing else, if that is not the end.
fn place_of_results(ordered: &[Cow<'_, ChatMessage>], message: &ChatMessage) -> Option<usize> {
    let mut results =
        message.parts.iter().map(|part| if let Part::ToolResult(result) = part { Some(result) } else { None });
    let called = results.next()??.call_id.as_str();
    if !results.all(|result| result.is_some()) {
        return None;
    }
    let calling = ordered.iter().rposition(|before| before.tool_calls().any(|call| call.id == called))?;
    let behind = ordered.iter().skip(calling + 1).take_while(|before| before.tool_results().next().is_some()).count();
    Some(calling + 1 + behind)
}

#[cfg(test)]
mod tests {
    use threadkeep_core::{JsonText, ToolCall, ToolResult};

    use super::*;

    fn said(role: Role, text: &str) -> ChatMessage {
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

    /// Each message in a word: who speaks, and what of calls and results is in it.
    fn shape(messages: &[ChatMessage]) -> Vec<String> {
        let told = |message: &Cow<'_, ChatMessage>| {
            let calls = message.tool_calls().map(|call| format!("?{}", call.id));
            let results = message.tool_results().map(|result| format!("={}", result.call_id));
            format!("{}{}{}", message.role.as_str(), calls.collect::<String>(), results.collect::<String>())
        };
        in_order(messages).iter().map(told).collect()
    }

    #[test]
    fn calls_of_one_answer_are_one_message() {
        let (user, words) = (said(Role::User, "look twice"), said(Role::Assistant, "I look."));
        let messages = [user.clone(), words, call("a"), call("b"), result("a"), result("b"), user];
        assert_eq!(shape(&messages), ["user", "assistant?a?b", "tool=a", "tool=b", "user"]);
    }

    #[test]
    fn a_late_result_goes_behind_its_call() {
        let (user, words) = (said(Role::User, "hm"), said(Role::Assistant, "I still look."));
        let messages = [call("a"), result("a"), call("b"), call("c"), result("c"), user, words, result("b")];
        let expected = ["assistant?a", "tool=a", "assistant?b?c", "tool=c", "tool=b", "user", "assistant"];
        assert_eq!(shape(&messages), expected);
    }

    #[test]
    fn what_needs_no_order_stays_as_it_is() {
        let messages =
            [said(Role::Assistant, "a"), said(Role::Assistant, "b"), result("nobody"), said(Role::User, "c")];
        assert_eq!(shape(&messages), ["assistant", "assistant", "tool=nobody", "user"]);
    }
}
