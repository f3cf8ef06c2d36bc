//! Renders the history as messages with roles and tool parts, in an order that providers accept.

use std::borrow::Cow;
use std::collections::BTreeMap;

use threadkeep_core::{ChatMessage, Message, Part, Role, ToolResult};

/// The placeholder for the result of a call that has no result yet.
pub const WAITING: &str = "(waiting: no result yet)";

/// A message of the history, prepared for rendering.
#[derive(Clone, Debug)]
pub(crate) struct HistoryEntry<'a> {
    pub(crate) message: &'a Message,
    /// The parts of the message without reasoning, truncated as the policy requires.
    pub(crate) parts: Cow<'a, [Part]>,
    /// The ids of the message's calls that have no result.
    pub(crate) waiting: Vec<&'a str>,
    pub(crate) is_cut: bool,
}

/// Creates a chat message from some parts of a history entry.
fn chat_message(entry: &HistoryEntry<'_>, parts: Vec<Part>) -> ChatMessage {
    let content = &entry.message.content;
    ChatMessage { role: content.role, author: content.author.clone(), parts, seq: Some(entry.message.seq) }
}

/// Renders a history for a model. Each answer with calls is followed by the latest result of each call, or by [`WAITING`].
pub(crate) fn chat_messages(history: &[HistoryEntry<'_>]) -> Vec<ChatMessage> {
    let results = latest_results(history);
    let mut messages = Vec::with_capacity(history.len());
    let mut answers = Vec::new();
    for (index, entry) in history.iter().enumerate() {
        let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
        let parts: Vec<Part> = entry.parts.iter().filter(|part| !is_result(part)).cloned().collect();
        let is_result_only = parts.is_empty() && entry.parts.iter().any(is_result);
        if !is_result_only {
            messages.push(chat_message(entry, parts));
        }
        for (part_index, part) in entry.parts.iter().enumerate() {
            if let Part::ToolCall(call) = part {
                answers.push(match results.get(&(index, part_index)) {
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

/// Whether the answer at the start of `history` contains more calls after its first message. Clients that store an answer
/// item by item store each call of the answer as a separate message.
fn calls_more(history: &[HistoryEntry<'_>]) -> bool {
    let mut answer = history.iter().take_while(|entry| entry.message.content.role == Role::Assistant).skip(1);
    answer.any(|entry| entry.parts.iter().any(|part| matches!(part, Part::ToolCall(_))))
}

fn waiting(call_id: &str) -> ChatMessage {
    let result = ToolResult { call_id: call_id.to_owned(), output: WAITING.to_owned(), is_error: false };
    ChatMessage { role: Role::Tool, author: None, parts: vec![Part::ToolResult(result)], seq: None }
}

type Results<'h, 'a> = BTreeMap<(usize, usize), (&'h HistoryEntry<'a>, &'h ToolResult)>;

/// Returns the latest result of each call with the entry that contains the result. The key is the index of the call's
/// message and the index of the call among the parts.
fn latest_results<'h, 'a>(history: &'h [HistoryEntry<'a>]) -> Results<'h, 'a> {
    let mut calls: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut results = Results::new();
    for (index, entry) in history.iter().enumerate() {
        for (part_index, part) in entry.parts.iter().enumerate() {
            match part {
                Part::ToolCall(call) => {
                    calls.insert(&call.id, (index, part_index));
                }
                Part::ToolResult(result) => {
                    if let Some(call) = calls.get(result.call_id.as_str()) {
                        results.insert(*call, (entry, result));
                    }
                }
                _ => {}
            }
        }
    }
    results
}

/// Prepares a message of the history for rendering, truncated to `characters` if given.
pub(crate) fn history_entry<'a>(message: &'a Message, characters: Option<usize>) -> HistoryEntry<'a> {
    let is_visible = |part: &&Part| !matches!(part, Part::Reasoning(_));
    let all = &message.content.parts;
    let mut parts = match all.iter().all(|part| is_visible(&part)) {
        true => Cow::Borrowed(&all[..]),
        false => Cow::Owned(all.iter().filter(is_visible).cloned().collect()),
    };
    let is_cut = characters.is_some_and(|characters| crate::cut::cut_parts(&mut parts, characters));
    HistoryEntry { message, parts, waiting: Vec::new(), is_cut }
}

/// Records in each entry the ids of its calls that have no result.
pub(crate) fn mark_waiting<'a>(history: &mut [HistoryEntry<'a>]) {
    let answered: Vec<(usize, usize)> = latest_results(history).into_keys().collect();
    for (index, entry) in history.iter_mut().enumerate() {
        // The parts may be an owned copy, so the ids are borrowed from the message.
        let calls = entry.parts.iter().enumerate().filter_map(|(part_index, part)| match part {
            Part::ToolCall(call) if answered.binary_search(&(index, part_index)).is_err() => Some(call.id.as_str()),
            _ => None,
        });
        let open_ids: Vec<String> = calls.map(str::to_owned).collect();
        let open_calls = entry.message.content.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) if open_ids.contains(&call.id) => Some(call.id.as_str()),
            _ => None,
        });
        entry.waiting = open_calls.collect();
    }
}
