//! Which format a file has, told by the members of its first good record.

use crate::Format;
use crate::fields::{Fields, Kind, kind};
use crate::threadkeep;

const NAMES_SHOWN: usize = 8;
const NAME_CHARS: usize = 40;

/// The format whose members a record has.
pub(crate) fn format_of(fields: &Fields<'_>) -> Option<Format> {
    if threadkeep::version(fields).is_some() {
        return Some(Format::Threadkeep);
    }
    let has = |name: &str, expected: Kind| fields.get(name).is_some_and(|json| kind(json) == expected);
    if has("mapping", Kind::Object) {
        Some(Format::ChatGptExport)
    } else if has("chat_messages", Kind::List) {
        Some(Format::ClaudeExport)
    } else if has("messages", Kind::List) {
        Some(Format::OpenAiChat)
    } else if has("conversations", Kind::List) {
        Some(Format::ShareGpt)
    } else if has("conversation", Kind::Object) {
        Some(Format::Locomo)
    } else if has("dialogue_id", Kind::Text) && has("turns", Kind::List) {
        Some(Format::Sgd)
    } else {
        None
    }
}

/// What a record looks like, for a person: names of members, cut, and no values.
pub(crate) fn describe(fields: &Fields<'_>) -> String {
    let names: Vec<_> = fields.names().take(NAMES_SHOWN).map(shortened).collect();
    match (names.len(), fields.names().count()) {
        (0, _) => "objects without members".to_owned(),
        (shown, all) if shown < all => format!("objects with the members {} and others", names.join(", ")),
        _ => format!("objects with the members {}", names.join(", ")),
    }
}

fn shortened(name: &str) -> String {
    let printable = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    format!("`{}`", printable.take(NAME_CHARS).collect::<String>())
}
