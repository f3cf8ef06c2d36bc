use threadkeep::{Content, JsonText, Message, Part, Role, ToolCall, ToolResult, Value};

use super::super::ids;
use super::super::members::{Members, json_string};
use super::{DATA, FORMAT, ROLE, id_prefix, image_part_json, text_part_json};

/// The format of parts that contain reasoning blocks from Anthropic's models.
const REASONING_FORMAT: &str = "anthropic.block";

/// An item as this API represents it.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) id: String,
    /// The exact JSON text of the item.
    pub(crate) json: String,
}

/// Returns the items of a message. A message has one item, unless it was written through another API.
pub(crate) fn items_of(message: &Message) -> Vec<Item> {
    if let Some(item) = exact_item(message) {
        return vec![item];
    }
    let mut items = Vec::new();
    let mut content: Vec<&Part> = Vec::new();
    for part in &message.content.parts {
        let separate_item = match part {
            Part::ToolCall(call) => Some(("function_call", function_call_json(call))),
            Part::ToolResult(result) => Some(("function_call_output", function_call_output_json(result))),
            Part::Reasoning(text) => Some(("reasoning", reasoning_json(text))),
            Part::Raw { format, json } if format == REASONING_FORMAT => {
                Some(("reasoning", reasoning_json(&thinking_text(json))))
            }
            _ => None,
        };
        match separate_item {
            None => content.push(part),
            Some((kind, members)) => {
                flush_content(&mut items, message, &mut content);
                push_item(&mut items, message, kind, &members);
            }
        }
    }
    if items.is_empty() || !content.is_empty() {
        push_message(&mut items, message, &content);
    }
    items
}

/// Returns the item of a message if the message contains the exact JSON of the item.
fn exact_item(message: &Message) -> Option<Item> {
    let external_id = message.external_id.as_deref();
    if let [Part::Raw { format, json }] = message.content.parts.as_slice()
        && format == FORMAT
    {
        return Some(unchanged_item(message, json));
    }
    let data = Members::read(message.content.data.as_ref()?.as_str()).ok()?;
    let members = Members::read(data.get(DATA)?).ok()?;
    let kind = members.get_string("type").unwrap_or_else(|| "message".to_owned());
    let id = ids::item_id(id_prefix(&kind), message.id, external_id, 0);
    Some(Item { json: members.to_json_with_id(&id), id })
}

/// Returns an item of an unknown type byte for byte. If the item has no id, an id is added as its first field.
fn unchanged_item(message: &Message, json: &JsonText) -> Item {
    let text = json.as_str();
    let mut members = Members::read(text).unwrap_or_default();
    let kind = members.get_string("type").unwrap_or_default();
    let id = ids::item_id(id_prefix(&kind), message.id, message.external_id.as_deref(), 0);
    if members.get_string("id").is_some() {
        return Item { id, json: text.to_owned() };
    }
    if members.get("id").is_some() {
        // The id is not a string.
        members.remove("id");
        return Item { json: members.to_json_with_id(&id), id };
    }
    let rest = text.trim_start().trim_start_matches('{');
    let json = format!("{{\"id\":{},{rest}", json_string(&id));
    Item { id, json }
}

/// Adds an item of type `message` for the collected content parts, if there are any.
fn flush_content(items: &mut Vec<Item>, message: &Message, content: &mut Vec<&Part>) {
    if !content.is_empty() {
        push_message(items, message, content);
        content.clear();
    }
}

fn push_message(items: &mut Vec<Item>, message: &Message, content: &[&Part]) {
    let role = item_role(&message.content);
    let parts: Vec<String> = content.iter().map(|part| content_part_json(role == "assistant", part)).collect();
    let members = format!(
        r#"{{"type":"message","status":"completed","role":{},"content":[{}]}}"#,
        json_string(role),
        parts.join(",")
    );
    push_item(items, message, "message", &members);
}

fn push_item(items: &mut Vec<Item>, message: &Message, kind: &str, json: &str) {
    let id = ids::item_id(id_prefix(kind), message.id, message.external_id.as_deref(), items.len());
    let members = Members::read(json).expect("the JSON was written by this module");
    items.push(Item { json: members.to_json_with_id(&id), id });
}

/// Returns a role that is valid in an input item. For a tool message that is not a result, this is `developer`.
fn item_role(content: &Content) -> &str {
    match content.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => content.metadata.get(ROLE).and_then(|role| role.as_str()).unwrap_or("system"),
        Role::Tool => "developer",
    }
}

fn content_part_json(is_output: bool, part: &Part) -> String {
    match part {
        Part::Text(text) => text_part_json(is_output, text),
        Part::Image(image) if !is_output => image_part_json(image),
        Part::Image(image) => text_part_json(is_output, image.description.as_deref().unwrap_or(&image.url)),
        Part::Raw { json, .. } => text_part_json(is_output, json.as_str()),
        _ => text_part_json(is_output, ""),
    }
}

fn function_call_json(call: &ToolCall) -> String {
    let (id, name, arguments) = (json_string(&call.id), json_string(&call.name), json_string(call.arguments.as_str()));
    format!(r#"{{"type":"function_call","status":"completed","call_id":{id},"name":{name},"arguments":{arguments}}}"#)
}

fn function_call_output_json(result: &ToolResult) -> String {
    let (id, output) = (json_string(&result.call_id), json_string(&result.output));
    format!(r#"{{"type":"function_call_output","status":"completed","call_id":{id},"output":{output}}}"#)
}

fn reasoning_json(text: &str) -> String {
    if text.is_empty() {
        return r#"{"type":"reasoning","summary":[]}"#.to_owned();
    }
    format!(r#"{{"type":"reasoning","summary":[{{"type":"summary_text","text":{}}}]}}"#, json_string(text))
}

/// Returns the text of a reasoning block, which is empty if the block is encrypted.
fn thinking_text(block: &JsonText) -> String {
    let block: Value = block.read().unwrap_or_default();
    block["thinking"].as_str().unwrap_or_default().to_owned()
}
