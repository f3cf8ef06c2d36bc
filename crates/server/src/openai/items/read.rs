use serde_json::value::RawValue;
use threadkeep::{Content, Draft, ImageReference, JsonText, Part, Role, ToolCall, ToolResult, Value};

use super::super::ids;
use super::super::members::{Members, quoted};
use super::{DATA, FORMAT, PART_FORMAT, ROLE, image_part, is_same, prefix, text_part};
use crate::error::ApiError;

/// Items of one request at most. OpenAI takes 20; the Agents SDK for JavaScript sends all of a run in one.
const ITEMS: usize = 500;

/// An item that comes with a request.
pub(crate) enum Given {
    Item(Box<Draft>),
    /// One that is kept already, by its id.
    Reference(String),
}

/// Reads the items of a request that takes a bounded number of them.
pub(crate) fn read_all(items: &[Box<RawValue>]) -> Result<Vec<Given>, ApiError> {
    if items.len() > ITEMS {
        let message = format!(
            "Invalid 'items': array too long. Expected an array with maximum length {ITEMS}, but got an array with length {} instead.",
            items.len()
        );
        return Err(ApiError::invalid("items", message).code("array_above_max_length"));
    }
    read_each(items, "items")
}

/// Reads items and references to items.
pub(crate) fn read_each(items: &[Box<RawValue>], place: &str) -> Result<Vec<Given>, ApiError> {
    let each = items.iter().enumerate().map(|(index, item)| match reference(item) {
        Some(id) => Ok(Given::Reference(id)),
        None => Ok(Given::Item(Box::new(read(item, &format!("{place}[{index}]"))?))),
    });
    each.collect()
}

/// The id of the item that this one stands for, where it is a reference: no more than an id.
fn reference(item: &RawValue) -> Option<String> {
    let members = Members::read(item.get()).ok()?;
    let is_reference = match members.get("type") {
        None | Some("null") => members.has_only(&["id", "type"]),
        Some(_) => members.text("type").is_some_and(|kind| kind == "item_reference"),
    };
    members.text("id").filter(|_| is_reference)
}

/// Reads an item into a message.
pub(crate) fn read(item: &RawValue, place: &str) -> Result<Draft, ApiError> {
    let invalid = |what: &str| ApiError::invalid(place, format!("Invalid '{place}': {what}"));
    let members = Members::read(item.get()).map_err(|_| invalid("expected an object"))?;
    let kind = match members.get("type") {
        Some(_) => members.text("type").ok_or_else(|| invalid("'type' is not a text"))?,
        None if members.get("role").is_some() => "message".to_owned(),
        None => {
            return Err(ApiError::invalid(format!("{place}.type"), "Missing required parameter: 'type'.")
                .code("missing_required_parameter"));
        }
    };
    let id = match members.get("id") {
        None | Some("null") => None,
        Some(_) => {
            Some(members.text("id").filter(|id| ids::is_item_id(id)).ok_or_else(|| invalid("'id' is not an id"))?)
        }
    };
    let content = match kind.as_str() {
        "message" => message(members, place)?,
        "function_call" => function_call(members, place)?,
        "function_call_output" => function_call_output(members, place)?,
        "reasoning" => reasoning(members)?,
        "compaction" => compaction(members, item)?,
        "item_reference" => return Err(invalid("a reference has the id of an item")),
        _ => unknown(&kind, item)?,
    };
    let draft = Draft::new(content);
    Ok(match id {
        None => draft,
        Some(id) => match ids::given(prefix(&kind), &id) {
            Some(own) => draft.with_id(own),
            None => draft.with_external_id(id),
        },
    })
}

fn message(mut members: Members, place: &str) -> Result<Content, ApiError> {
    let invalid = |member: &str, what: &str| {
        ApiError::invalid(format!("{place}.{member}"), format!("Invalid '{place}.{member}': {what}"))
    };
    let given = members.text("role").ok_or_else(|| invalid("role", "expected a text"))?;
    let role = match given.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" | "developer" => Role::System,
        _ => return Err(invalid("role", "expected one of user, assistant, system, developer")),
    };
    let said = members.get("content").filter(|said| *said != "null");
    let said = said.ok_or_else(|| {
        let message = format!("Missing required parameter: '{place}.content'.");
        ApiError::invalid(format!("{place}.content"), message).code("missing_required_parameter")
    })?;
    let is_output = role == Role::Assistant;
    let (parts, normal) = match serde_json::from_str::<String>(said) {
        Ok(text) => (vec![Part::Text(text.clone())], format!("[{}]", text_part(is_output, &text))),
        Err(_) => {
            let list: Vec<Box<RawValue>> =
                serde_json::from_str(said).map_err(|_| invalid("content", "expected a text or a list of parts"))?;
            let parts = list.iter().map(|part| content_part(part)).collect::<Option<Vec<Part>>>();
            (parts.ok_or_else(|| invalid("content", "a part is an object with a 'type'"))?, said.to_owned())
        }
    };
    members.set("type", "\"message\"");
    members.set("content", normal.clone());
    members.set_if_absent("status", "\"completed\"");
    members.remove("id");
    let plain = plain_content(&parts, is_output);
    let is_plain = members.has_only(&["type", "role", "content", "status"])
        && members.get("status") == Some("\"completed\"")
        && plain.is_some_and(|plain| is_same(&plain, &normal));
    let mut content = Content { parts, ..Content::empty(role) };
    if given == "developer" {
        content.metadata.insert(ROLE.to_owned(), given.into());
    }
    if !is_plain {
        content.data = Some(kept(&members)?);
    }
    Ok(content)
}

