//! Making what models and tools gave fit to be kept: within the store's bounds, without what no store keeps.

use threadkeep_context::MARK;
use threadkeep_core::{ChatMessage, Part, Source, ToolCall, limits};
pub(crate) use threadkeep_memory::turns::bound_text;
use threadkeep_memory::turns::{TEXT_BYTES, encoded_bytes, without_nul};

/// Parts that are kept of one message.
const PARTS: usize = 200;

/// A text for a model, and the whole where that is longer.
pub(crate) struct Bounded {
    pub(crate) shown: String,
    pub(crate) whole: Option<String>,
}

/// Cuts a result to what a model reads; the whole is kept up to 2 MiB.
pub(crate) fn bound_output(text: &str, characters: usize) -> Bounded {
    let text = without_nul(text);
    let is_longer = text.char_indices().nth(characters).is_some();
    if !is_longer && encoded_bytes(&text) <= TEXT_BYTES {
        return Bounded { shown: text, whole: None };
    }
    let bytes = text.len();
    let note = format!("{MARK}\n[cut: the whole result has {bytes} bytes]");
    let cut: String = text.chars().take(characters.min(TEXT_BYTES / 6)).collect();
    Bounded { shown: format!("{cut}{note}"), whole: Some(bound_text(&text)) }
}

/// A message within the bounds of a store.
pub(crate) fn storable(message: &ChatMessage) -> Vec<Part> {
    let mut left = TEXT_BYTES;
    let parts = message.parts.iter().take(PARTS).filter_map(|part| {
        let part = storable_part(part);
        let bytes = match &part {
            Part::Text(text) | Part::Reasoning(text) => encoded_bytes(text),
            Part::ToolCall(call) => call.arguments.as_str().len() + encoded_bytes(&call.id),
            Part::ToolResult(result) => encoded_bytes(&result.output) + encoded_bytes(&result.call_id),
            Part::Raw { json, .. } => json.as_str().len(),
            Part::Image(image) => image.url.len(),
        };
        left = left.checked_sub(bytes)?;
        Some(part)
    });
    parts.collect()
}

fn storable_part(part: &Part) -> Part {
    match part {
        Part::Text(text) => Part::Text(bound_text(text)),
        Part::Reasoning(text) => Part::Reasoning(bound_text(text)),
        Part::ToolCall(call) => Part::ToolCall(storable_call(call)),
        Part::ToolResult(result) => {
            let mut result = result.clone();
            result.call_id = bound_name(&result.call_id);
            result.output = bound_text(&result.output);
            Part::ToolResult(result)
        }
        other => other.clone(),
    }
}

/// A call whose id and name any store keeps.
pub(crate) fn storable_call(call: &ToolCall) -> ToolCall {
    ToolCall { id: bound_name(&call.id), name: bound_name(&call.name), arguments: call.arguments.clone() }
}

/// A source whose numbers JSON can hold.
pub(crate) fn storable_source(source: &Source) -> Source {
    let finite = |number: Option<f64>| number.filter(|number| number.is_finite());
    Source { score: finite(source.score), distance: finite(source.distance), ..source.clone() }
}

/// A name as stores keep it: short, without control characters, not empty.
pub(crate) fn bound_name(name: &str) -> String {
    let mut kept = String::new();
    for character in name.chars().filter(|character| !character.is_control()) {
        if kept.len() + character.len_utf8() > limits::NAME_BYTES {
            break;
        }
        kept.push(character);
    }
    if kept.is_empty() { "unnamed".to_owned() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_is_cut_for_the_model_and_kept_whole() {
        let short = bound_output("ok\0", 10);
        assert_eq!((short.shown.as_str(), short.whole), ("ok\u{fffd}", None));
        let text = "é".repeat(30);
        let long = bound_output(&text, 10);
        assert!(
            long.shown.starts_with(&"é".repeat(10)) && long.shown.ends_with("[cut: the whole result has 60 bytes]")
        );
        assert_eq!(long.whole.as_deref(), Some(text.as_str()));
    }

    #[test]
    fn what_is_kept_fits_into_a_message_whatever_it_holds() {
        for character in ["a", "\u{1}", "\"", "😀"] {
            let huge = character.repeat(10 << 20);
            let bounded = bound_output(&huge, 16_000);
            for text in [&bounded.shown, bounded.whole.as_ref().unwrap()] {
                let encoded = serde_json::to_string(text).unwrap().len();
                assert!(encoded <= TEXT_BYTES + 100, "{encoded}");
            }
        }
    }

    #[test]
    fn names_are_made_such_as_stores_keep() {
        assert_eq!(bound_name("get\n_thing"), "get_thing");
        assert_eq!(bound_name("\u{0}"), "unnamed");
        assert_eq!(bound_name(&"é".repeat(150)).len(), 200);
    }
}
