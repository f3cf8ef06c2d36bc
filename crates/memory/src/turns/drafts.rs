//! Drafts of messages not written by a model, and helpers that truncate text to what stores accept.

use threadkeep_context::TRUNCATION_MARK;
use threadkeep_core::{Content, Map, Part, Role, ToolResult, Value, limits};

use crate::Draft;

/// Maximum length of text, in bytes of its JSON encoding: half the message limit, to leave room for other parts.
pub const TEXT_BYTES: usize = limits::MESSAGE_BYTES / 2;

/// Creates a notice: an assistant message that was not written by a model.
#[must_use]
pub fn notice_draft(turn_id: &str, text: &str) -> Draft {
    let mut draft = Draft::new(Content::text(Role::Assistant, limit_text(text)));
    draft.content.metadata = metadata(turn_id);
    draft
}

/// The metadata key of the approvals that a notice requests.
const APPROVALS: &str = "approvals";

/// Creates the notice of a turn that waits for the approvals with these ids.
#[must_use]
pub fn approval_notice_draft<'a>(turn_id: &str, text: &str, approvals: impl IntoIterator<Item = &'a str>) -> Draft {
    let mut draft = notice_draft(turn_id, text);
    let ids = approvals.into_iter().map(|id| Value::String(id.to_owned())).collect();
    draft.content.metadata.insert(APPROVALS.to_owned(), Value::Array(ids));
    draft
}

/// Whether a message ends a turn: an assistant message that neither calls tools nor requests approvals.
pub(crate) fn is_answer(content: &Content) -> bool {
    let calls_tools = content.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    content.role == Role::Assistant && !calls_tools && !content.metadata.contains_key(APPROVALS)
}

/// Creates a message with an error result for a tool call that never received a result.
#[must_use]
pub fn error_result_draft(turn_id: &str, call_id: &str, output: &str) -> Draft {
    let result = ToolResult { call_id: call_id.to_owned(), output: limit_text(output), is_error: true };
    let mut content = Content::empty(Role::Tool);
    content.parts.push(Part::ToolResult(result));
    content.metadata = metadata(turn_id);
    Draft::new(content)
}

/// The metadata that marks messages as belonging to the turn with this id.
#[must_use]
pub fn metadata(turn_id: &str) -> Map {
    Map::from_iter([("turn".to_owned(), Value::String(turn_id.to_owned()))])
}

/// Replaces NUL characters and truncates the text so that its JSON encoding has at most [`TEXT_BYTES`] bytes.
#[must_use]
pub fn limit_text(text: &str) -> String {
    let text = without_nul(text);
    if encoded_bytes(&text) <= TEXT_BYTES {
        return text;
    }
    let mut remaining = TEXT_BYTES - TRUNCATION_MARK.len();
    let kept = text.char_indices().find_map(|(index, character)| {
        let bytes = encoded_char_len(character);
        if bytes > remaining {
            return Some(index);
        }
        remaining -= bytes;
        None
    });
    format!("{}{TRUNCATION_MARK}", &text[..kept.unwrap_or(text.len())])
}

/// Replaces NUL characters with U+FFFD, because stores reject them.
#[must_use]
pub fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The length in bytes of the text's JSON encoding, excluding the quotes.
#[must_use]
pub fn encoded_bytes(text: &str) -> usize {
    text.chars().map(encoded_char_len).sum()
}

fn encoded_char_len(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        character if character.is_control() => 6,
        character => character.len_utf8(),
    }
}
