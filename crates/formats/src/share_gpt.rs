//! ShareGPT: `{"id": …, "conversations": [{"from": "human", "value": …}], "system": …}`, in a list or one a line.
//!
//! `system` becomes the first message. A `from` other than `human`, `gpt` and the role's own name stays in the message's
//! metadata. A `function_call` whose value is `{"name": …, "arguments": …}` becomes a tool call; the `observation` or `tool`
//! after it, its result. Whatever else stands beside the messages goes to the thread's metadata.

use serde_json::value::RawValue;
use threadkeep_core::{Content, JsonText, Part, Role, ToolCall, ToolResult};

use crate::Format;
use crate::conversation::{Conversation, clean_name};
use crate::error::Refusal;
use crate::fields::{self, Fields, Kind, kind};
use crate::records::Record;

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Refusal> {
    let id = fields.take_id("id")?;
    let messages = fields.require_list("conversations")?;
    let system = fields.take_text("system")?.filter(|system| !system.is_empty());
    let mut conversation = Conversation::new(Format::ShareGpt, record, id.as_deref())?;
    conversation.keep_rest(fields)?;
    if let Some(system) = system
        && let Err(refusal) = conversation.push(None, None, Content::text(Role::System, system))
    {
        conversation.leave_out(refusal.at("system"));
    }
    let mut open_call = None;
    conversation.each_message("message", messages, |conversation, index, message| {
        conversation.push(None, None, read_message(index, message, &mut open_call)?)
    });
    Ok(conversation)
}

fn read_message(index: usize, mut message: Fields<'_>, open_call: &mut Option<String>) -> Result<Content, Refusal> {
    let from = message.require_text("from")?;
    let value = message.require_text("value")?;
    let mut content = Content::empty(role(&from)?);
    content.parts = vec![match from.as_str() {
        "function_call" => called(index, value, open_call),
        "observation" | "tool" => answered(value, open_call),
        _ => Part::Text(value),
    }];
    if !["human", "gpt", content.role.as_str()].contains(&from.as_str()) {
        content.metadata.insert("from".to_owned(), from.into());
    }
    content.metadata.extend(message.into_map()?);
    Ok(content)
}

fn role(from: &str) -> Result<Role, Refusal> {
    match from {
        "human" | "user" => Ok(Role::User),
        "gpt" | "assistant" | "chatgpt" | "bard" | "function_call" => Ok(Role::Assistant),
        "system" => Ok(Role::System),
        "tool" | "observation" => Ok(Role::Tool),
        _ => Err(Refusal::new(
            "`from` is none of human, user, gpt, assistant, chatgpt, bard, system, tool, function_call, observation",
        )),
    }
}

fn called(index: usize, value: String, open_call: &mut Option<String>) -> Part {
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

fn answered(value: String, open_call: &mut Option<String>) -> Part {
    match open_call.take() {
        Some(call_id) => Part::ToolResult(ToolResult { call_id, output: value, is_error: false }),
        None => Part::Text(value),
    }
}
