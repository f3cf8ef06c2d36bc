//! Reads the parameters of model calls that Responses and Chat Completions have in common: tools, tool choice, answer format, stop
//! sequences and input.

use serde::Deserialize;
use serde_json::value::RawValue;
use threadkeep::core::{AnswerFormat, ChatMessage, ToolChoice, ToolDescription};
use threadkeep::{Draft, JsonText, Value};

use super::items::{self, InputItem};
use crate::error::ApiError;

/// The maximum number of tools in one request.
const MAX_TOOLS: usize = 128;
/// The maximum number of items in an input. Clients that store a conversation themselves send all of it with each request.
const MAX_ITEMS: usize = 20_000;
/// The maximum number of items that one request can add to a conversation. They are stored in one commit together with the
/// answer.
const MAX_NEW_ITEMS: usize = threadkeep::core::limits::COMMIT_MESSAGES / 2;
/// The maximum number of stop sequences.
const MAX_STOPS: usize = 4;

/// A tool of type `function`. The fields of the function are either at the top level (Responses) or in `function` (Chat
/// Completions).
#[derive(Debug, Deserialize)]
pub(super) struct ToolJson {
    r#type: String,
    #[serde(default)]
    function: Option<FunctionJson>,
    #[serde(flatten)]
    flat: std::collections::BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
struct FunctionJson {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
    #[serde(default)]
    strict: Option<bool>,
}

/// Whether an option is set to something other than its default, which is `null`, `false`, 0, or empty.
pub(super) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Array(list) => !list.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(true) | Value::String(_) => true,
    }
}

/// Creates the error for an option that this server does not support. Such an option is not ignored, because the client would get
/// a different answer from the one it asked for.
pub(super) fn unsupported(name: &str) -> ApiError {
    ApiError::invalid(name, format!("Invalid '{name}': this server does not support this option."))
        .code("unsupported_option")
}

/// Creates the error for an option or content that the model would ignore. `name` is the result of [`threadkeep::ChatModel::ignored`],
/// `param` the parameter that contains the messages: `messages` for chat completions, `input` for responses.
pub(super) fn ignored(name: &'static str, param: &'static str) -> ApiError {
    let what = match name {
        "image" => "this server's model cannot load images from this address; use an http, https or data URL",
        "detail" => "this server's model does not support 'detail' for images",
        "file" => "this server's model does not accept this file or audio input",
        _ => return unsupported(option_param(name, param)),
    };
    ApiError::invalid(param, format!("Invalid '{param}': {what}.")).code("unsupported_option")
}

/// Returns the request parameter that sets an option of [`threadkeep::ChatRequest`].
pub(super) fn option_param(name: &'static str, param: &'static str) -> &'static str {
    match (name, param) {
        ("format", "input") => "text.format",
        ("verbosity", "input") => "text.verbosity",
        ("max_tokens", "input") => "max_output_tokens",
        ("format", _) => "response_format",
        _ => name,
    }
}

/// Reads the tools that a model may call.
pub(super) fn read_tools(value: Option<Vec<ToolJson>>) -> Result<Vec<ToolDescription>, ApiError> {
    let value = value.unwrap_or_default();
    if value.len() > MAX_TOOLS {
        return Err(ApiError::invalid("tools", format!("Invalid 'tools': at most {MAX_TOOLS} are allowed.")));
    }
    value.into_iter().enumerate().map(|(index, tool)| read_tool(tool, index)).collect()
}

fn read_tool(tool: ToolJson, index: usize) -> Result<ToolDescription, ApiError> {
    let param = format!("tools[{index}]");
    if tool.r#type != "function" {
        let message =
            format!("Invalid '{param}.type': only 'function' is supported; this server has no built-in tools.");
        return Err(ApiError::invalid(format!("{param}.type"), message));
    }
    let function = match tool.function {
        Some(function) => function,
        None => {
            let members = Value::Object(tool.flat.into_iter().collect());
            serde_json::from_value(members).map_err(|_| {
                ApiError::invalid(param.clone(), format!("Invalid '{param}': a function requires a name."))
            })?
        }
    };
    if !is_valid_name(&function.name) {
        let message = format!("Invalid '{param}.name': expected 1 to 64 letters, digits, '_' or '-'.");
        return Err(ApiError::invalid(format!("{param}.name"), message));
    }
    let any_parameters = serde_json::json!({ "type": "object", "properties": {} });
    let parameters = JsonText::of(&function.parameters.unwrap_or(any_parameters))?;
    let FunctionJson { name, description, strict: is_strict, .. } = function;
    Ok(ToolDescription { name, description: description.unwrap_or_default(), parameters, is_strict })
}

