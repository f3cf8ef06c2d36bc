//! The context as messages with roles, tool parts kept, in an order that models take.

use std::borrow::Cow;
use std::collections::BTreeMap;

use threadkeep_core::{ChatMessage, Message, Part, Role, ToolResult};

/// What stands where a tool has not given its result yet.
pub const WAITING: &str = "(waiting: no result yet)";

/// A message of the history as it will be shown.
#[derive(Clone, Debug)]
pub(crate) struct Shown<'a> {
    pub(crate) message: &'a Message,
    /// What it says, cut where policy cuts it, without what models do not take back.
    pub(crate) parts: Cow<'a, [Part]>,
    /// Ids of its calls that have no result.
    pub(crate) waiting: Vec<&'a str>,
    pub(crate) is_cut: bool,
}

/// Writes some parts of a message as one for a model.
fn chat_message(shown: &Shown<'_>, parts: Vec<Part>) -> ChatMessage {
    let content = &shown.message.content;
    ChatMessage { role: content.role, author: content.author.clone(), parts, seq: Some(shown.message.seq) }
}

/// Writes messages for a model: the calls of one answer are followed by the latest result of each, or by [`WAITING`].
pub(crate) fn chat_messages(history: &[Shown<'_>]) -> Vec<ChatMessage> {
    let results = latest_results(history);
    let mut messages = Vec::with_capacity(history.len());
    let mut answers = Vec::new();
    for (index, shown) in history.iter().enumerate() {
        let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
        let parts: Vec<Part> = shown.parts.iter().filter(|part| !is_result(part)).cloned().collect();
        let is_result_only = parts.is_empty() && shown.parts.iter().any(is_result);
        if !is_result_only {
            messages.push(chat_message(shown, parts));
        }
        for (place, part) in shown.parts.iter().enumerate() {
            if let Part::ToolCall(call) = part {
                answers.push(match results.get(&(index, place)) {
                    Some((answer, result)) => ChatMessage {
                        role: Role::Tool,
                        ..chat_message(answer, vec![Part::ToolResult((*result).clone())])
                    },
                    None => waiting(&call.id),
                });
            }
        }
        if !answers.is_empty() && !calls_more(&history[index..]) {
            messages.append(&mut answers);
        }
    }
    messages
}

/// Whether the answer that begins a history calls more behind its first message. Whoever keeps an answer item by item has
/// each of its calls in a message.
fn calls_more(history: &[Shown<'_>]) -> bool {
    let mut answer = history.iter().take_while(|shown| shown.message.content.role == Role::Assistant).skip(1);
    answer.any(|shown| shown.parts.iter().any(|part| matches!(part, Part::ToolCall(_))))
}

fn waiting(call_id: &str) -> ChatMessage {
    let result = ToolResult { call_id: call_id.to_owned(), output: WAITING.to_owned(), is_error: false };
    ChatMessage { role: Role::Tool, author: None, parts: vec![Part::ToolResult(result)], seq: None }
}

type Results<'h, 'a> = BTreeMap<(usize, usize), (&'h Shown<'a>, &'h ToolResult)>;

/// The latest result of each call, by the call's place: its message, and its part in that.
fn latest_results<'h, 'a>(history: &'h [Shown<'a>]) -> Results<'h, 'a> {
    let mut calls: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut results = Results::new();
    for (index, shown) in history.iter().enumerate() {
        for (place, part) in shown.parts.iter().enumerate() {
            match part {
                Part::ToolCall(call) => {
                    calls.insert(&call.id, (index, place));
                }
                Part::ToolResult(result) => {
                    if let Some(call) = calls.get(result.call_id.as_str()) {
                        results.insert(*call, (shown, result));
                    }
                }
                _ => {}
            }
        }
    }
    results
}

/// Takes a message of the history as it will be shown, cut to `characters` where they are given.
pub(crate) fn shown<'a>(message: &'a Message, characters: Option<usize>) -> Shown<'a> {
    let is_shown = |part: &&Part| !matches!(part, Part::Reasoning(_));
    let all = &message.content.parts;
    let mut parts = match all.iter().all(|part| is_shown(&part)) {
        true => Cow::Borrowed(&all[..]),
        false => Cow::Owned(all.iter().filter(is_shown).cloned().collect()),
    };
    let is_cut = characters.is_some_and(|characters| crate::cut::cut_parts(&mut parts, characters));
    Shown { message, parts, waiting: Vec::new(), is_cut }
}

/// Marks the calls of a history that have no result in it.
pub(crate) fn mark_waiting<'a>(history: &mut [Shown<'a>]) {
    let answered: Vec<(usize, usize)> = latest_results(history).into_keys().collect();
    for (index, shown) in history.iter_mut().enumerate() {
        // Reasoning is left out of what is shown, so places differ from the message's own: ids are taken from there.
        let calls = shown.parts.iter().enumerate().filter_map(|(place, part)| match part {
            Part::ToolCall(call) if answered.binary_search(&(index, place)).is_err() => Some(call.id.as_str()),
            _ => None,
        });
        let open: Vec<String> = calls.map(str::to_owned).collect();
        let own = shown.message.content.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) if open.contains(&call.id) => Some(call.id.as_str()),
            _ => None,
        });
        shown.waiting = own.collect();
    }
}
