//! Messages that no model wrote, and limiting texts to what a store accepts.

use threadkeep_context::MARK;
use threadkeep_core::{Content, Map, Part, Role, ToolResult, Value, limits};

use crate::Draft;

/// Maximum length of one text in bytes of JSON, so that a message with some other parts stays within its limit.
pub const TEXT_BYTES: usize = limits::MESSAGE_BYTES / 2;

/// Creates an assistant's message that no model wrote.
#[must_use]
pub fn note_draft(turn: &str, text: &str) -> Draft {
    let mut draft = Draft::new(Content::text(Role::Assistant, bound_text(text)));
    draft.content.metadata = metadata(turn);
    draft
}

/// Creates an error result for a call that has no result.
#[must_use]
pub fn result_draft(turn: &str, call_id: &str, output: &str) -> Draft {
    let result = ToolResult { call_id: call_id.to_owned(), output: bound_text(output), is_error: true };
    let mut content = Content::empty(Role::Tool);
    content.parts.push(Part::ToolResult(result));
    content.metadata = metadata(turn);
    Draft::new(content)
}

/// The metadata of a turn's messages.
#[must_use]
pub fn metadata(turn: &str) -> Map {
    Map::from_iter([("turn".to_owned(), Value::String(turn.to_owned()))])
}

/// Replaces NUL characters and truncates a text to [`TEXT_BYTES`] as JSON.
#[must_use]
pub fn bound_text(text: &str) -> String {
    let text = without_nul(text);
    if encoded_bytes(&text) <= TEXT_BYTES {
        return text;
    }
    let mut left = TEXT_BYTES - MARK.len();
    let kept = text.char_indices().find_map(|(at, character)| {
        let bytes = encoded_char(character);
        if bytes > left {
            return Some(at);
        }
        left -= bytes;
        None
    });
    format!("{}{MARK}", &text[..kept.unwrap_or(text.len())])
}

/// Replaces NUL characters with U+FFFD, because stores reject them.
#[must_use]
pub fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The length of a text as JSON in bytes, without its quotes.
#[must_use]
pub fn encoded_bytes(text: &str) -> usize {
    text.chars().map(encoded_char).sum()
}

fn encoded_char(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        character if character.is_control() => 6,
        character => character.len_utf8(),
    }
}
