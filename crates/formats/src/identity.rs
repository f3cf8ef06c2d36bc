//! Computes stable identities of imported threads and messages, so that importing a file again creates no duplicates.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use threadkeep_core::{Content, Part, Result, ThreadKey, limits};

use crate::Format;
use crate::records::Record;

const RECORD_DIGITS: usize = 16;
const MESSAGE_DIGITS: usize = 8;

/// Returns the key of an imported thread.
pub(crate) fn thread_key(format: Format, record: &Record, source_id: Option<&str>) -> Result<ThreadKey> {
    let prefix = format!("import:{format}:");
    let identity = match source_id {
        Some(id) => hash_if_invalid(id, limits::KEY_BYTES - prefix.len()),
        None => format!("{}:{}", record.index, hex(Sha256::new_with_prefix(&record.text), RECORD_DIGITS)),
    };
    ThreadKey::new(format!("{prefix}{identity}"))
}

/// Returns the external id of a message with an id in its source.
pub(crate) fn message_id(source_id: &str) -> String {
    hash_if_invalid(source_id, limits::KEY_BYTES)
}

/// Returns the external id of a message in a file to which the program only appends: the 0-based position of its record
/// in the conversation and a hash of its text.
pub(crate) fn message_id_by_record(position: u64, record: &Record) -> String {
    format!("{position}:{}", hex(Sha256::new_with_prefix(&record.text), MESSAGE_DIGITS))
}

/// Returns the external id of a message whose id and content repeat those of another message.
pub(crate) fn message_id_by_fallback(fallback_id: &str) -> String {
    hash_if_invalid(&format!("node:{fallback_id}"), limits::KEY_BYTES)
}

/// Returns the external id of a message without an id: its 1-based position and a hash of its content.
///
/// The hash input has a fixed layout of its own, so neither the formatting of the JSON nor a later codec version changes the
/// ids of known messages.
pub(crate) fn message_id_by_content(position: usize, content: &Content) -> String {
    let mut segments = vec![content.role.as_str()];
    for part in &content.parts {
        match part {
            Part::Text(text) => segments.extend(["text", text]),
            Part::Reasoning(text) => segments.extend(["reasoning", text]),
            Part::ToolCall(call) => segments.extend(["call", &call.id, &call.name, call.arguments.as_str()]),
            Part::ToolResult(result) => segments.extend(["result", &result.call_id, &result.output]),
            Part::Image(image) => segments.extend(["image", &image.url, image.description.as_deref().unwrap_or("")]),
            Part::Raw { format, json } => segments.extend(["raw", format, json.as_str()]),
        }
    }
    let mut hasher = Sha256::new();
    for segment in segments {
        // Length prefixes ensure that different sequences of segments produce different inputs.
        hasher.update(format!("{}:", segment.len()));
        hasher.update(segment);
    }
    format!("{position}:{}", hex(hasher, MESSAGE_DIGITS))
}

/// Returns the id, or a hash of it if it is empty, too long or contains control characters.
fn hash_if_invalid(id: &str, max_bytes: usize) -> String {
    if id.is_empty() || id.len() > max_bytes || id.chars().any(char::is_control) {
        format!("sha256:{}", hex(Sha256::new_with_prefix(id), 64))
    } else {
        id.to_owned()
    }
}

fn hex(hasher: Sha256, digits: usize) -> String {
    let mut hex = hasher.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    hex.truncate(digits);
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(index: u64, text: &str) -> Record {
        Record { line: 1, index, offset: 0, text: text.to_owned() }
    }

    #[test]
    fn keys_contain_the_source_id_if_it_is_valid() {
        let key = |id: &str| thread_key(Format::Sgd, &record(0, "{}"), Some(id)).unwrap().as_str().to_owned();
        assert_eq!(key("a-1"), "import:sgd:a-1");
        assert_eq!(key("").len(), "import:sgd:sha256:".len() + 64);
        assert!(key("a\nb").starts_with("import:sgd:sha256:"));
        assert_ne!(key("a\nb"), key("a\nc"));
        assert_eq!(key(&"x".repeat(limits::KEY_BYTES - "import:sgd:".len())).len(), limits::KEY_BYTES);
        assert!(key(&"x".repeat(limits::KEY_BYTES)).starts_with("import:sgd:sha256:"));
    }

    #[test]
    fn equal_records_at_different_indexes_have_different_keys() {
        let key = |index, text| thread_key(Format::ShareGpt, &record(index, text), None).unwrap();
        assert_eq!(key(3, "{}").as_str(), "import:sharegpt:3:44136fa355b3678a");
        assert_ne!(key(3, "{}"), key(4, "{}"));
        assert_ne!(key(3, "{}"), key(3, "[]"));
    }

    #[test]
    fn content_ids_differ_for_different_content() {
        use threadkeep_core::Role::{Assistant, User};
        let id = |content: &Content| message_id_by_content(7, content);
        assert_eq!(id(&Content::text(User, "hello")), id(&Content::text(User, "hello")));
        assert_ne!(id(&Content::text(User, "hello")), id(&Content::text(Assistant, "hello")));
        let parts = |a: &str, b: &str| Content {
            parts: vec![Part::Text(a.to_owned()), Part::Text(b.to_owned())],
            ..Content::empty(User)
        };
        assert_ne!(id(&parts("a", "4:text1:b")), id(&parts("a4:text", "b")));
        assert!(id(&parts("a", "b")).starts_with("7:"));
    }
}
