use serde_json::value::RawValue;
use threadkeep::{Content, Draft, ImageReference, JsonText, Part, Role, ToolCall, ToolResult, Value};

use super::super::ids;
use super::super::members::{Members, json_string};
use super::{
    DATA, DEFAULT_DETAIL, FORMAT, PART_FORMAT, ROLE, id_prefix, image_part_json, is_same_json, text_part_json,
};
use crate::error::ApiError;

/// The maximum number of items in one request. OpenAI allows 20, but the Agents SDK for JavaScript sends all items of a run in one
/// request.
const MAX_ITEMS: usize = 500;

/// An item of a request.
pub(crate) enum InputItem {
    Item(Box<Draft>),
    /// The id of an item that is already stored.
    Reference(String),
}

impl InputItem {
    /// Returns the item; `None` for a reference.
    pub(crate) fn draft(&self) -> Option<&Draft> {
        match self {
            Self::Item(draft) => Some(draft),
            Self::Reference(_) => None,
        }
    }
}

/// Reads the items of a request, up to [`MAX_ITEMS`].
pub(crate) fn read_all(items: &[Box<RawValue>]) -> Result<Vec<InputItem>, ApiError> {
    if items.len() > MAX_ITEMS {
        let message = format!(
            "Invalid 'items': array too long. Expected an array with maximum length {MAX_ITEMS}, but got an array with length {} instead.",
            items.len()
        );
        return Err(ApiError::invalid("items", message).code("array_above_max_length"));
    }
    read_each(items, "items")
}

/// Reads any number of items and references to items. Errors name the parameter `param`.
pub(crate) fn read_each(items: &[Box<RawValue>], param: &str) -> Result<Vec<InputItem>, ApiError> {
    let each = items.iter().enumerate().map(|(index, item)| match referenced_id(item) {
        Some(id) => Ok(InputItem::Reference(id)),
        None => Ok(InputItem::Item(Box::new(read_item(item, &format!("{param}[{index}]"))?))),
    });
    each.collect()
}

/// Returns the id of the referenced item if `item` is a reference: an object that contains only an id, or has the type
/// `item_reference`.
fn referenced_id(item: &RawValue) -> Option<String> {
    let members = Members::read(item.get()).ok()?;
    let is_reference = match members.get("type") {
        None | Some("null") => members.has_only(&["id", "type"]),
        Some(_) => members.get_string("type").is_some_and(|kind| kind == "item_reference"),
    };
    members.get_string("id").filter(|_| is_reference)
}

/// Converts an item into a message.
pub(crate) fn read_item(item: &RawValue, param: &str) -> Result<Draft, ApiError> {
    let invalid = |what: &str| ApiError::invalid(param, format!("Invalid '{param}': {what}"));
    let members = Members::read(item.get()).map_err(|_| invalid("expected an object"))?;
    let kind = match members.get("type") {
        Some(_) => members.get_string("type").ok_or_else(|| invalid("'type' is not a string"))?,
        None if members.get("role").is_some() => "message".to_owned(),
        None => {
            return Err(ApiError::invalid(format!("{param}.type"), "Missing required parameter: 'type'.")
                .code("missing_required_parameter"));
        }
    };
    let id = match members.get("id") {
        None | Some("null") => None,
        Some(_) => Some(
            members
                .get_string("id")
                .filter(|id| ids::is_item_id(id))
                .ok_or_else(|| invalid("'id' is not a valid id"))?,
        ),
    };
    let content = match kind.as_str() {
        "message" => read_message(members, param)?,
        "function_call" => read_function_call(members, param)?,
        "function_call_output" => read_function_call_output(members, param)?,
        "reasoning" => read_reasoning(members)?,
        "compaction" => read_compaction(members, item)?,
        "item_reference" => return Err(invalid("a reference requires the 'id' of an item")),
        _ => read_unknown_item(&kind, item)?,
    };
    let draft = Draft::new(content);
    Ok(match id {
        None => draft,
        Some(id) => match ids::generated_message_id(id_prefix(&kind), &id) {
            Some(message_id) => draft.with_id(message_id),
            None => draft.with_external_id(id),
        },
    })
}

