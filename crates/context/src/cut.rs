//! Cutting text where a reader would.

use std::borrow::Cow;

use threadkeep_core::{JsonText, Part, ToolCall, ToolResult};
use unicode_segmentation::UnicodeSegmentation;

/// What stands where text was cut away.
pub const MARK: &str = "...";

/// Cuts a text after at most `characters` (Unicode scalar values), on the border of a grapheme cluster; `None` when it is
/// not longer. The mark is not part of the answer.
///
/// ```
/// use threadkeep_context::cut;
/// assert_eq!(cut("abc", 3), None);
/// assert_eq!(cut("abcd", 3), Some("abc"));
/// assert_eq!(cut("a👩‍👩‍👧", 3), Some("a"));
/// ```
#[must_use]
pub fn cut(text: &str, characters: usize) -> Option<&str> {
    // A text has at least as many bytes as characters.
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

/// The text, cut with a mark if it is longer.
pub(crate) fn cut_marked(text: &str, characters: usize) -> Option<String> {
    cut(text, characters).map(|kept| format!("{kept}{MARK}"))
}

/// Cuts the words and tool results of a message to `characters` in all, its parts in order. Tool calls stay as they are.
pub(crate) fn cut_parts(parts: &mut Cow<'_, [Part]>, characters: usize) -> bool {
    let words = |part: &Part| match part {
        Part::Text(text) | Part::ToolResult(ToolResult { output: text, .. }) => text.len(),
        _ => 0,
    };
    // As many bytes are at most as many characters: nothing is copied where nothing is cut.
    if parts.iter().map(words).sum::<usize>() <= characters {
        return false;
    }
    let mut room = characters;
    let mut was_cut = false;
    for part in parts.to_mut() {
        if let Part::Text(text) | Part::ToolResult(ToolResult { output: text, .. }) = part {
            was_cut |= cut_into(text, &mut room);
        }
    }
    was_cut
}

/// Cuts everything in a message that has a length of its own, for a newest message that must fit. What cannot be cut and
/// stay what it is becomes something smaller that says so.
pub(crate) fn cut_all(parts: &mut [Part], room: &mut usize) -> bool {
    let mut was_cut = false;
    for part in parts {
        was_cut |= match part {
            Part::Text(text) | Part::Reasoning(text) | Part::ToolResult(ToolResult { output: text, .. }) => {
                cut_into(text, room)
            }
            Part::ToolCall(call) => cut_arguments(call, room),
            Part::Image(image) => {
                let length =
                    image.url.chars().count() + image.description.as_ref().map_or(0, |text| text.chars().count());
                let fits = take(room, length);
                if !fits {
                    *part = Part::Text(MARK.to_owned());
                }
                !fits
            }
            Part::Raw { json, .. } => {
                let fits = take(room, json.as_str().chars().count());
                if !fits {
                    *part = Part::Text(MARK.to_owned());
                }
                !fits
            }
        };
    }
    was_cut
}

fn take(room: &mut usize, length: usize) -> bool {
    let fits = length <= *room;
    *room = room.saturating_sub(length);
    fits
}

fn cut_into(text: &mut String, room: &mut usize) -> bool {
    match cut_marked(text, *room) {
        Some(shorter) => {
            *text = shorter;
            *room = 0;
            true
        }
        None => {
            *room = room.saturating_sub(text.chars().count());
            false
        }
    }
}

/// Arguments stay JSON: too long ones become an object that holds their beginning.
fn cut_arguments(call: &mut ToolCall, room: &mut usize) -> bool {
    let mut text = call.arguments.as_str().to_owned();
    let was_cut = cut_into(&mut text, room);
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
    fn exactly_the_limit_is_not_cut_and_one_more_is() {
        assert_eq!(cut_marked(&"é".repeat(500), 500), None);
        assert_eq!(cut_marked(&"é".repeat(501), 500), Some(format!("{}...", "é".repeat(500))));
    }

    #[test]
    fn a_cluster_stays_whole() {
        for (text, characters, expected) in
            [("e\u{301}e\u{301}", 3, "e\u{301}"), ("🇲🇽🇲🇽", 3, "🇲🇽"), ("👍🏽x", 1, ""), ("\r\nx", 1, ""), ("ab", 0, "")]
        {
            assert_eq!(cut(text, characters), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn arguments_stay_json() {
        let arguments = JsonText::new(r#"{"name":"webex234"}"#).unwrap();
        let mut parts = [Part::ToolCall(ToolCall { id: "1".into(), name: "delete".into(), arguments })];
        assert!(cut_all(&mut parts, &mut 8));
        let Part::ToolCall(call) = &parts[0] else { panic!("still a call") };
        assert_eq!(call.arguments.as_str(), r#"{"cut":"{\"name\":..."}"#);
    }
}
