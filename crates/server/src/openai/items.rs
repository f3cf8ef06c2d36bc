//! Converts items into messages and back.
//!
//! A message that consists of its text only is stored like a message of any other API. Everything else about an item
//! (annotations, an image's detail, members that this version does not know) is stored exactly, in addition to the text. An item
//! of an unknown type is stored as it is.

mod compaction;
mod read;
mod write;

pub(super) use compaction::compaction_item;
pub(super) use read::{InputItem, arguments_json, read, read_all, read_each};
pub(super) use write::{Item, items_of};

use serde_json::Value;

use super::members::quoted;

/// The format of parts that contain an item of an unknown type exactly.
const FORMAT: &str = "openai.item";
/// The format of parts that contain a content part of an unknown type exactly.
const PART_FORMAT: &str = "openai.content";
/// The member of a message's data that contains an item exactly.
const DATA: &str = "openai_item";
/// The member of a message's metadata that contains a role that the engine does not have.
const ROLE: &str = "openai_role";

/// Returns the prefix of the ids of items of a type.
fn prefix(kind: &str) -> &'static str {
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
fn text_part(is_output: bool, text: &str) -> String {
    let text = quoted(text);
    if is_output {
        format!(r#"{{"type":"output_text","text":{text},"annotations":[],"logprobs":[]}}"#)
    } else {
        format!(r#"{{"type":"input_text","text":{text}}}"#)
    }
}

/// Returns the JSON of an image part.
fn image_part(url: &str) -> String {
    format!(r#"{{"type":"input_image","detail":"auto","image_url":{}}}"#, quoted(url))
}

/// Whether two JSON texts have the same value.
fn is_same(one: &str, other: &str) -> bool {
    one == other
        || matches!((serde_json::from_str::<Value>(one), serde_json::from_str::<Value>(other)), (Ok(one), Ok(other)) if one == other)
}