fn read_message(mut members: Members, param: &str) -> Result<Content, ApiError> {
    let invalid = |member: &str, what: &str| {
        ApiError::invalid(format!("{param}.{member}"), format!("Invalid '{param}.{member}': {what}"))
    };
    let name = members.get_string("role").ok_or_else(|| invalid("role", "expected a string"))?;
    let role = match name.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" | "developer" => Role::System,
        _ => return Err(invalid("role", "expected one of user, assistant, system, developer")),
    };
    let value = members.get("content").filter(|value| *value != "null");
    let value = value.ok_or_else(|| {
        let message = format!("Missing required parameter: '{param}.content'.");
        ApiError::invalid(format!("{param}.content"), message).code("missing_required_parameter")
    })?;
    let is_output = role == Role::Assistant;
    let (parts, content_json) = match serde_json::from_str::<String>(value) {
        Ok(text) => (vec![Part::Text(text.clone())], format!("[{}]", text_part_json(is_output, &text))),
        Err(_) => {
            let list: Vec<Box<RawValue>> = serde_json::from_str(value)
                .map_err(|_| invalid("content", "expected a string or an array of parts"))?;
            let parts = list.iter().map(|part| read_content_part(part)).collect::<Option<Vec<Part>>>();
            let list: Vec<String> = list.iter().map(|part| with_output_fields(part)).collect();
            let parts = parts.ok_or_else(|| invalid("content", "a part must be an object with a 'type'"))?;
            (parts, format!("[{}]", list.join(",")))
        }
    };
    members.set("type", "\"message\"");
    members.set("content", content_json.clone());
    members.set_if_null("status", "\"completed\"");
    members.remove("id");
    let plain_json = plain_content_json(&parts, is_output);
    let is_plain = members.has_only(&["type", "role", "content", "status"])
        && members.get("status") == Some("\"completed\"")
        && plain_json.is_some_and(|plain_json| is_same_json(&plain_json, &content_json));
    let mut content = Content { parts, ..Content::empty(role) };
    if name == "developer" {
        content.metadata.insert(ROLE.to_owned(), name.into());
    }
    if !is_plain {
        content.data = Some(exact_data(&members)?);
    }
    Ok(content)
}

/// Returns the JSON of content that contains only text and images; `None` for any other content.
fn plain_content_json(parts: &[Part], is_output: bool) -> Option<String> {
    let parts = parts.iter().map(|part| match part {
        Part::Text(text) => Some(text_part_json(is_output, text)),
        Part::Image(image) if !is_output => Some(image_part_json(image)),
        _ => None,
    });
    Some(format!("[{}]", parts.collect::<Option<Vec<_>>>()?.join(",")))
}

/// Returns a content part with the fields that clients expect in an output text. All other parts are returned unchanged.
fn with_output_fields(part: &RawValue) -> String {
    let Ok(mut members) = Members::read(part.get()) else { return part.get().to_owned() };
    if members.get_string("type").as_deref() != Some("output_text") {
        return part.get().to_owned();
    }
    let original = members.clone();
    members.set_if_null("annotations", "[]");
    members.set_if_null("logprobs", "[]");
    if members == original { part.get().to_owned() } else { members.to_json() }
}

fn read_content_part(json: &RawValue) -> Option<Part> {
    let members = Members::read(json.get()).ok()?;
    let known = match members.get_string("type")?.as_str() {
        "input_text" | "output_text" | "text" => members.get_string("text").map(Part::Text),
        "refusal" => members.get_string("refusal").map(Part::Text),
        "input_image" => {
            let detail = members.get_string("detail").filter(|detail| detail != DEFAULT_DETAIL);
            members.get_string("image_url").map(|url| Part::Image(ImageReference { url, description: None, detail }))
        }
        _ => None,
    };
    // Any other part is returned as it was received.
    let raw = || Some(Part::Raw { format: PART_FORMAT.to_owned(), json: JsonText::new(json.get()).ok()? });
    known.map_or_else(raw, Some)
}

/// Converts arguments that are not JSON into a JSON string, or into `{}` if they are empty. A call with such arguments must not be
/// dropped, because its result refers to it.
pub(crate) fn arguments_json(arguments: &str) -> Result<JsonText, ApiError> {
    Ok(if arguments.trim().is_empty() { JsonText::new("{}")? } else { JsonText::new(json_string(arguments))? })
}

