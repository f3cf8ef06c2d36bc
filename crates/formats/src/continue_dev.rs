//! Reads session files of Continue: `~/.continue/sessions/ID.json`, one object per file.
//!
//! The fixture was written by version 1.5.47 of the npm package `@continuedev/cli`.
//!
//! The messages have no times, so the thread gets the time at which the file was last changed. Tool outputs are stored
//! next to the calls (`toolCallStates`); they become messages with the role `tool`. Attached context becomes a raw
//! part.

use serde_json::value::RawValue;
use threadkeep_core::{Content, ImageReference, Part, Role};

use crate::conversation::{Conversation, numbered};
use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, kind};
use crate::file::FileName;
use crate::records::Record;
use crate::session::copy_metadata;
use crate::{Format, identity, tool_parts};

const RAW_FORMAT: &str = "continue.session";
/// The placeholder titles of sessions without a title.
const UNTITLED: [&str; 2] = ["Untitled Session", "New Session"];

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>, file: &FileName) -> Result<Conversation, Rejection> {
    let id = fields.take_text("sessionId")?;
    let history = fields.require_list("history")?;
    let mut conversation = Conversation::new(Format::Continue, record, id.as_deref())?;
    let title = fields.take_text("title")?;
    conversation.set_title(title.filter(|title| !UNTITLED.contains(&title.as_str())));
    conversation.set_created_at(file.changed_at);
    if let Some(folder) = fields.take_text("workspaceDirectory")?.filter(|folder| !folder.is_empty()) {
        conversation.add_metadata("cwd", folder.into());
    }
    conversation.add_remaining_metadata(fields)?;
    conversation.each_message("message", history, |conversation, index, mut item| {
        let mut message = item.take_fields("message")?.ok_or_else(|| fields::missing("message"))?;
        let content = read_message(&mut message, &mut item)?;
        let position = index + 1;
        if !content.parts.is_empty() {
            let id = identity::message_id_by_content(position, &content);
            conversation.push(Some(&id), None, content)?;
        }
        for (index, state) in item.take_list("toolCallStates")?.unwrap_or_default().into_iter().enumerate() {
            let state = Fields::read(state).and_then(read_result);
            if let Some((call, part)) = state.map_err(|rejection| rejection.at(numbered("tool call", index)))? {
                let content = Content { parts: vec![part], ..Content::empty(Role::Tool) };
                conversation.push(Some(&format!("{position}/{call}")), None, content)?;
            }
        }
        Ok(())
    });
    Ok(conversation)
}

fn read_message(message: &mut Fields<'_>, item: &mut Fields<'_>) -> Result<Content, Rejection> {
    let role = message.require_text("role")?;
    let mut content = Content::empty(match role.as_str() {
        "user" => Role::User,
        "assistant" | "thinking" => Role::Assistant,
        "system" => Role::System,
        "tool" => Role::Tool,
        _ => return Err(Rejection::new("`role` is not one of user, assistant, thinking, system, tool")),
    });
    if let (Role::Tool, Some(call)) = (content.role, message.take_text("toolCallId")?) {
        let output = message.take("content").map_or_else(|| Ok(String::new()), tool_parts::output)?;
        content.parts.push(tool_parts::result(call, output, false));
    } else if let Some(body) = message.take("content") {
        read_body(body, &mut content).map_err(|rejection| rejection.at("content"))?;
    }
    if role == "thinking" {
        let as_reasoning = |part| if let Part::Text(text) = part { Part::Reasoning(text) } else { part };
        content.parts = std::mem::take(&mut content.parts).into_iter().map(as_reasoning).collect();
    }
    for call in message.take_list("toolCalls")?.unwrap_or_default() {
        content.parts.push(read_call(call).map_err(|rejection| rejection.at("toolCalls"))?);
    }
    for context in item.take_list("contextItems")?.unwrap_or_default() {
        content.parts.push(tool_parts::raw(RAW_FORMAT, context)?);
    }
    copy_metadata(message, &["usage"], &mut content.metadata)?;
    Ok(content)
}

fn read_body(json: &RawValue, content: &mut Content) -> Result<(), Rejection> {
    if kind(json) != Kind::List {
        let text = fields::text(json)?;
        content.parts.extend((!text.is_empty()).then_some(Part::Text(text)));
        return Ok(());
    }
    for item in fields::list(json)? {
        let mut part = Fields::read(item)?;
        let known_part = match part.take_text("type")?.as_deref() {
            Some("text") => part.take_text("text")?.map(Part::Text),
            Some("imageUrl") => {
                let url = part.take_fields("imageUrl")?.map(|mut image| image.require_text("url")).transpose()?;
                url.map(|url| Part::Image(ImageReference { url, description: None, detail: None }))
            }
            _ => None,
        };
        content.parts.push(known_part.map_or_else(|| tool_parts::raw(RAW_FORMAT, item), Ok)?);
    }
    Ok(())
}

fn read_call(json: &RawValue) -> Result<Part, Rejection> {
    let mut call = Fields::read(json)?;
    let id = call.take_text("id")?;
    let function = call.take_fields("function")?;
    let known_call = match (id, function) {
        (Some(id), Some(mut function)) => {
            let name = function.require_text("name")?;
            tool_parts::call(id, name, tool_parts::arguments(function.take("arguments"))?)
        }
        _ => None,
    };
    known_call.map_or_else(|| tool_parts::raw(RAW_FORMAT, json), Ok)
}

/// Returns the id of the call and its result, or `None` if the call has no output yet.
fn read_result(mut state: Fields<'_>) -> Result<Option<(String, Part)>, Rejection> {
    let id = state.require_text("toolCallId")?;
    let is_error = matches!(state.take_text("status")?.as_deref(), Some("errored" | "canceled"));
    let Some(items) = state.take_list("output")? else { return Ok(None) };
    let mut output = Vec::new();
    for item in items {
        let text = Fields::read(item)?.take_text("content")?;
        output.push(text.unwrap_or_else(|| item.get().to_owned()));
    }
    let part = tool_parts::result(id.clone(), output.join("\n"), is_error);
    Ok(Some((id, part)))
}
