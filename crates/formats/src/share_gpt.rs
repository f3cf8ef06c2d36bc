//! Reads ShareGPT: `{"id": …, "conversations": [{"from": "human", "value": …}], "system": …}`, in a list or one per line.
//!
//! `system` becomes the first message. If `from` is not `human`, `gpt` or the name of the role, it is copied to the metadata
//! of the message. A `function_call` whose value is `{"name": …, "arguments": …}` becomes a tool call, and the next
//! `observation` or `tool` becomes its result. Other fields of the conversation go to the metadata of the thread.

use serde_json::value::RawValue;
use threadkeep_core::{Content, JsonText, Part, Role, ToolCall, ToolResult};

use crate::Format;
use crate::conversation::{Conversation, clean_name};
use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, kind};
use crate::records::Record;

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Rejection> {
    let id = fields.take_id("id")?;
    let messages = fields.require_list("conversations")?;
    let system = fields.take_text("system")?.filter(|system| !system.is_empty());
    let mut conversation = Conversation::new(Format::ShareGpt, record, id.as_deref())?;
    conversation.add_remaining_metadata(fields)?;
    if let Some(system) = system
        && let Err(rejection) = conversation.push(None, None, Content::text(Role::System, system))
    {
        conversation.skip_message(rejection.at("system"));
    }
    let mut open_call = None;
    conversation.each_message("message", messages, |conversation, index, message| {
        conversation.push(None, None, read_message(index, message, &mut open_call)?)
    });
    Ok(conversation)
}

fn read_message(index: usize, mut message: Fields<'_>, open_call: &mut Option<String>) -> Result<Content, Rejection> {
    let from = message.require_text("from")?;
    let value = message.require_text("value")?;
    let mut content = Content::empty(role(&from)?);
    content.parts = vec![match from.as_str() {
        "function_call" => tool_call(index, value, open_call),
        "observation" | "tool" => tool_result(value, open_call),
        _ => Part::Text(value),
    }];
    if !["human", "gpt", content.role.as_str()].contains(&from.as_str()) {
        content.metadata.insert("from".to_owned(), from.into());
    }
    content.metadata.extend(message.into_map()?);
    Ok(content)
}

fn role(from: &str) -> Result<Role, Rejection> {
    match from {
        "human" | "user" => Ok(Role::User),
        "gpt" | "assistant" | "chatgpt" | "bard" | "function_call" => Ok(Role::Assistant),
        "system" => Ok(Role::System),
        "tool" | "observation" => Ok(Role::Tool),
        _ => Err(Rejection::new(
            "`from` is not one of human, user, gpt, assistant, chatgpt, bard, system, tool, function_call, observation",
        )),
    }
}

fn tool_call(index: usize, value: String, open_call: &mut Option<String>) -> Part {
    let id = format!("function_call:{}", index + 1);
    match read_call(&id, &value) {
        Some(call) => {
            *open_call = Some(id);
            Part::ToolCall(call)
        }
        None => Part::Text(value),
    }
}

fn read_call(id: &str, value: &str) -> Option<ToolCall> {
    let json: &RawValue = serde_json::from_str(value).ok()?;
    let mut fields = Fields::read(json).ok()?;
    let name = fields.take_text("name").ok()?.filter(|name| clean_name(name).as_ref() == Some(name))?;
    let arguments = fields.take("arguments")?;
    let arguments =
        if kind(arguments) == Kind::Text { fields::text(arguments).ok()? } else { arguments.get().to_owned() };
    Some(ToolCall { id: id.to_owned(), name, arguments: JsonText::new(arguments).ok()? })
}

fn tool_result(value: String, open_call: &mut Option<String>) -> Part {
    match open_call.take() {
        Some(call_id) => Part::ToolResult(ToolResult { call_id, output: value, is_error: false }),
        None => Part::Text(value),
    }
}
