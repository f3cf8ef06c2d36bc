//! What a client asks a model: tools and how they may be called, in the two ways in which this wire says it.

use serde::Deserialize;
use serde_json::value::RawValue;
use threadkeep::core::{AnswerFormat, ChatMessage, ToolChoice, ToolDescription};
use threadkeep::{Draft, JsonText, Value};

use super::items::{self, Given};
use crate::error::ApiError;

/// Tools of one request at most.
const TOOLS: usize = 128;
/// Items of an input at most: clients that keep a conversation themselves send all of it, every time.
const ITEMS: usize = 20_000;
/// What is new in a conversation at most: the store takes it in one commit, with the answer.
const NEW: usize = threadkeep::core::limits::COMMIT_MESSAGES / 2;
/// Texts that may end an answer.
const STOPS: usize = 4;

/// A tool: a function, whose members stand in it or in its `function`.
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

/// Reads the tools that a model may call.
pub(super) fn tools(given: Option<Vec<ToolJson>>) -> Result<Vec<ToolDescription>, ApiError> {
    let given = given.unwrap_or_default();
    if given.len() > TOOLS {
        return Err(ApiError::invalid("tools", format!("Invalid 'tools': at most {TOOLS} are taken.")));
    }
    given.into_iter().enumerate().map(|(index, tool)| description(tool, index)).collect()
}

fn description(tool: ToolJson, index: usize) -> Result<ToolDescription, ApiError> {
    let place = format!("tools[{index}]");
    if tool.r#type != "function" {
        let message =
            format!("Invalid '{place}.type': this server runs no tools of its own; only functions are taken.");
        return Err(ApiError::invalid(format!("{place}.type"), message));
    }
    let function = match tool.function {
        Some(function) => function,
        None => {
            let members = Value::Object(tool.flat.into_iter().collect());
            serde_json::from_value(members)
                .map_err(|_| ApiError::invalid(place.clone(), format!("Invalid '{place}': a function has a name.")))?
        }
    };
    if !is_name(&function.name) {
        let message = format!("Invalid '{place}.name': letters, digits, '_' and '-', at most 64.");
        return Err(ApiError::invalid(format!("{place}.name"), message));
    }
    let open = serde_json::json!({ "type": "object", "properties": {} });
    let parameters = JsonText::of(&function.parameters.unwrap_or(open))?;
    let FunctionJson { name, description, strict: is_strict, .. } = function;
    Ok(ToolDescription { name, description: description.unwrap_or_default(), parameters, is_strict })
}

/// Reads whether tools may, must or must not be called.
pub(super) fn tool_choice(given: Option<&Value>) -> Result<ToolChoice, ApiError> {
    match given {
        None | Some(Value::Null) => Ok(ToolChoice::Auto),
        Some(Value::String(word)) if word == "auto" => Ok(ToolChoice::Auto),
        Some(Value::String(word)) if word == "none" => Ok(ToolChoice::None),
        Some(Value::String(word)) if word == "required" => Ok(ToolChoice::Required),
        Some(Value::Object(choice)) => {
            let name = choice.get("name").or_else(|| choice.get("function").and_then(|function| function.get("name")));
            let name = name.and_then(Value::as_str).map(|name| ToolChoice::Named(name.to_owned()));
            name.ok_or_else(|| ApiError::invalid("tool_choice", "Invalid 'tool_choice': no function is named."))
        }
        Some(_) => Err(ApiError::invalid("tool_choice", "Invalid 'tool_choice': auto, none, required or a function.")),
    }
}

/// Reads the form that an answer must have: with a schema's members in it, or in its `json_schema`.
pub(super) fn format(given: Option<&Value>, place: &str) -> Result<Option<AnswerFormat>, ApiError> {
    let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(None) };
    let invalid = |what: &str| ApiError::invalid(place, format!("Invalid '{place}': {what}"));
    match given["type"].as_str() {
        Some("text") => return Ok(None),
        Some("json_object") => return Ok(Some(AnswerFormat::Json)),
        Some("json_schema") => {}
        _ => return Err(invalid("expected the type 'text', 'json_object' or 'json_schema'.")),
    }
    let told = given.get("json_schema").unwrap_or(given);
    let name = told["name"].as_str().filter(|name| is_name(name));
    let name = name.ok_or_else(|| invalid("a schema has a name: letters, digits, '_' and '-', at most 64."))?;
    let schema = told.get("schema").filter(|schema| schema.is_object());
    Ok(Some(AnswerFormat::Schema {
        name: name.to_owned(),
        description: told["description"].as_str().map(str::to_owned),
        schema: JsonText::of(schema.ok_or_else(|| invalid("the schema is missing."))?)?,
        is_strict: told["strict"].as_bool(),
    }))
}

/// Reads the texts that end an answer: one or several.
pub(super) fn stop(given: Option<&Value>) -> Result<Vec<String>, ApiError> {
    let texts = match given {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(text)) => Some(vec![text.clone()]),
        Some(Value::Array(texts)) if texts.len() <= STOPS => {
            texts.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        }
        Some(_) => None,
    };
    texts.ok_or_else(|| ApiError::invalid("stop", format!("Invalid 'stop': a text, or at most {STOPS}.")))
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// What a model is shown of messages that are not stored yet.
pub(super) fn shown(drafts: &[Draft]) -> Vec<ChatMessage> {
    let shown = drafts.iter().filter(|draft| !draft.content.parts.is_empty());
    let shown = shown.map(|draft| ChatMessage {
        role: draft.content.role,
        author: draft.content.author.clone(),
        parts: draft.content.parts.clone(),
        seq: None,
    });
    shown.collect()
}

/// Refuses what is more than one commit takes.
pub(super) fn check_new(count: usize, param: &str) -> Result<(), ApiError> {
    if count <= NEW {
        return Ok(());
    }
    let message = format!("Invalid '{param}': at most {NEW} are added to a conversation at once.");
    Err(ApiError::invalid(param, message))
}

/// Reads an input that is a text or a list of items.
pub(super) fn input(given: Option<&RawValue>) -> Result<Vec<Given>, ApiError> {
    let Some(given) = given.filter(|given| given.get() != "null") else { return Ok(Vec::new()) };
    if let Ok(text) = serde_json::from_str::<String>(given.get()) {
        return Ok(vec![Given::Item(Box::new(Draft::user(text)))]);
    }
    let items: Vec<Box<RawValue>> = serde_json::from_str(given.get())
        .map_err(|_| ApiError::invalid("input", "Invalid 'input': expected a text or a list of items."))?;
    if items.len() > ITEMS {
        return Err(ApiError::invalid("input", format!("Invalid 'input': at most {ITEMS} items are taken.")));
    }
    items::read_each(&items, "input")
}
