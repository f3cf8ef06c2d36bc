//! Truncating text at grapheme boundaries.

use std::borrow::Cow;

use threadkeep_core::{JsonText, Part, ToolCall, ToolResult};
use unicode_segmentation::UnicodeSegmentation;

/// Appended to truncated text.
pub const TRUNCATION_MARK: &str = "...";

/// Truncates the text at a grapheme boundary to at most `characters` Unicode scalar values. Returns `None` if the text is
/// not longer. Does not append [`TRUNCATION_MARK`].
///
/// ```
/// use threadkeep_context::cut;
/// assert_eq!(cut("abc", 3), None);
/// assert_eq!(cut("abcd", 3), Some("abc"));
/// assert_eq!(cut("a👩‍👩‍👧", 3), Some("a"));
/// ```
#[must_use]
pub fn cut(text: &str, characters: usize) -> Option<&str> {
    // The number of bytes is an upper bound on the number of characters.
    if text.len() <= characters {
        return None;
    }
    let (limit, _) = text.char_indices().nth(characters)?;
    let mut end = 0;
    for (start, grapheme) in text.grapheme_indices(true) {
        if start + grapheme.len() > limit {
            break;
        }
        end = start + grapheme.len();
    }
    Some(&text[..end])
}

/// Truncates the text and appends [`TRUNCATION_MARK`]. Returns `None` if the text is not longer.
pub(crate) fn cut_marked(text: &str, characters: usize) -> Option<String> {
    cut(text, characters).map(|kept| format!("{kept}{TRUNCATION_MARK}"))
}

/// Truncates the text and tool results of a message, part by part, so that they have at most `characters` characters in
/// total. Does not change tool calls. Returns whether anything was truncated.
pub(crate) fn cut_parts(parts: &mut Cow<'_, [Part]>, characters: usize) -> bool {
    let text_bytes = |part: &Part| match part {
        Part::Text(text) | Part::ToolResult(ToolResult { output: text, .. }) => text.len(),
        _ => 0,
    };
    // The number of bytes is an upper bound on the number of characters, so parts that need no truncation are not
    // copied.
    if parts.iter().map(text_bytes).sum::<usize>() <= characters {
        return false;
    }
    let mut remaining = characters;
    let mut was_cut = false;
    for part in parts.to_mut() {
        if let Part::Text(text) | Part::ToolResult(ToolResult { output: text, .. }) = part {
            was_cut |= truncate_to_remaining(text, &mut remaining);
        }
    }
    was_cut
}

/// Truncates all parts of variable length in the newest message, which must fit the budget. If truncation would make a
/// part invalid, replaces it with a placeholder. Returns whether anything was truncated.
pub(crate) fn cut_all(parts: &mut [Part], remaining: &mut usize) -> bool {
    let mut was_cut = false;
    for part in parts {
        was_cut |= match part {
            Part::Text(text) | Part::Reasoning(text) | Part::ToolResult(ToolResult { output: text, .. }) => {
                truncate_to_remaining(text, remaining)
            }
            Part::ToolCall(call) => cut_arguments(call, remaining),
            Part::Image(image) => {
                let length =
                    image.url.chars().count() + image.description.as_ref().map_or(0, |text| text.chars().count());
                let fits = consume(remaining, length);
                if !fits {
                    *part = Part::Text(TRUNCATION_MARK.to_owned());
                }
                !fits
            }
            Part::Raw { json, .. } => {
                let fits = consume(remaining, json.as_str().chars().count());
                if !fits {
                    *part = Part::Text(TRUNCATION_MARK.to_owned());
                }
                !fits
            }
        };
    }
    was_cut
}

fn consume(remaining: &mut usize, length: usize) -> bool {
    let fits = length <= *remaining;
    *remaining = remaining.saturating_sub(length);
    fits
}

fn truncate_to_remaining(text: &mut String, remaining: &mut usize) -> bool {
    match cut_marked(text, *remaining) {
        Some(shorter) => {
            *text = shorter;
            *remaining = 0;
            true
        }
        None => {
            *remaining = remaining.saturating_sub(text.chars().count());
            false
        }
    }
}

/// Truncates the arguments of a call. The result is valid JSON: an object with the beginning of the original text.
fn cut_arguments(call: &mut ToolCall, remaining: &mut usize) -> bool {
    let mut text = call.arguments.as_str().to_owned();
    let was_cut = truncate_to_remaining(&mut text, remaining);
    if was_cut {
        call.arguments = JsonText::from(&serde_json::json!({ "cut": text }));
    }
    was_cut
}

#[cfg(test)]
mod tests {
    use super::*;

    // S4.11
    #[test]
    fn only_text_beyond_the_limit_is_truncated() {
        assert_eq!(cut_marked(&"é".repeat(500), 500), None);
        assert_eq!(cut_marked(&"é".repeat(501), 500), Some(format!("{}...", "é".repeat(500))));
    }

    #[test]
    fn grapheme_clusters_are_not_split() {
        for (text, characters, expected) in
            [("e\u{301}e\u{301}", 3, "e\u{301}"), ("🇲🇽🇲🇽", 3, "🇲🇽"), ("👍🏽x", 1, ""), ("\r\nx", 1, ""), ("ab", 0, "")]
        {
            assert_eq!(cut(text, characters), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn truncated_arguments_are_valid_json() {
        let arguments = JsonText::new(r#"{"name":"webex234"}"#).unwrap();
        let mut parts = [Part::ToolCall(ToolCall { id: "1".into(), name: "delete".into(), arguments })];
        assert!(cut_all(&mut parts, &mut 8));
        let Part::ToolCall(call) = &parts[0] else { panic!("expected a tool call") };
        assert_eq!(call.arguments.as_str(), r#"{"cut":"{\"name\":..."}"#);
    }
}