/// Reads the tool choice, which determines whether tools may, must or must not be called.
pub(super) fn read_tool_choice(value: Option<&Value>) -> Result<ToolChoice, ApiError> {
    match value {
        None | Some(Value::Null) => Ok(ToolChoice::Auto),
        Some(Value::String(choice)) if choice == "auto" => Ok(ToolChoice::Auto),
        Some(Value::String(choice)) if choice == "none" => Ok(ToolChoice::None),
        Some(Value::String(choice)) if choice == "required" => Ok(ToolChoice::Required),
        Some(Value::Object(choice)) => {
            let name = choice.get("name").or_else(|| choice.get("function").and_then(|function| function.get("name")));
            let name = name.and_then(Value::as_str).map(|name| ToolChoice::Named(name.to_owned()));
            name.ok_or_else(|| {
                ApiError::invalid("tool_choice", "Invalid 'tool_choice': the function's name is missing.")
            })
        }
        Some(_) => Err(ApiError::invalid(
            "tool_choice",
            "Invalid 'tool_choice': expected 'auto', 'none', 'required' or a function.",
        )),
    }
}

/// Reads the format of the answer; `None` for plain text. The fields of a schema are at the top level (Responses) or in
/// `json_schema` (Chat Completions).
pub(super) fn read_format(value: Option<&Value>, param: &str) -> Result<Option<AnswerFormat>, ApiError> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let invalid = |what: &str| ApiError::invalid(param, format!("Invalid '{param}': {what}"));
    match value["type"].as_str() {
        Some("text") => return Ok(None),
        Some("json_object") => return Ok(Some(AnswerFormat::Json)),
        Some("json_schema") => {}
        _ => return Err(invalid("expected the type 'text', 'json_object' or 'json_schema'.")),
    }
    let format = value.get("json_schema").unwrap_or(value);
    let name = format["name"].as_str().filter(|name| is_valid_name(name));
    let name = name.ok_or_else(|| invalid("a schema requires a name of 1 to 64 letters, digits, '_' or '-'."))?;
    let schema = format.get("schema").filter(|schema| schema.is_object());
    Ok(Some(AnswerFormat::Schema {
        name: name.to_owned(),
        description: format["description"].as_str().map(str::to_owned),
        schema: JsonText::of(schema.ok_or_else(|| invalid("the schema is missing."))?)?,
        is_strict: format["strict"].as_bool(),
    }))
}

/// Reads the stop sequences: a string or an array of strings.
pub(super) fn read_stop_sequences(value: Option<&Value>) -> Result<Vec<String>, ApiError> {
    let texts = match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(text)) => Some(vec![text.clone()]),
        Some(Value::Array(texts)) if texts.len() <= MAX_STOPS => {
            texts.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        }
        Some(_) => None,
    };
    texts.ok_or_else(|| {
        ApiError::invalid(
            "stop",
            format!("Invalid 'stop': expected a string or an array of at most {MAX_STOPS} strings."),
        )
    })
}

fn is_valid_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Converts messages that are not stored yet into messages for a model. Empty messages are omitted.
pub(super) fn to_chat_messages(drafts: &[Draft]) -> Vec<ChatMessage> {
    let drafts = drafts.iter().filter(|draft| !draft.content.parts.is_empty());
    let messages = drafts.map(|draft| ChatMessage {
        role: draft.content.role,
        author: draft.content.author.clone(),
        parts: draft.content.parts.clone(),
        seq: None,
    });
    messages.collect()
}

/// Rejects more new items than one commit can store.
pub(super) fn check_new_items(count: usize, param: &str) -> Result<(), ApiError> {
    if count <= MAX_NEW_ITEMS {
        return Ok(());
    }
    let message =
        format!("Invalid '{param}': at most {MAX_NEW_ITEMS} items can be added to a conversation in one request.");
    Err(ApiError::invalid(param, message))
}

/// Reads an input that is a string or an array of items.
pub(super) fn read_input(value: Option<&RawValue>) -> Result<Vec<InputItem>, ApiError> {
    let Some(value) = value.filter(|value| value.get() != "null") else { return Ok(Vec::new()) };
    if let Ok(text) = serde_json::from_str::<String>(value.get()) {
        return Ok(vec![InputItem::Item(Box::new(Draft::user(text)))]);
    }
    let items: Vec<Box<RawValue>> = serde_json::from_str(value.get())
        .map_err(|_| ApiError::invalid("input", "Invalid 'input': expected a string or an array of items."))?;
    if items.len() > MAX_ITEMS {
        return Err(ApiError::invalid("input", format!("Invalid 'input': at most {MAX_ITEMS} items are allowed.")));
    }
    items::read_each(&items, "input")
}
