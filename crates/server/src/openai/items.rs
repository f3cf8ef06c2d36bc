//! Converts items into messages and back.
//!
//! A message that contains only text is stored like a message from any other API. Everything else in an item (annotations, the
//! detail of an image, fields that this version does not know) is stored exactly, in addition to the text. An item of an unknown
//! type is stored unchanged.

mod compaction;
mod read;
mod write;

pub(super) use compaction::compaction_item;
pub(super) use read::{InputItem, arguments_json, read_all, read_each, read_item};
pub(super) use write::{Item, items_of};

use serde_json::Value;
use threadkeep::ImageReference;

use super::members::json_string;

/// The format of message parts that contain the exact JSON of an item of an unknown type.
const FORMAT: &str = "openai.item";
/// The format of message parts that contain the exact JSON of a content part of an unknown type.
const PART_FORMAT: &str = "openai.content";
/// The field of a message's data that contains the exact JSON of an item.
const DATA: &str = "openai_item";
/// The field of a message's metadata that contains the item's role if [`threadkeep::Role`] lacks it.
const ROLE: &str = "openai_role";
/// The detail of an image that specifies none.
const DEFAULT_DETAIL: &str = "auto";

/// Returns the prefix of the ids of items with this type.
fn id_prefix(kind: &str) -> &'static str {
    match kind {
        "message" => "msg",
        "function_call" => "fc",
        "function_call_output" => "fco",
        "reasoning" => "rs",
        "compaction" => "cmp",
        _ => "item",
    }
}

/// Returns the JSON of a text part.
fn text_part_json(is_output: bool, text: &str) -> String {
    let text = json_string(text);
    if is_output {
        format!(r#"{{"type":"output_text","text":{text},"annotations":[],"logprobs":[]}}"#)
    } else {
        format!(r#"{{"type":"input_text","text":{text}}}"#)
    }
}

/// Returns the JSON of an image part.
fn image_part_json(image: &ImageReference) -> String {
    let detail = json_string(image.detail.as_deref().unwrap_or(DEFAULT_DETAIL));
    format!(r#"{{"type":"input_image","detail":{detail},"image_url":{}}}"#, json_string(&image.url))
}

/// Whether two JSON texts have the same value.
fn is_same_json(a: &str, b: &str) -> bool {
    a == b || matches!((serde_json::from_str::<Value>(a), serde_json::from_str::<Value>(b)), (Ok(a), Ok(b)) if a == b)
}