/// The content that words and pictures alone are written as; `None` where there is more.
fn plain_content(parts: &[Part], is_output: bool) -> Option<String> {
    let parts = parts.iter().map(|part| match part {
        Part::Text(text) => Some(text_part(is_output, text)),
        Part::Image(image) if !is_output => Some(image_part(&image.url)),
        _ => None,
    });
    Some(format!("[{}]", parts.collect::<Option<Vec<_>>>()?.join(",")))
}

fn content_part(json: &RawValue) -> Option<Part> {
    let members = Members::read(json.get()).ok()?;
    let known = match members.text("type")?.as_str() {
        "input_text" | "output_text" | "text" => members.text("text").map(Part::Text),
        "refusal" => members.text("refusal").map(Part::Text),
        "input_image" => members.text("image_url").map(|url| Part::Image(ImageReference { url, description: None })),
        _ => None,
    };
    // Whatever its shape: it comes back as it is.
    let raw = || Some(Part::Raw { format: PART_FORMAT.to_owned(), json: JsonText::new(json.get()).ok()? });
    known.map_or_else(raw, Some)
}

/// Arguments that are no JSON, as a model can be shown them: its result would have no call otherwise.
pub(crate) fn legible(arguments: &str) -> Result<JsonText, ApiError> {
    Ok(if arguments.trim().is_empty() { JsonText::new("{}")? } else { JsonText::new(quoted(arguments))? })
}

fn function_call(mut members: Members, place: &str) -> Result<Content, ApiError> {
    let [id, name, arguments] = ["call_id", "name", "arguments"].map(|member| required(&members, place, member));
    let (id, name, arguments) = (id?, name?, arguments?);
    members.set("type", "\"function_call\"");
    members.set_if_absent("status", "\"completed\"");
    members.remove("id");
    let exact = JsonText::new(arguments.clone()).ok();
    let is_json = exact.is_some();
    let arguments = exact.map_or_else(|| legible(&arguments), Ok)?;
    let mut content = Content::empty(Role::Assistant);
    content.parts = vec![Part::ToolCall(ToolCall { id, name, arguments })];
    let known: &[&str] = if is_json { &["type", "call_id", "name", "arguments", "status"] } else { &[] };
    keep_what_is_more(&mut content, &members, known)?;
    Ok(content)
}

fn function_call_output(mut members: Members, place: &str) -> Result<Content, ApiError> {
    let call_id = required(&members, place, "call_id")?;
    let output = members.get("output").ok_or_else(|| missing(place, "output"))?;
    let text = serde_json::from_str::<String>(output);
    let is_text = text.is_ok();
    // Joined, parts could not be told apart again: they lie beside what a model is shown of them.
    let output = text.unwrap_or_else(|_| words_of(output).unwrap_or_else(|| output.to_owned()));
    members.set("type", "\"function_call_output\"");
    members.set_if_absent("status", "\"completed\"");
    members.remove("id");
    let mut content = Content::empty(Role::Tool);
    content.parts = vec![Part::ToolResult(ToolResult { call_id, output, is_error: false })];
    let known: &[&str] = if is_text { &["type", "call_id", "output", "status"] } else { &[] };
    keep_what_is_more(&mut content, &members, known)?;
    Ok(content)
}

/// The words of an output of parts; `None` where it is more than words.
fn words_of(output: &str) -> Option<String> {
    let parts: Vec<Value> = serde_json::from_str(output).ok()?;
    let text = |part: &Value| part["text"].as_str().filter(|_| part["type"] == "input_text").map(str::to_owned);
    Some(parts.iter().map(text).collect::<Option<Vec<_>>>()?.join("\n"))
}

fn reasoning(mut members: Members) -> Result<Content, ApiError> {
    let summary: Vec<Value> =
        members.get("summary").and_then(|summary| serde_json::from_str(summary).ok()).unwrap_or_default();
    let texts: Vec<&str> = summary.iter().filter_map(|part| part["text"].as_str()).collect();
    members.remove("id");
    let mut content = Content::empty(Role::Assistant);
    if !texts.is_empty() {
        content.parts.push(Part::Reasoning(texts.join("\n")));
    }
    content.data = Some(kept(&members)?);
    Ok(content)
}

fn compaction(mut members: Members, item: &RawValue) -> Result<Content, ApiError> {
    let shown = members.text("encrypted_content").and_then(|content| super::compaction::shown(&content));
    let Some((role, part)) = shown else { return unknown("compaction", item) };
    members.remove("id");
    Ok(Content { parts: vec![part], data: Some(kept(&members)?), ..Content::empty(role) })
}

fn unknown(kind: &str, item: &RawValue) -> Result<Content, ApiError> {
    let role = if kind.ends_with("_output") || kind.ends_with("_response") { Role::Tool } else { Role::Assistant };
    let json = JsonText::new(item.get())?;
    Ok(Content { parts: vec![Part::Raw { format: FORMAT.to_owned(), json }], ..Content::empty(role) })
}

fn keep_what_is_more(content: &mut Content, members: &Members, known: &[&str]) -> Result<(), ApiError> {
    if !members.has_only(known) || members.get("status") != Some("\"completed\"") {
        content.data = Some(kept(members)?);
    }
    Ok(())
}

/// The item beside its words, without its id.
fn kept(members: &Members) -> Result<JsonText, ApiError> {
    Ok(JsonText::new(format!("{{{}:{}}}", quoted(DATA), members.to_json()))?)
}

fn required(members: &Members, place: &str, member: &str) -> Result<String, ApiError> {
    members.text(member).ok_or_else(|| missing(place, member))
}

fn missing(place: &str, member: &str) -> ApiError {
    let message = format!("Missing required parameter: '{place}.{member}'.");
    ApiError::invalid(format!("{place}.{member}"), message).code("missing_required_parameter")
}
