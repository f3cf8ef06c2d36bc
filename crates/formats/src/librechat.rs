//! Reads conversations exported from LibreChat: an object with `messages`, or with nested messages (`messagesTree`).
//!
//! Source: `exportJSON` in `client/src/hooks/Conversations/useExportConversation.ts` of the repository `danny-avila/LibreChat`.
//! The fixture was written by hand from it.

use std::collections::HashMap;

use serde_json::value::RawValue;
use threadkeep_core::{Content, Part, Role, Value};

use crate::Format;
use crate::conversation::{Conversation, Node, clean_name, instant, numbered};
use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, MAX_ENTRIES, kind};
use crate::records::Record;
use crate::tool_parts;
use crate::tree::Ordered;

/// The field that contains nested messages.
pub(crate) const TREE: &str = "messagesTree";
const RAW_FORMAT: &str = "librechat.export";
/// The maximum nesting depth of messages.
const MAX_DEPTH: usize = 2_000;

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Rejection> {
    let id = fields.take_text("conversationId")?;
    let roots = match fields.take_list(TREE)? {
        Some(roots) => roots,
        None => fields.require_list("messages")?,
    };
    let mut conversation = Conversation::new(Format::LibreChat, record, id.as_deref())?;
    conversation.set_title(fields.take_text("title")?);
    conversation.add_remaining_metadata(fields)?;
    let messages = flattened(roots)?;
    let first = messages.first().and_then(|(message, _)| instant(&mut Fields::read(message).ok()?, "createdAt"));
    conversation.set_created_at(first);
    read_tree(&mut conversation, &messages)?;
    Ok(conversation)
}

/// Returns all messages, each with the index of the message that contains it. Iterative, because messages nest deeply.
fn flattened(roots: Vec<&RawValue>) -> Result<Vec<(&RawValue, Option<usize>)>, Rejection> {
    let mut messages = Vec::new();
    let mut pending: Vec<(&RawValue, Option<usize>, usize)> =
        roots.into_iter().rev().map(|message| (message, None, 0)).collect();
    while let Some((message, parent, depth)) = pending.pop() {
        if depth > MAX_DEPTH {
            return Err(Rejection::new(format!("more than {MAX_DEPTH} nested messages")));
        }
        if messages.len() >= MAX_ENTRIES {
            return Err(Rejection::new(format!("more than {MAX_ENTRIES} messages")));
        }
        let index = messages.len();
        messages.push((message, parent));
        if let Ok(mut read) = Fields::read(message) {
            let children = read.take_list("children").ok().flatten().unwrap_or_default();
            pending.extend(children.into_iter().rev().map(|child| (child, Some(index), depth + 1)));
        }
    }
    Ok(messages)
}

fn read_tree(conversation: &mut Conversation, messages: &[(&RawValue, Option<usize>)]) -> Result<(), Rejection> {
    let text = |json: &RawValue, name: &str| Fields::read(json).ok()?.take_text(name).ok()?;
    let ids: Vec<Option<String>> = messages.iter().map(|(json, _)| text(json, "messageId")).collect();
    let mut indexes: HashMap<&str, usize> = HashMap::new();
    for (index, id) in ids.iter().enumerate() {
        if let Some(id) = id {
            indexes.entry(id).or_insert(index);
        }
    }
    let parent = |(json, container): &(&RawValue, Option<usize>)| {
        container.or_else(|| indexes.get(text(json, "parentMessageId")?.as_str()).copied())
    };
    let parents: Vec<Option<usize>> = messages.iter().map(parent).collect();
    let Some(Ordered { order, .. }) = Ordered::new(&parents, |_| std::iter::empty()) else {
        return Err(Rejection::new("messages: the messages form a cycle"));
    };
    // For each entry: the nearest imported message on the path from the root, and the number of messages on the path.
    let mut nearest: Vec<(Option<usize>, usize)> = vec![(None, 0); messages.len()];
    for index in order {
        let (before, depth) = parents[index].map_or((None, 0), |parent| nearest[parent]);
        let fallback = index.to_string();
        let node =
            Node { parent: before, position: depth + 1, source_id: ids[index].as_deref(), fallback_id: &fallback };
        let read = Fields::read(messages[index].0).and_then(|mut message| {
            let created_at = instant(&mut message, "createdAt");
            let content = read_message(message)?;
            conversation.push_node(&node, created_at, content)
        });
        let nearest_imported = read.map(Some).unwrap_or_else(|rejection| {
            conversation.skip_message(rejection.at(numbered("message", index)));
            before
        });
        nearest[index] = (nearest_imported, depth + 1);
    }
    conversation.set_current(None, None);
    Ok(())
}

fn read_message(mut message: Fields<'_>) -> Result<Content, Rejection> {
    let is_by_user = message.take_value("isCreatedByUser")? == Some(Value::Bool(true));
    let mut content = Content::empty(if is_by_user { Role::User } else { Role::Assistant });
    let text = message.take_text("text")?.unwrap_or_default();
    for item in message.take_list("content")?.unwrap_or_default() {
        content.parts.extend(read_item(item).map_err(|rejection| rejection.at("content"))?);
    }
    if content.parts.is_empty() && !text.is_empty() {
        content.parts.push(Part::Text(text));
    }
    content.author = message.take_text("sender")?.filter(|_| !is_by_user).as_deref().and_then(clean_name);
    for name in ["model", "endpoint", "error", "unfinished", "files", "attachments", "tokenCount"] {
        if let Some(json) = message.take(name).filter(|json| json.get().len() <= 16 * 1024 && json.get() != "false") {
            content.metadata.insert(name.to_owned(), fields::value(json)?);
        }
    }
    Ok(content)
}

fn read_item(json: &RawValue) -> Result<Vec<Part>, Rejection> {
    let mut item = Fields::read(json)?;
    let kind = item.take_text("type")?.unwrap_or_default();
    let known_parts = match kind.as_str() {
        "text" | "error" => take_string(&mut item, "text").map(|text| vec![Part::Text(text)]),
        "think" => take_string(&mut item, "think").map(|text| vec![Part::Reasoning(text)]),
        "tool_call" => item.take_fields("tool_call")?.map(read_call).transpose()?.flatten(),
        _ => None,
    };
    known_parts.map_or_else(|| Ok(vec![tool_parts::raw(RAW_FORMAT, json)?]), Ok)
}

/// Takes a string, which can be the `value` of an object.
fn take_string(item: &mut Fields<'_>, name: &str) -> Option<String> {
    let json = item.take(name)?;
    match kind(json) {
        Kind::Object => Fields::read(json).ok()?.take_text("value").ok()?,
        _ => fields::text(json).ok(),
    }
}

/// Reads a call and its output, which are one item.
fn read_call(mut call: Fields<'_>) -> Result<Option<Vec<Part>>, Rejection> {
    let (Some(id), Some(name)) = (call.take_text("id")?, call.take_text("name")?) else { return Ok(None) };
    let Some(part) = tool_parts::call(id.clone(), name, tool_parts::arguments(call.take("args"))?) else {
        return Ok(None);
    };
    let output = call.take("output").map(tool_parts::output).transpose()?;
    Ok(Some([part].into_iter().chain(output.map(|output| tool_parts::result(id, output, false))).collect()))
}
