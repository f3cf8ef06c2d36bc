use threadkeep::{Content, JsonText, Message, Part, Role, ToolCall, ToolResult, Value};

use super::super::ids;
use super::super::members::{Members, quoted};
use super::{DATA, FORMAT, ROLE, image_part, prefix, text_part};

/// The format of reasoning blocks of Anthropic's models.
const REASONING_FORMAT: &str = "anthropic.block";

/// An item in the API's representation.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) id: String,
    /// Its exact JSON text.
    pub(crate) json: String,
}

/// Returns the items of a message: one, unless the message was written through another API and contains several.
pub(crate) fn items_of(message: &Message) -> Vec<Item> {
    if let Some(item) = exact_item(message) {
        return vec![item];
    }
    let mut items = Vec::new();
    let mut content: Vec<&Part> = Vec::new();
    for part in &message.content.parts {
        let separate = match part {
            Part::ToolCall(call) => Some(("function_call", function_call(call))),
            Part::ToolResult(result) => Some(("function_call_output", function_call_output(result))),
            Part::Reasoning(text) => Some(("reasoning", reasoning(text))),
            Part::Raw { format, json } if format == REASONING_FORMAT => Some(("reasoning", reasoning(&thinking(json)))),
            _ => None,
        };
        match separate {
            None => content.push(part),
            Some((kind, members)) => {
                flush_content(&mut items, message, &mut content);
                push(&mut items, message, kind, &members);
            }
        }
    }
    if items.is_empty() || !content.is_empty() {
        push_message(&mut items, message, &content);
    }
    items
}

/// Returns the item of a message that stores it exactly.
fn exact_item(message: &Message) -> Option<Item> {
    let external_id = message.external_id.as_deref();
    if let [Part::Raw { format, json }] = message.content.parts.as_slice()
        && format == FORMAT
    {
        return Some(unknown_item(message, json));
    }
    let data = Members::read(message.content.data.as_ref()?.as_str()).ok()?;
    let members = Members::read(data.get(DATA)?).ok()?;
    let kind = members.text("type").unwrap_or_else(|| "message".to_owned());
    let id = ids::item(prefix(&kind), message.id, external_id, 0);
    Some(Item { json: members.with_id(&id), id })
}

/// Returns an item of an unknown type byte for byte, with an id added in front if it had none.
fn unknown_item(message: &Message, json: &JsonText) -> Item {
    let text = json.as_str();
    let mut members = Members::read(text).unwrap_or_default();
    let kind = members.text("type").unwrap_or_default();
    let id = ids::item(prefix(&kind), message.id, message.external_id.as_deref(), 0);
    if members.text("id").is_some() {
        return Item { id, json: text.to_owned() };
    }
    if members.get("id").is_some() {
        // The id is not a string.
        members.remove("id");
        return Item { json: members.with_id(&id), id };
    }
    let rest = text.trim_start().trim_start_matches('{');
    let json = format!("{{\"id\":{},{rest}", quoted(&id));
    Item { id, json }
}

fn flush_content(items: &mut Vec<Item>, message: &Message, content: &mut Vec<&Part>) {
    if !content.is_empty() {
        push_message(items, message, content);
        content.clear();
    }
}

fn push_message(items: &mut Vec<Item>, message: &Message, content: &[&Part]) {
    let role = role(&message.content);
    let parts: Vec<String> = content.iter().map(|part| content_part(role == "assistant", part)).collect();
    let members =
        format!(r#"{{"type":"message","status":"completed","role":{},"content":[{}]}}"#, quoted(role), parts.join(","));
    push(items, message, "message", &members);
}

fn push(items: &mut Vec<Item>, message: &Message, kind: &str, json: &str) {
    let id = ids::item(prefix(kind), message.id, message.external_id.as_deref(), items.len());
    let members = Members::read(json).expect("the JSON was written by this module");
    items.push(Item { json: members.with_id(&id), id });
}

/// Returns a role that is valid in an input item. A tool's message that is not a result gets `developer`.
fn role(content: &Content) -> &str {
    match content.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => content.metadata.get(ROLE).and_then(|role| role.as_str()).unwrap_or("system"),
        Role::Tool => "developer",
    }
}

fn content_part(is_output: bool, part: &Part) -> String {
    match part {
        Part::Text(text) => text_part(is_output, text),
        Part::Image(image) if !is_output => image_part(&image.url),
        Part::Image(image) => text_part(is_output, image.description.as_deref().unwrap_or(&image.url)),
        Part::Raw { json, .. } => text_part(is_output, json.as_str()),
        _ => text_part(is_output, ""),
    }
}

fn function_call(call: &ToolCall) -> String {
    let (id, name, arguments) = (quoted(&call.id), quoted(&call.name), quoted(call.arguments.as_str()));
    format!(r#"{{"type":"function_call","status":"completed","call_id":{id},"name":{name},"arguments":{arguments}}}"#)
}

fn function_call_output(result: &ToolResult) -> String {
    let (id, output) = (quoted(&result.call_id), quoted(&result.output));
    format!(r#"{{"type":"function_call_output","status":"completed","call_id":{id},"output":{output}}}"#)
}

fn reasoning(text: &str) -> String {
    if text.is_empty() {
        return r#"{"type":"reasoning","summary":[]}"#.to_owned();
    }
    format!(r#"{{"type":"reasoning","summary":[{{"type":"summary_text","text":{}}}]}}"#, quoted(text))
}

/// Returns the text of a reasoning block; empty for an encrypted one.
fn thinking(block: &JsonText) -> String {
    let block: Value = block.read().unwrap_or_default();
    block["thinking"].as_str().unwrap_or_default().to_owned()
}
