//! Reads the messages of a chat request.

use serde_json::value::RawValue;
use threadkeep::{Content, Draft, ImageReference, JsonText, Part, Role, ToolCall, ToolResult, Value};

use crate::error::ApiError;
use crate::openai::items::arguments_json;

/// The maximum number of messages in one request.
const MAX_MESSAGES: usize = 2_000;

pub(super) fn read_messages(messages: &[Box<RawValue>]) -> Result<Vec<Draft>, ApiError> {
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        return Err(ApiError::invalid(
            "messages",
            format!("Invalid 'messages': expected 1 to {MAX_MESSAGES} messages."),
        ));
    }
    messages.iter().enumerate().map(|(index, message)| read_message(message, &format!("messages[{index}]"))).collect()
}

fn read_message(json: &RawValue, param: &str) -> Result<Draft, ApiError> {
    let invalid = |what: &str| ApiError::invalid(param, format!("Invalid '{param}': {what}"));
    let message: Value = serde_json::from_str(json.get()).map_err(|_| invalid("expected an object"))?;
    let role = match message["role"].as_str() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        _ => return Err(invalid("'role' must be one of developer, system, user, assistant, tool")),
    };
    let mut content = Content::empty(role);
    content.author = message["name"].as_str().map(str::to_owned);
    let parts =
        read_parts(&message["content"]).ok_or_else(|| invalid("'content' must be a string or an array of parts"))?;
    if role == Role::Tool {
        let call_id = message["tool_call_id"].as_str().or(message["name"].as_str());
        let call_id = call_id.ok_or_else(|| invalid("'tool_call_id' is missing"))?.to_owned();
        let output = parts.iter().filter_map(Part::text).collect::<Vec<_>>().join("\n");
        content.parts = vec![Part::ToolResult(ToolResult { call_id, output, is_error: false })];
        content.author = None;
        return Ok(Draft::new(content));
    }
    content.parts = parts;
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        content
            .parts
            .push(read_tool_call(call).ok_or_else(|| invalid("a tool call requires an id, a name and arguments"))?);
    }
    Ok(Draft::new(content))
}

fn read_parts(content: &Value) -> Option<Vec<Part>> {
    match content {
        Value::Null => Some(Vec::new()),
        Value::String(text) => Some(vec![Part::Text(text.clone())]),
        Value::Array(list) => list.iter().map(read_part).collect(),
        _ => None,
    }
}

fn read_part(part: &Value) -> Option<Part> {
    match part["type"].as_str()? {
        "text" => part["text"].as_str().map(|text| Part::Text(text.to_owned())),
        "refusal" => part["refusal"].as_str().map(|text| Part::Text(text.to_owned())),
        "image_url" => {
            let url = part["image_url"]["url"].as_str()?.to_owned();
            let detail = part["image_url"]["detail"].as_str().map(str::to_owned);
            Some(Part::Image(ImageReference { url, description: None, detail }))
        }
        _ => Some(Part::Raw { format: "openai.chat".to_owned(), json: JsonText::from(part) }),
    }
}

fn read_tool_call(call: &Value) -> Option<Part> {
    let (id, function) = (call["id"].as_str()?.to_owned(), &call["function"]);
    let name = function["name"].as_str()?.to_owned();
    let arguments = function["arguments"].as_str()?;
    let arguments = JsonText::new(arguments).or_else(|_| arguments_json(arguments)).ok()?;
    Some(Part::ToolCall(ToolCall { id, name, arguments }))
}
