//! Reads OpenAI's chat format for fine-tuning: one conversation per line, `{"messages": [{"role": …, "content": …}]}`.
//!
//! Conversations and messages have no ids. Other fields of the conversation, such as `tools` and `parallel_tool_calls`, go
//! to the metadata of the thread. Other fields of a message, such as `weight`, go to the metadata of the message. The roles
//! `developer` and `function` become `system` and `tool`; the metadata contains the original role. Calls in the old form
//! (`function_call`) have no id. They get an id from the number of the message, and the next result of the same function
//! refers to it.

use serde_json::value::RawValue;
use threadkeep_core::{Content, ImageReference, JsonText, Part, Role, ToolCall, ToolResult};

use crate::Format;
use crate::conversation::{Conversation, clean_name};
use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, exact, kind};
use crate::records::Record;

const RAW_FORMAT: &str = "openai.chat";

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Rejection> {
    let messages = fields.require_list("messages")?;
    let mut conversation = Conversation::new(Format::OpenAiChat, record, None)?;
    conversation.add_remaining_metadata(fields)?;
    let mut open_call = None;
    conversation.each_message("message", messages, |conversation, index, message| {
        let content = read_message(index, message, &mut open_call)?;
        conversation.push(None, None, content)
    });
    Ok(conversation)
}

/// A call in the old form that has no result yet.
struct OpenCall {
    name: String,
    id: String,
}

fn read_message(index: usize, mut message: Fields<'_>, open_call: &mut Option<OpenCall>) -> Result<Content, Rejection> {
    let given_role = message.require_text("role")?;
    let mut content = Content::empty(role(&given_role)?);
    if given_role != content.role.as_str() {
        content.metadata.insert("role".to_owned(), given_role.as_str().into());
    }
    let name = message.take_text("name")?;
    let body = message.take("content");
    let call_id = match given_role.as_str() {
        "tool" => message.take_text("tool_call_id")?,
        "function" => Some(matching_call_id(name.as_deref().unwrap_or_default(), open_call)),
        _ => None,
    };
    content.parts = match (body, call_id) {
        (body, Some(call_id)) => vec![tool_result(body, call_id)?],
        (Some(body), None) => parts(body).map_err(|rejection| rejection.at("content"))?,
        (None, None) => Vec::new(),
    };
    for call in message.take_list("tool_calls")?.unwrap_or_default() {
        content.parts.push(tool_call(call)?);
    }
    if let Some(call) = message.take("function_call") {
        content.parts.push(function_call(index, call, open_call)?);
    }
    content.author = name.as_deref().and_then(clean_name);
    content.metadata.extend(message.into_map()?);
    Ok(content)
}

fn role(given: &str) -> Result<Role, Rejection> {
    match given {
        "system" | "developer" => Ok(Role::System),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" | "function" => Ok(Role::Tool),
        _ => Err(Rejection::new("`role` is not one of system, developer, user, assistant, tool, function")),
    }
}

fn parts(body: &RawValue) -> Result<Vec<Part>, Rejection> {
    match kind(body) {
        Kind::List => fields::list(body)?.into_iter().map(part).collect(),
        _ => Ok(vec![Part::Text(fields::text(body)?)]),
    }
}

fn part(json: &RawValue) -> Result<Part, Rejection> {
    let mut fields = Fields::read(json)?;
    let known_part = match fields.take_text("type")?.as_deref() {
        Some("text") => fields.take_text("text")?.map(Part::Text),
        Some("image_url") => image(fields.take("image_url"))?,
        _ => None,
    };
    known_part.map_or_else(|| raw(json), Ok)
}

fn image(json: Option<&RawValue>) -> Result<Option<Part>, Rejection> {
    let Some(json) = json else { return Ok(None) };
    let url = Fields::read(json)?.take_text("url")?;
    Ok(url.map(|url| Part::Image(ImageReference { url, description: None, detail: None })))
}

fn tool_result(body: Option<&RawValue>, call_id: String) -> Result<Part, Rejection> {
    let output = match body {
        None => String::new(),
        Some(body) if kind(body) == Kind::Text => fields::text(body)?,
        // Several parts are stored as JSON, because joining them would lose their boundaries.
        Some(body) => body.get().to_owned(),
    };
    Ok(Part::ToolResult(ToolResult { call_id, output, is_error: false }))
}

fn tool_call(json: &RawValue) -> Result<Part, Rejection> {
    let mut fields = Fields::read(json).map_err(|rejection| rejection.at("tool_calls"))?;
    let id = fields.take_text("id")?;
    let function = fields.take_fields("function")?;
    let call = match (id, function) {
        (Some(id), Some(function)) => named_call(id, function)?,
        _ => None,
    };
    call.map_or_else(|| raw(json), Ok)
}

fn function_call(index: usize, json: &RawValue, open_call: &mut Option<OpenCall>) -> Result<Part, Rejection> {
    let id = format!("function_call:{}", index + 1);
    let fields = Fields::read(json).map_err(|rejection| rejection.at("function_call"))?;
    let Some(Part::ToolCall(call)) = named_call(id.clone(), fields)? else { return raw(json) };
    *open_call = Some(OpenCall { name: call.name.clone(), id });
    Ok(Part::ToolCall(call))
}

fn matching_call_id(name: &str, open_call: &mut Option<OpenCall>) -> String {
    match open_call.take_if(|call| call.name == name) {
        Some(call) => call.id,
        None => name.to_owned(),
    }
}

/// Returns `None` if the name is invalid or the arguments are not JSON, which models occasionally produce.
fn named_call(id: String, mut function: Fields<'_>) -> Result<Option<Part>, Rejection> {
    let (name, arguments) = (function.take_text("name")?, function.take_text("arguments")?);
    let name = name.filter(|name| clean_name(name).as_ref() == Some(name));
    let arguments = arguments.and_then(|arguments| JsonText::new(arguments).ok());
    Ok(name.zip(arguments).map(|(name, arguments)| Part::ToolCall(ToolCall { id, name, arguments })))
}

fn raw(json: &RawValue) -> Result<Part, Rejection> {
    Ok(Part::Raw { format: RAW_FORMAT.to_owned(), json: exact(json)? })
}
