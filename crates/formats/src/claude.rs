//! Reads `conversations.json` of Claude's data export: a list of conversations with `chat_messages`.
//!
//! Text, thinking, tool calls and tool results become parts of these kinds. Everything else becomes a raw part. The text of
//! an attached file becomes a text part after the message, because the model read it; `attachments` in the metadata
//! describes the files. If the messages name their parents (`parent_message_uuid`), the conversation is read as a tree. Its
//! current message is `current_leaf_message_uuid`, otherwise the last message. All other fields of a message or conversation
//! go to the metadata.

use std::collections::HashMap;

use serde_json::value::RawValue;
use threadkeep_core::{Content, Part, Role, Timestamp, ToolCall, ToolResult, Value};

use crate::Format;
use crate::conversation::{Conversation, Node, clean_name, each_object, instant, numbered};
use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, exact, kind};
use crate::records::Record;
use crate::tree::Ordered;

const RAW_FORMAT: &str = "claude.export";

const PARENT: &str = "parent_message_uuid";
const CURRENT: &str = "current_leaf_message_uuid";

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Rejection> {
    let id = fields.take_id("uuid")?;
    let messages = fields.require_list("chat_messages")?;
    let mut conversation = Conversation::new(Format::ClaudeExport, record, id.as_deref())?;
    conversation.set_title(fields.take_text("name")?);
    conversation.set_created_at(instant(&mut fields, "created_at"));
    if let Some(links) = Links::read(&messages) {
        let current = fields.take_id(CURRENT)?;
        let updated_at = fields.get("updated_at").and_then(|json| fields::text(json).ok()?.parse().ok());
        conversation.add_remaining_metadata(fields)?;
        read_tree(&mut conversation, &messages, &links, current.as_deref(), updated_at)?;
        return Ok(conversation);
    }
    conversation.add_remaining_metadata(fields)?;
    conversation.each_message("message", messages, |conversation, _, mut message| {
        let id = message.take_id("uuid")?;
        let created_at = instant(&mut message, "created_at");
        conversation.push(id.as_deref(), created_at, read_message(message)?)
    });
    Ok(conversation)
}

/// The parent links between the messages of a conversation.
struct Links {
    ids: Vec<Option<String>>,
    /// The index of each message's parent. A message with an unknown parent is a root. A message without a parent field
    /// follows the previous message.
    parents: Vec<Option<usize>>,
}

impl Links {
    /// Returns `None` if no message names a parent.
    fn read(messages: &[&RawValue]) -> Option<Self> {
        let mut read: Vec<Option<Fields<'_>>> = messages.iter().map(|json| Fields::read(json).ok()).collect();
        let mut take = |name: &str| -> Vec<Option<String>> {
            let taken = read.iter_mut().map(|message| message.as_mut()?.take_id(name).ok()?);
            taken.collect()
        };
        let (ids, parent_ids) = (take("uuid"), take(PARENT));
        if parent_ids.iter().all(Option::is_none) {
            return None;
        }
        let mut indexes: HashMap<&str, usize> = HashMap::new();
        for (index, id) in ids.iter().enumerate() {
            if let Some(id) = id {
                indexes.entry(id).or_insert(index);
            }
        }
        let parent = |(index, id): (usize, &Option<String>)| match id {
            Some(id) => indexes.get(id.as_str()).copied(),
            None => index.checked_sub(1),
        };
        let parents = parent_ids.iter().enumerate().map(parent).collect();
        Some(Self { ids, parents })
    }
}

fn read_tree(
    conversation: &mut Conversation,
    messages: &[&RawValue],
    Links { ids, parents }: &Links,
    current: Option<&str>,
    updated_at: Option<Timestamp>,
) -> Result<(), Rejection> {
    let Some(Ordered { order, .. }) = Ordered::new(parents, |_| std::iter::empty()) else {
        return Err(Rejection::new("chat_messages: the messages form a cycle"));
    };
    // For each entry: the nearest imported message on the path from the root to the entry, and the number of such messages.
    let mut nearest_message: Vec<(Option<usize>, usize)> = vec![(None, 0); messages.len()];
    let mut current_message = None;
    for index in order {
        let (before, depth) = parents[index].map_or((None, 0), |parent| nearest_message[parent]);
        let at = |rejection: Rejection| rejection.at(numbered("message", index));
        let pushed = push_node(conversation, (before, depth + 1), index, messages[index]);
        let nearest_imported = pushed.map(Some).unwrap_or_else(|rejection| {
            conversation.skip_message(at(rejection));
            before
        });
        nearest_message[index] = (nearest_imported, depth + 1);
        if current.is_some() && ids[index].as_deref() == current {
            current_message = nearest_imported;
        }
    }
    // The messages are ordered by creation, so the last one is the default.
    let last = nearest_message.last().and_then(|(last, _)| *last);
    conversation.set_current(current_message.or(last), updated_at);
    Ok(())
}

