//! Detects the format of a file by the fields of its first valid record.

use crate::Format;
use crate::fields::{Fields, Kind, kind};
use crate::file::FileName;
use crate::{cline, threadkeep};

const MAX_NAMES: usize = 8;
const MAX_NAME_CHARS: usize = 40;

/// Returns the format that a record has according to its fields.
pub(crate) fn format_of(fields: &Fields<'_>, file: &FileName) -> Option<Format> {
    if threadkeep::version(fields).is_some() {
        return Some(Format::Threadkeep);
    }
    let has = |name: &str, expected: Kind| fields.get(name).is_some_and(|json| kind(json) == expected);
    if has("mapping", Kind::Object) {
        Some(Format::ChatGptExport)
    } else if has("chat_messages", Kind::List) {
        Some(Format::ClaudeExport)
    } else if has("sessionId", Kind::Text) && has("projectHash", Kind::Text) {
        Some(Format::GeminiCli)
    } else if has("sessionId", Kind::Text) && has("history", Kind::List) {
        Some(Format::Continue)
    } else if has("sessionId", Kind::Text) && has("agent", Kind::Text) && has("messages", Kind::List) {
        Some(Format::Cline)
    } else if has("conversationId", Kind::Text) && (has("messages", Kind::List) || has("messagesTree", Kind::List)) {
        Some(Format::LibreChat)
    } else if has("chat", Kind::Object) && has("title", Kind::Text) {
        Some(Format::OpenWebUi)
    } else if has("messages", Kind::List) {
        Some(Format::OpenAiChat)
    } else if has("conversations", Kind::List) {
        Some(Format::ShareGpt)
    } else if has("conversation", Kind::Object) {
        Some(Format::Locomo)
    } else if has("dialogue_id", Kind::Text) && has("turns", Kind::List) {
        Some(Format::Sgd)
    } else if ["type", "uuid", "sessionId"].iter().all(|name| has(name, Kind::Text)) {
        Some(Format::ClaudeCode)
    } else if has("timestamp", Kind::Text) && has("type", Kind::Text) && has("payload", Kind::Object) {
        Some(Format::Codex)
    } else if has("type", Kind::Text) && has("ts", Kind::Text) && has("text", Kind::Text) {
        Some(Format::SlackExport)
    } else if cline::is_task_message(fields, file) {
        Some(Format::Cline)
    } else {
        None
    }
}

/// Describes a record in an error message by the truncated names of its first fields, without values.
pub(crate) fn describe(fields: &Fields<'_>) -> String {
    let names: Vec<_> = fields.names().take(MAX_NAMES).map(quoted).collect();
    match (names.len(), fields.names().count()) {
        (0, _) => "objects with no fields".to_owned(),
        (listed, all) if listed < all => format!("objects with the fields {} and others", names.join(", ")),
        _ => format!("objects with the fields {}", names.join(", ")),
    }
}

fn quoted(name: &str) -> String {
    let printable = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    format!("`{}`", printable.take(MAX_NAME_CHARS).collect::<String>())
}
