//! OpenAI's chat format for fine-tuning: one conversation a line, `{"messages": [{"role": …, "content": …}]}`.
//!
//! Neither conversations nor messages have ids of their own. `tools`, `parallel_tool_calls` and whatever else stands beside the
//! messages goes to the thread's metadata; `weight` and whatever else stands in a message, to the message's. The roles
//! `developer` and `function` become `system` and `tool` and stay in the metadata. Calls in the old form
//! (`function_call`) have no id; they get one that counts from the message, and the next result of that function names it.

use serde_json::value::RawValue;
use threadkeep_core::{Content, ImageReference, JsonText, Part, Role, ToolCall, ToolResult};

use crate::Format;
use crate::conversation::{Conversation, clean_name};
use crate::error::Refusal;
use crate::fields::{self, Fields, Kind, exact, kind};
use crate::records::Record;

const RAW_FORMAT: &str = "openai.chat";

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Refusal> {
    let messages = fields.require_list("messages")?;
    let mut conversation = Conversation::new(Format::OpenAiChat, record, None)?;
    conversation.keep_rest(fields)?;
    let mut open_call = None;
    conversation.each_message("message", messages, |conversation, index, message| {
        let content = read_message(index, message, &mut open_call)?;
        conversation.push(None, None, content)
    });
    Ok(conversation)
}

/// A call in the old form that no result has answered yet.
struct OpenCall {
    name: String,
    id: String,
}

fn read_message(index: usize, mut message: Fields<'_>, open_call: &mut Option<OpenCall>) -> Result<Content, Refusal> {
    let given_role = message.require_text("role")?;
    let mut content = Content::empty(role(&given_role)?);
    if given_role != content.role.as_str() {
        content.metadata.insert("role".to_owned(), given_role.as_str().into());
    }
    let name = message.take_text("name")?;
    let said = message.take("content");
    let answered = match given_role.as_str() {
        "tool" => message.take_text("tool_call_id")?,
        "function" => Some(answered_call(name.as_deref().unwrap_or_default(), open_call)),
        _ => None,
    };
    content.parts = match (said, answered) {
        (said, Some(call_id)) => vec![tool_result(said, call_id)?],
        (Some(said), None) => parts(said).map_err(|refusal| refusal.at("content"))?,
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

fn role(given: &str) -> Result<Role, Refusal> {
    match given {
        "system" | "developer" => Ok(Role::System),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" | "function" => Ok(Role::Tool),
        _ => Err(Refusal::new("`role` is none of system, developer, user, assistant, tool, function")),
    }
}

fn parts(said: &RawValue) -> Result<Vec<Part>, Refusal> {
    match kind(said) {
        Kind::List => fields::list(said)?.into_iter().map(part).collect(),
        _ => Ok(vec![Part::Text(fields::text(said)?)]),
    }
}

fn part(json: &RawValue) -> Result<Part, Refusal> {
    let mut fields = Fields::read(json)?;
    let known = match fields.take_text("type")?.as_deref() {
        Some("text") => fields.take_text("text")?.map(Part::Text),
        Some("image_url") => image(fields.take("image_url"))?,
        _ => None,
    };
    known.map_or_else(|| raw(json), Ok)
}

fn image(json: Option<&RawValue>) -> Result<Option<Part>, Refusal> {
    let Some(json) = json else { return Ok(None) };
    let url = Fields::read(json)?.take_text("url")?;
    Ok(url.map(|url| Part::Image(ImageReference { url, description: None })))
}

fn tool_result(said: Option<&RawValue>, call_id: String) -> Result<Part, Refusal> {
    let output = match said {
        None => String::new(),
        Some(said) if kind(said) == Kind::Text => fields::text(said)?,
        // Parts stay as they are: joined, they could not be told apart again.
        Some(said) => said.get().to_owned(),
    };
    Ok(Part::ToolResult(ToolResult { call_id, output, is_error: false }))
}

fn tool_call(json: &RawValue) -> Result<Part, Refusal> {
    let mut fields = Fields::read(json).map_err(|refusal| refusal.at("tool_calls"))?;
    let id = fields.take_text("id")?;
    let function = fields.take_fields("function")?;
    let call = match (id, function) {
        (Some(id), Some(function)) => named_call(id, function)?,
        _ => None,
    };
    call.map_or_else(|| raw(json), Ok)
}

fn function_call(index: usize, json: &RawValue, open_call: &mut Option<OpenCall>) -> Result<Part, Refusal> {
    let id = format!("function_call:{}", index + 1);
    let fields = Fields::read(json).map_err(|refusal| refusal.at("function_call"))?;
    let Some(Part::ToolCall(call)) = named_call(id.clone(), fields)? else { return raw(json) };
    *open_call = Some(OpenCall { name: call.name.clone(), id });
    Ok(Part::ToolCall(call))
}

fn answered_call(name: &str, open_call: &mut Option<OpenCall>) -> String {
    match open_call.take_if(|call| call.name == name) {
        Some(call) => call.id,
        None => name.to_owned(),
    }
}

/// `None` when the name is no name or the arguments are not JSON, which models write at times.
fn named_call(id: String, mut function: Fields<'_>) -> Result<Option<Part>, Refusal> {
    let (name, arguments) = (function.take_text("name")?, function.take_text("arguments")?);
    let name = name.filter(|name| clean_name(name).as_ref() == Some(name));
    let arguments = arguments.and_then(|arguments| JsonText::new(arguments).ok());
    Ok(name.zip(arguments).map(|(name, arguments)| Part::ToolCall(ToolCall { id, name, arguments })))
}

fn raw(json: &RawValue) -> Result<Part, Refusal> {
    Ok(Part::Raw { format: RAW_FORMAT.to_owned(), json: exact(json)? })
}
