//! Reads chats exported from Open WebUI: a list of chats, each a tree of messages (`chat.history`).
//!
//! Source: `ChatResponse` and `get_current_message_id` in `backend/open_webui/models/chats.py` of the repository
//! `open-webui/open-webui`. The fixture was written by hand from it. Chats of earlier versions have only the list `chat.messages`.

use std::collections::HashMap;

use serde_json::value::RawValue;
use threadkeep_core::{Content, ImageReference, Part, Role, Value};

use crate::Format;
use crate::conversation::{Conversation, Node, instant_in_seconds, numbered, read_seconds};
use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, kind, missing};
use crate::records::Record;
use crate::tool_parts;
use crate::tree::Ordered;

const RAW_FORMAT: &str = "open-webui.export";
/// How the program marks reasoning in the text of an answer.
const REASONING: (&str, &str) = ("<details type=\"reasoning\"", "</details>");

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Rejection> {
    let id = fields.take_id("id")?;
    let mut chat = fields.take_fields("chat")?.ok_or_else(|| missing("chat"))?;
    let mut conversation = Conversation::new(Format::OpenWebUi, record, id.as_deref())?;
    let title = fields.take_text("title")?.or(chat.take_text("title")?);
    conversation.set_title(title);
    conversation.set_created_at(instant_in_seconds(&mut fields, "created_at"));
    let updated_at = fields.get("updated_at").and_then(read_seconds);
    let history = chat.take_fields("history")?;
    let list = chat.take_list("messages")?.unwrap_or_default();
    for name in ["models", "system", "tags"] {
        if let Some(value) = chat.take_value(name)? {
            conversation.add_metadata(name, value);
        }
    }
    conversation.add_remaining_metadata(fields)?;
    let Some(mut history) = history else {
        conversation.each_message("message", list, |conversation, _, mut message| {
            let id = message.take_id("id")?;
            let created_at = instant_in_seconds(&mut message, "timestamp");
            let content = read_message(message)?;
            conversation.push(id.as_deref(), created_at, content)
        });
        return Ok(conversation);
    };
    let current = history.take_text("currentId")?;
    let messages = history.take_fields("messages")?.ok_or_else(|| missing("history.messages"))?.into_remaining();
    read_tree(&mut conversation, &messages, current.as_deref(), updated_at)?;
    Ok(conversation)
}

fn read_tree(
    conversation: &mut Conversation,
    messages: &[(String, &RawValue)],
    current: Option<&str>,
    updated_at: Option<threadkeep_core::Timestamp>,
) -> Result<(), Rejection> {
    let indexes: HashMap<&str, usize> =
        messages.iter().enumerate().map(|(index, (id, _))| (id.as_str(), index)).collect();
    let parent = |json: &RawValue| {
        let parent = Fields::read(json).ok()?.take_text("parentId").ok()??;
        indexes.get(parent.as_str()).copied()
    };
    let parents: Vec<Option<usize>> = messages.iter().map(|(_, json)| parent(json)).collect();
    let Some(Ordered { order, .. }) = Ordered::new(&parents, |_| std::iter::empty()) else {
        return Err(Rejection::new("history: the messages form a cycle"));
    };
    // For each entry: the nearest imported message on the path from the root, and the number of messages on the path.
    let mut nearest: Vec<(Option<usize>, usize)> = vec![(None, 0); messages.len()];
    for index in order {
        let (before, depth) = parents[index].map_or((None, 0), |parent| nearest[parent]);
        let (id, json) = &messages[index];
        let read = Fields::read(json).and_then(|mut message| {
            let created_at = instant_in_seconds(&mut message, "timestamp");
            let node = Node { parent: before, position: depth + 1, source_id: Some(id), fallback_id: id };
            let content = read_message(message)?;
            conversation.push_node(&node, created_at, content)
        });
        let nearest_imported = read.map(Some).unwrap_or_else(|rejection| {
            conversation.skip_message(rejection.at(numbered("message", index)));
            before
        });
        nearest[index] = (nearest_imported, depth + 1);
    }
    let current = current.and_then(|current| indexes.get(current)).and_then(|index| nearest[*index].0);
    conversation.set_current(current, updated_at);
    Ok(())
}

fn read_message(mut message: Fields<'_>) -> Result<Content, Rejection> {
    let role = message.require_text("role")?;
    let role: Role = role.parse().map_err(|_| Rejection::new("`role` is not one of user, assistant, system, tool"))?;
    let mut content = Content::empty(role);
    match message.take("content") {
        Some(body) if kind(body) == Kind::Text => push_text(&fields::text(body)?, &mut content),
        Some(body) => content.parts.push(tool_parts::raw(RAW_FORMAT, body)?),
        None => {}
    }
    for file in message.take_list("files")?.unwrap_or_default() {
        content.parts.push(read_file(file).map_err(|rejection| rejection.at("files"))?);
    }
    for name in ["model", "modelName", "usage", "error", "sources"] {
        if let Some(json) = message.take(name).filter(|json| json.get().len() <= 16 * 1024) {
            content.metadata.insert(name.to_owned(), fields::value(json)?);
        }
    }
    if message.take_value("done")? == Some(Value::Bool(false)) {
        content.metadata.insert("done".to_owned(), false.into());
    }
    Ok(content)
}

/// Adds text. Reasoning at its start becomes a separate part.
fn push_text(text: &str, content: &mut Content) {
    let mut rest = text;
    while let Some((before, _)) =
        rest.trim_start().strip_prefix(REASONING.0).and_then(|after| after.split_once(REASONING.1))
    {
        // The element is `<details ATTRIBUTES><summary>TITLE</summary>TEXT</details>`.
        let inner = before.split_once('>').map_or(before, |(_, inner)| inner);
        let inner = inner.split_once("</summary>").map_or(inner, |(_, inner)| inner).trim();
        content.parts.extend((!inner.is_empty()).then(|| Part::Reasoning(inner.to_owned())));
        let start = rest.len() - rest.trim_start().len();
        rest = &rest[start + REASONING.0.len() + before.len() + REASONING.1.len()..];
    }
    let words = if rest.len() == text.len() { text } else { rest.trim_start() };
    content.parts.extend((!words.is_empty()).then(|| Part::Text(words.to_owned())));
}

fn read_file(json: &RawValue) -> Result<Part, Rejection> {
    let mut file = Fields::read(json)?;
    let is_image = file.take_text("type")?.as_deref() == Some("image");
    match file.take_text("url")?.filter(|_| is_image) {
        Some(url) => Ok(Part::Image(ImageReference { url, description: None, detail: None })),
        None => tool_parts::raw(RAW_FORMAT, json),
    }
}