/// Adds the message at `index`, below its parent and at its position on the path from the root.
fn push_node(
    conversation: &mut Conversation,
    (parent, position): (Option<usize>, usize),
    index: usize,
    json: &RawValue,
) -> Result<usize, Rejection> {
    let mut message = Fields::read(json)?;
    let id = message.take_id("uuid")?;
    message.take(PARENT);
    let created_at = instant(&mut message, "created_at");
    let node = Node { parent, position, source_id: id.as_deref(), fallback_id: &index.to_string() };
    conversation.push_node(&node, created_at, read_message(message)?)
}

fn read_message(mut message: Fields<'_>) -> Result<Content, Rejection> {
    let role = match message.require_text("sender")?.as_str() {
        "human" => Role::User,
        "assistant" => Role::Assistant,
        _ => return Err(Rejection::new("`sender` is neither human nor assistant")),
    };
    let mut content = Content::empty(role);
    // `text` repeats the items of `content`. Older exports contain only `text`.
    let text = message.take_text("text")?.unwrap_or_default();
    for item in message.take_list("content")?.unwrap_or_default() {
        content.parts.push(read_item(item).map_err(|rejection| rejection.at("content"))?);
    }
    if content.parts.is_empty() && !text.is_empty() {
        content.parts.push(Part::Text(text));
    }
    let attachments = message.take_list("attachments")?.unwrap_or_default();
    let files = message.take_value("files")?;
    content.metadata = message.into_map()?;
    each_object("attachment", attachments, |_, attachment| read_attachment(attachment, &mut content))?;
    if let Some(files) = files.filter(|files| files.as_array().is_none_or(|files| !files.is_empty())) {
        content.metadata.insert("files".to_owned(), files);
    }
    Ok(content)
}

fn read_attachment(mut attachment: Fields<'_>, content: &mut Content) -> Result<(), Rejection> {
    let text = attachment.take_text("extracted_content")?.filter(|text| !text.is_empty());
    let mut description = attachment.into_map()?;
    if let Some(text) = text {
        description.insert("part".to_owned(), content.parts.len().into());
        content.parts.push(Part::Text(text));
    }
    match content.metadata.entry("attachments").or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(attachments) => attachments.push(description.into()),
        other => *other = vec![Value::Object(description)].into(),
    }
    Ok(())
}

fn read_item(json: &RawValue) -> Result<Part, Rejection> {
    match known_item(json)? {
        Some(part) => Ok(part),
        None => Ok(Part::Raw { format: RAW_FORMAT.to_owned(), json: exact(json)? }),
    }
}

/// Reads an item of a message. Returns `None` if its type is unknown or a field is missing.
pub(crate) fn known_item(json: &RawValue) -> Result<Option<Part>, Rejection> {
    let mut item = Fields::read(json)?;
    match item.take_text("type")?.as_deref() {
        Some("text") => Ok(item.take_text("text")?.map(Part::Text)),
        Some("thinking") => Ok(item.take_text("thinking")?.map(Part::Reasoning)),
        Some("tool_use") => tool_call(item),
        Some("tool_result") => tool_result(item),
        _ => Ok(None),
    }
}

fn tool_call(mut item: Fields<'_>) -> Result<Option<Part>, Rejection> {
    let (id, name) = (item.take_text("id")?, item.take_text("name")?);
    let name = name.filter(|name| clean_name(name).as_ref() == Some(name));
    match (id, name, item.take("input")) {
        (Some(id), Some(name), Some(input)) => {
            Ok(Some(Part::ToolCall(ToolCall { id, name, arguments: exact(input)? })))
        }
        _ => Ok(None),
    }
}

fn tool_result(mut item: Fields<'_>) -> Result<Option<Part>, Rejection> {
    let Some(call_id) = item.take_text("tool_use_id")? else { return Ok(None) };
    let output = match item.take("content") {
        None => String::new(),
        Some(content) => output(content)?,
    };
    let is_error = item.take_value("is_error")? == Some(Value::Bool(true));
    Ok(Some(Part::ToolResult(ToolResult { call_id, output, is_error })))
}

/// Returns the text of a single item. Several items are returned as JSON, because joining them would lose their boundaries.
fn output(content: &RawValue) -> Result<String, Rejection> {
    if kind(content) == Kind::Text {
        return fields::text(content);
    }
    if let Ok([only]) = fields::list(content).as_deref()
        && let Ok(mut item) = Fields::read(only)
        && item.take_text("type").is_ok_and(|kind| kind.as_deref() == Some("text"))
        && let Ok(Some(text)) = item.take_text("text")
    {
        return Ok(text);
    }
    Ok(content.get().to_owned())
}