fn read_function_call(mut members: Members, param: &str) -> Result<Content, ApiError> {
    let [id, name, arguments] = ["call_id", "name", "arguments"].map(|member| required_string(&members, param, member));
    let (id, name, arguments) = (id?, name?, arguments?);
    members.set("type", "\"function_call\"");
    members.set_if_null("status", "\"completed\"");
    members.remove("id");
    let exact = JsonText::new(arguments.clone()).ok();
    let is_json = exact.is_some();
    let arguments = exact.map_or_else(|| arguments_json(&arguments), Ok)?;
    let mut content = Content::empty(Role::Assistant);
    content.parts = vec![Part::ToolCall(ToolCall { id, name, arguments })];
    let known: &[&str] = if is_json { &["type", "call_id", "name", "arguments", "status"] } else { &[] };
    keep_other_fields(&mut content, &members, known)?;
    Ok(content)
}

fn read_function_call_output(mut members: Members, param: &str) -> Result<Content, ApiError> {
    let call_id = required_string(&members, param, "call_id")?;
    let output = members.get("output").ok_or_else(|| missing_error(param, "output"))?;
    let text = serde_json::from_str::<String>(output);
    let is_text = text.is_ok();
    // A model receives the parts as one text. The parts themselves are stored in the message's data, because they cannot be
    // recovered from the text.
    let output = text.unwrap_or_else(|_| join_text_parts(output).unwrap_or_else(|| output.to_owned()));
    members.set("type", "\"function_call_output\"");
    members.set_if_null("status", "\"completed\"");
    members.remove("id");
    let mut content = Content::empty(Role::Tool);
    content.parts = vec![Part::ToolResult(ToolResult { call_id, output, is_error: false })];
    let known: &[&str] = if is_text { &["type", "call_id", "output", "status"] } else { &[] };
    keep_other_fields(&mut content, &members, known)?;
    Ok(content)
}

/// Joins the text parts of an output. Returns `None` if the output has other parts.
fn join_text_parts(output: &str) -> Option<String> {
    let parts: Vec<Value> = serde_json::from_str(output).ok()?;
    let text = |part: &Value| part["text"].as_str().filter(|_| part["type"] == "input_text").map(str::to_owned);
    Some(parts.iter().map(text).collect::<Option<Vec<_>>>()?.join("\n"))
}

fn read_reasoning(mut members: Members) -> Result<Content, ApiError> {
    let summary: Vec<Value> =
        members.get("summary").and_then(|summary| serde_json::from_str(summary).ok()).unwrap_or_default();
    let texts: Vec<&str> = summary.iter().filter_map(|part| part["text"].as_str()).collect();
    members.remove("id");
    let mut content = Content::empty(Role::Assistant);
    if !texts.is_empty() {
        content.parts.push(Part::Reasoning(texts.join("\n")));
    }
    content.data = Some(exact_data(&members)?);
    Ok(content)
}

fn read_compaction(mut members: Members, item: &RawValue) -> Result<Content, ApiError> {
    let notes = members.get_string("encrypted_content").and_then(|content| super::compaction::read_notes(&content));
    let Some((role, part)) = notes else { return read_unknown_item("compaction", item) };
    members.remove("id");
    Ok(Content { parts: vec![part], data: Some(exact_data(&members)?), ..Content::empty(role) })
}

fn read_unknown_item(kind: &str, item: &RawValue) -> Result<Content, ApiError> {
    let role = if kind.ends_with("_output") || kind.ends_with("_response") { Role::Tool } else { Role::Assistant };
    let json = JsonText::new(item.get())?;
    Ok(Content { parts: vec![Part::Raw { format: FORMAT.to_owned(), json }], ..Content::empty(role) })
}

/// Stores the exact item in the message's data if it has fields other than `known` or is not completed.
fn keep_other_fields(content: &mut Content, members: &Members, known: &[&str]) -> Result<(), ApiError> {
    if !members.has_only(known) || members.get("status") != Some("\"completed\"") {
        content.data = Some(exact_data(members)?);
    }
    Ok(())
}

/// Returns the message data that contains the exact item without its id.
fn exact_data(members: &Members) -> Result<JsonText, ApiError> {
    Ok(JsonText::new(format!("{{{}:{}}}", json_string(DATA), members.to_json()))?)
}

fn required_string(members: &Members, param: &str, member: &str) -> Result<String, ApiError> {
    members.get_string(member).ok_or_else(|| missing_error(param, member))
}

fn missing_error(param: &str, member: &str) -> ApiError {
    let message = format!("Missing required parameter: '{param}.{member}'.");
    ApiError::invalid(format!("{param}.{member}"), message).code("missing_required_parameter")
}
