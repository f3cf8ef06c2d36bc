//! `conversations.json` of Claude's data export: a list of conversations with `chat_messages`.
//!
//! Text, tool calls with their results and thoughts become parts of their own kinds, everything else a raw part. The text of
//! an attached file follows the message as a text part, because the model read it; the metadata's `attachments` say
//! what the files were. Whatever else stands in a message or beside the messages goes to the metadata.

use serde_json::value::RawValue;
use threadkeep_core::{Content, Part, Role, ToolCall, ToolResult, Value};

use crate::Format;
use crate::conversation::{Conversation, clean_name, each_object, instant};
use crate::error::Refusal;
use crate::fields::{self, Fields, Kind, exact, kind};
use crate::records::Record;

const RAW_FORMAT: &str = "claude.export";

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Refusal> {
    let id = fields.take_id("uuid")?;
    let messages = fields.require_list("chat_messages")?;
    let mut conversation = Conversation::new(Format::ClaudeExport, record, id.as_deref())?;
    conversation.set_title(fields.take_text("name")?);
    conversation.set_created_at(instant(&mut fields, "created_at"));
    conversation.keep_rest(fields)?;
    each_object("message", messages, |_, mut message| {
        let id = message.take_id("uuid")?;
        let created_at = instant(&mut message, "created_at");
        conversation.push(id.as_deref(), created_at, read_message(message)?)
    })?;
    Ok(conversation)
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
