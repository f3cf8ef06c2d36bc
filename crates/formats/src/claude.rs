//! `conversations.json` of Claude's data export: a list of conversations with `chat_messages`.
//!
//! Text, tool calls with their results and thoughts become parts of their own kinds, everything else a raw part. The text of
//! an attached file follows the message as a text part, because the model read it; the metadata's `attachments` say
//! what the files were. Where the messages say which one they follow (`parent_message_uuid`), the conversation is read as a
//! tree, of which `current_leaf_message_uuid`, else the last message, is shown. Whatever else stands in a message or beside the messages goes to the metadata.

use std::collections::HashMap;

use serde_json::value::RawValue;
use threadkeep_core::{Content, Part, Role, Timestamp, ToolCall, ToolResult, Value};

use crate::Format;
use crate::conversation::{Conversation, Node, clean_name, each_object, instant, number};
use crate::error::Refusal;
use crate::fields::{self, Fields, Kind, exact, kind};
use crate::records::Record;
use crate::tree::Ordered;

const RAW_FORMAT: &str = "claude.export";

const PARENT: &str = "parent_message_uuid";
const CURRENT: &str = "current_leaf_message_uuid";

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Refusal> {
    let id = fields.take_id("uuid")?;
    let messages = fields.require_list("chat_messages")?;
    let mut conversation = Conversation::new(Format::ClaudeExport, record, id.as_deref())?;
    conversation.set_title(fields.take_text("name")?);
    conversation.set_created_at(instant(&mut fields, "created_at"));
    if let Some(links) = Links::read(&messages) {
        let current = fields.take_id(CURRENT)?;
        let updated_at = fields.get("updated_at").and_then(|json| fields::text(json).ok()?.parse().ok());
        conversation.keep_rest(fields)?;
        read_tree(&mut conversation, &messages, &links, current.as_deref(), updated_at)?;
        return Ok(conversation);
    }
    conversation.keep_rest(fields)?;
    conversation.each_message("message", messages, |conversation, _, mut message| {
        let id = message.take_id("uuid")?;
        let created_at = instant(&mut message, "created_at");
        conversation.push(id.as_deref(), created_at, read_message(message)?)
    });
    Ok(conversation)
}

/// How the messages of a conversation hang together.
struct Links {
    ids: Vec<Option<String>>,
    /// The place of the message that each one follows. A message that names no known one begins the conversation.
    parents: Vec<Option<usize>>,
}

impl Links {
    /// `None` where no message names its parent.
    fn read(messages: &[&RawValue]) -> Option<Self> {
        let mut read: Vec<Option<Fields<'_>>> = messages.iter().map(|json| Fields::read(json).ok()).collect();
        let mut take = |name: &str| -> Vec<Option<String>> {
            let taken = read.iter_mut().map(|message| message.as_mut()?.take_id(name).ok()?);
            taken.collect()
        };
        let (ids, given) = (take("uuid"), take(PARENT));
        if given.iter().all(Option::is_none) {
            return None;
        }
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (place, id) in ids.iter().enumerate() {
            if let Some(id) = id {
                places.entry(id).or_insert(place);
            }
        }
        let parent = |(place, given): (usize, &Option<String>)| match given {
            Some(parent) => places.get(parent.as_str()).copied(),
            None => place.checked_sub(1),
        };
        let parents = given.iter().enumerate().map(parent).collect();
        Some(Self { ids, parents })
    }
}

fn read_tree(
    conversation: &mut Conversation,
    messages: &[&RawValue],
    Links { ids, parents }: &Links,
    current: Option<&str>,
    updated_at: Option<Timestamp>,
) -> Result<(), Refusal> {
    let Some(Ordered { order, .. }) = Ordered::new(parents, |_| std::iter::empty()) else {
        return Err(Refusal::new("chat_messages: the messages go round in a circle"));
    };
    // For each message the one that stands there or last before it, and how many lead there.
    let mut reached: Vec<(Option<usize>, usize)> = vec![(None, 0); messages.len()];
    let mut shown = None;
    for place in order {
        let (before, depth) = parents[place].map_or((None, 0), |parent| reached[parent]);
        let at = |refusal: Refusal| refusal.at(number("message", place));
        let pushed = push_node(conversation, (before, depth + 1), place, messages[place]);
        let here = pushed.map(Some).unwrap_or_else(|refusal| {
            conversation.leave_out(at(refusal));
            before
        });
        reached[place] = (here, depth + 1);
        if current.is_some() && ids[place].as_deref() == current {
            shown = here;
        }
    }
    // The messages stand in the order of their making: without a word about it the last one is shown.
    let last = reached.last().and_then(|(last, _)| *last);
    conversation.set_current(shown.or(last), updated_at);
    Ok(())
}

