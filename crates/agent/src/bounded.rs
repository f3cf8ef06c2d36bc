//! Limits the output of models and tools to what every store accepts.

use threadkeep_context::TRUNCATION_MARK;
use threadkeep_core::{ChatMessage, Part, Source, ToolCall, limits};
pub(crate) use threadkeep_memory::turns::limit_text;
use threadkeep_memory::turns::{TEXT_BYTES, encoded_bytes, without_nul};

/// Maximum number of parts of one message that are stored.
const MAX_PARTS: usize = 200;

/// Text truncated for the model.
pub(crate) struct BoundedText {
    /// The text that the model reads.
    pub(crate) visible: String,
    /// The full text, if the model reads only part of it.
    pub(crate) full: Option<String>,
}

/// Truncates a tool's result to `characters` for the model. The full text is limited to [`TEXT_BYTES`].
pub(crate) fn bound_output(text: &str, characters: usize) -> BoundedText {
    let text = without_nul(text);
    let is_longer = text.char_indices().nth(characters).is_some();
    if !is_longer && encoded_bytes(&text) <= TEXT_BYTES {
        return BoundedText { visible: text, full: None };
    }
    let bytes = text.len();
    let note = format!("{TRUNCATION_MARK}\n[truncated: the full result has {bytes} bytes]");
    let truncated: String = text.chars().take(characters.min(TEXT_BYTES / 6)).collect();
    BoundedText { visible: format!("{truncated}{note}"), full: Some(limit_text(&text)) }
}

/// Returns the parts of a message that can be stored. Parts after the limits are reached are omitted.
pub(crate) fn storable(message: &ChatMessage) -> Vec<Part> {
    let mut remaining_bytes = TEXT_BYTES;
    let parts = message.parts.iter().take(MAX_PARTS).filter_map(|part| {
        let part = storable_part(part);
        let bytes = match &part {
            Part::Text(text) | Part::Reasoning(text) => encoded_bytes(text),
            Part::ToolCall(call) => call.arguments.as_str().len() + encoded_bytes(&call.id),
            Part::ToolResult(result) => encoded_bytes(&result.output) + encoded_bytes(&result.call_id),
            Part::Raw { json, .. } => json.as_str().len(),
            Part::Image(image) => image.url.len(),
        };
        remaining_bytes = remaining_bytes.checked_sub(bytes)?;
        Some(part)
    });
    parts.collect()
}

fn storable_part(part: &Part) -> Part {
    match part {
        Part::Text(text) => Part::Text(limit_text(text)),
        Part::Reasoning(text) => Part::Reasoning(limit_text(text)),
        Part::ToolCall(call) => Part::ToolCall(storable_call(call)),
        Part::ToolResult(result) => {
            let mut result = result.clone();
            result.call_id = bound_name(&result.call_id);
            result.output = limit_text(&result.output);
            Part::ToolResult(result)
        }
        other => other.clone(),
    }
}

/// Returns a call whose id and name every store accepts.
pub(crate) fn storable_call(call: &ToolCall) -> ToolCall {
    ToolCall { id: bound_name(&call.id), name: bound_name(&call.name), arguments: call.arguments.clone() }
}

/// Returns a source without numbers that JSON cannot represent.
pub(crate) fn storable_source(source: &Source) -> Source {
    let finite = |number: Option<f64>| number.filter(|number| number.is_finite());
    Source { score: finite(source.score), distance: finite(source.distance), ..source.clone() }
}

/// Returns a name that every store accepts: short, without control characters, not empty.
pub(crate) fn bound_name(name: &str) -> String {
    let mut bounded = String::new();
    for character in name.chars().filter(|character| !character.is_control()) {
        if bounded.len() + character.len_utf8() > limits::NAME_BYTES {
            break;
        }
        bounded.push(character);
    }
    if bounded.is_empty() { "unnamed".to_owned() } else { bounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_output_truncates_for_the_model_and_keeps_the_full_text() {
        let short = bound_output("ok\0", 10);
        assert_eq!((short.visible.as_str(), short.full), ("ok\u{fffd}", None));
        let text = "é".repeat(30);
        let long = bound_output(&text, 10);
        assert!(
            long.visible.starts_with(&"é".repeat(10))
                && long.visible.ends_with("[truncated: the full result has 60 bytes]")
        );
        assert_eq!(long.full.as_deref(), Some(text.as_str()));
    }

    #[test]
    fn bounded_output_fits_into_a_message_for_any_characters() {
        for character in ["a", "\u{1}", "\"", "😀"] {
            let huge = character.repeat(10 << 20);
            let bounded = bound_output(&huge, 16_000);
            for text in [&bounded.visible, bounded.full.as_ref().unwrap()] {
                let encoded = serde_json::to_string(text).unwrap().len();
                assert!(encoded <= TEXT_BYTES + 100, "{encoded}");
            }
        }
    }

    #[test]
    fn bound_name_removes_what_stores_reject() {
        assert_eq!(bound_name("get\n_thing"), "get_thing");
        assert_eq!(bound_name("\u{0}"), "unnamed");
        assert_eq!(bound_name(&"é".repeat(150)).len(), 200);
    }
}
