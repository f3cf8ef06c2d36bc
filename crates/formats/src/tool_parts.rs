//! Tool calls and tool results in the forms that several programs share.

use serde_json::value::RawValue;
use threadkeep_core::{JsonText, Part, ToolCall, ToolResult};

use crate::conversation::clean_name;
use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, exact, kind};

/// Returns a tool call, or `None` if its name is invalid.
pub(crate) fn call(id: String, name: String, arguments: JsonText) -> Option<Part> {
    let is_valid = clean_name(&name).as_ref() == Some(&name);
    is_valid.then_some(Part::ToolCall(ToolCall { id, name, arguments }))
}

/// Returns a tool result.
pub(crate) fn result(call_id: String, output: String, is_error: bool) -> Part {
    Part::ToolResult(ToolResult { call_id, output, is_error })
}

/// Reads arguments. If they are a string, it contains JSON, or else text that becomes a JSON string.
pub(crate) fn arguments(json: Option<&RawValue>) -> Result<JsonText, Rejection> {
    match json {
        None => Ok(JsonText::new("{}")?),
        Some(json) if kind(json) != Kind::Text => exact(json),
        Some(json) => {
            let text = fields::text(json)?;
            let is_json = serde_json::from_str::<&RawValue>(&text).is_ok();
            match JsonText::new(text.trim()) {
                Ok(arguments) if is_json => Ok(arguments),
                _ => exact(json),
            }
        }
    }
}

/// Returns the text of an output: a string, or the text of the items of a list if all of them have text. Everything else is
/// returned as JSON.
pub(crate) fn output(json: &RawValue) -> Result<String, Rejection> {
    match kind(json) {
        Kind::Text => fields::text(json),
        Kind::List => {
            let texts: Option<Vec<String>> =
                fields::list(json)?.into_iter().map(|item| text_of_item(item).ok().flatten()).collect();
            Ok(texts.map_or_else(|| json.get().to_owned(), |texts| texts.join("\n")))
        }
        _ => Ok(json.get().to_owned()),
    }
}

fn text_of_item(json: &RawValue) -> Result<Option<String>, Rejection> {
    Fields::read(json)?.take_text("text")
}

/// Returns a value verbatim.
pub(crate) fn raw(format: &str, json: &RawValue) -> Result<Part, Rejection> {
    Ok(Part::Raw { format: format.to_owned(), json: exact(json)? })
}