/// Adds the message at a place, under a parent and at a position on its path.
fn push_node(
    conversation: &mut Conversation,
    (parent, position): (Option<usize>, usize),
    place: usize,
    json: &RawValue,
) -> Result<usize, Refusal> {
    let mut message = Fields::read(json)?;
    let id = message.take_id("uuid")?;
    message.take(PARENT);
    let created_at = instant(&mut message, "created_at");
    let node = Node { parent, position, source_id: id.as_deref(), place: &place.to_string() };
    conversation.push_node(&node, created_at, read_message(message)?)
}

fn read_message(mut message: Fields<'_>) -> Result<Content, Refusal> {
    let role = match message.require_text("sender")?.as_str() {
        "human" => Role::User,
        "assistant" => Role::Assistant,
        _ => return Err(Refusal::new("`sender` is neither human nor assistant")),
    };
    let mut content = Content::empty(role);
    // `text` says again what the items of `content` say; older exports have nothing else.
    let text = message.take_text("text")?.unwrap_or_default();
    for item in message.take_list("content")?.unwrap_or_default() {
        content.parts.push(read_item(item).map_err(|refusal| refusal.at("content"))?);
    }
    if content.parts.is_empty() && !text.is_empty() {
        content.parts.push(Part::Text(text));
    }
    let attachments = message.take_list("attachments")?.unwrap_or_default();
    let files = message.take_value("files")?;
    content.metadata = message.into_map()?;
    each_object("attachment", attachments, |_, attachment| attach(attachment, &mut content))?;
    if let Some(files) = files.filter(|files| files.as_array().is_none_or(|files| !files.is_empty())) {
        content.metadata.insert("files".to_owned(), files);
    }
    Ok(content)
}

fn attach(mut attachment: Fields<'_>, content: &mut Content) -> Result<(), Refusal> {
    let text = attachment.take_text("extracted_content")?.filter(|text| !text.is_empty());
    let mut about = attachment.into_map()?;
    if let Some(text) = text {
        about.insert("part".to_owned(), content.parts.len().into());
        content.parts.push(Part::Text(text));
    }
    match content.metadata.entry("attachments").or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(attachments) => attachments.push(about.into()),
        other => *other = vec![Value::Object(about)].into(),
    }
    Ok(())
}

fn read_item(json: &RawValue) -> Result<Part, Refusal> {
    let mut item = Fields::read(json)?;
    let known = match item.take_text("type")?.as_deref() {
        Some("text") => item.take_text("text")?.map(Part::Text),
        Some("thinking") => item.take_text("thinking")?.map(Part::Reasoning),
        Some("tool_use") => tool_call(item)?,
        Some("tool_result") => tool_result(item)?,
        _ => None,
    };
    match known {
        Some(part) => Ok(part),
        None => Ok(Part::Raw { format: RAW_FORMAT.to_owned(), json: exact(json)? }),
    }
}

fn tool_call(mut item: Fields<'_>) -> Result<Option<Part>, Refusal> {
    let (id, name) = (item.take_text("id")?, item.take_text("name")?);
    let name = name.filter(|name| clean_name(name).as_ref() == Some(name));
    match (id, name, item.take("input")) {
        (Some(id), Some(name), Some(input)) => {
            Ok(Some(Part::ToolCall(ToolCall { id, name, arguments: exact(input)? })))
        }
        _ => Ok(None),
    }
}

fn tool_result(mut item: Fields<'_>) -> Result<Option<Part>, Refusal> {
    let Some(call_id) = item.take_text("tool_use_id")? else { return Ok(None) };
    let output = match item.take("content") {
        None => String::new(),
        Some(content) => output(content)?,
    };
    let is_error = item.take_value("is_error")? == Some(Value::Bool(true));
    Ok(Some(Part::ToolResult(ToolResult { call_id, output, is_error })))
}

/// One text is that text; several items stay JSON, because joined they could not be told apart again.
fn output(content: &RawValue) -> Result<String, Refusal> {
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
