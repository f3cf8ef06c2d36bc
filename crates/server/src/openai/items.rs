//! Items, read into messages and written from them.
//!
//! A message whose words are all there is to it is kept as any other door's. What is more than that (annotations, an image's
//! detail, members that came later) lies beside the words, exactly; an item of an unknown type is kept as it is.

mod compaction;
mod read;
mod write;

pub(super) use compaction::compacted;
pub(super) use read::{Given, legible, read, read_all, read_each};
pub(super) use write::{Item, items_of};

use serde_json::Value;

use super::members::quoted;

/// The format of items that are kept exactly, and the member of a message's data that holds one.
const FORMAT: &str = "openai.item";
/// The format of content parts that are kept exactly.
const PART_FORMAT: &str = "openai.content";
const DATA: &str = "openai_item";
/// The member of a message's metadata that holds a role which the engine has no word for.
const ROLE: &str = "openai_role";

/// The prefix of the ids of a type's items.
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

/// A part of words as this wire writes it.
fn text_part(is_output: bool, text: &str) -> String {
    let text = quoted(text);
    if is_output {
        format!(r#"{{"type":"output_text","text":{text},"annotations":[],"logprobs":[]}}"#)
    } else {
        format!(r#"{{"type":"input_text","text":{text}}}"#)
    }
}

/// A picture as this wire writes it.
fn image_part(url: &str) -> String {
    format!(r#"{{"type":"input_image","detail":"auto","image_url":{}}}"#, quoted(url))
}

/// Whether two texts are one JSON value.
fn is_same(one: &str, other: &str) -> bool {
    one == other
        || matches!((serde_json::from_str::<Value>(one), serde_json::from_str::<Value>(other)), (Ok(one), Ok(other)) if one == other)
}
