//! Reads the title and id of a conversation from a record that may be damaged.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::ConversationName;
use crate::fields::{Kind, kind, text};

/// The maximum length of a title or id in an error.
const MAX_BYTES: usize = 100;
const TITLES: [&str; 2] = ["title", "name"];
const IDS: [&str; 7] = ["conversation_id", "id", "uuid", "dialogue_id", "sample_id", "sessionId", "conversationId"];

/// Reads the title and id of a conversation before the point where its text is damaged.
pub(crate) fn name_of(text: &str) -> ConversationName {
    let mut name = ConversationName::default();
    // Errors are ignored, because the caller reports the damage itself.
    drop(Members(&mut name).deserialize(&mut serde_json::Deserializer::from_str(text)));
    name
}

/// Replaces control characters with spaces and truncates the text. Returns `None` if the result is empty.
pub(crate) fn truncated(text: &str) -> Option<String> {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let truncated = clean[..clean.floor_char_boundary(MAX_BYTES)].trim();
    (!truncated.is_empty()).then(|| truncated.to_owned())
}

struct Members<'n>(&'n mut ConversationName);

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(member) = access.next_key::<String>()? {
            let slot = if TITLES.contains(&member.as_str()) {
                &mut self.0.title
            } else if IDS.contains(&member.as_str()) {
                &mut self.0.id
            } else {
                access.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = access.next_value::<&RawValue>()?;
            if slot.is_none() {
                *slot = text_or_number(value);
            }
        }
        Ok(())
    }
}

/// Reads a string, or a number as written in the file.
fn text_or_number(json: &RawValue) -> Option<String> {
    match kind(json) {
        Kind::Text => truncated(&text(json).ok()?),
        Kind::Number => truncated(json.get()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> (Option<String>, Option<String>) {
        let ConversationName { title, id } = name_of(text);
        (title, id)
    }

    fn expected_name(title: &str, id: &str) -> (Option<String>, Option<String>) {
        (truncated(title), truncated(id))
    }

    #[test]
    fn the_first_title_and_id_are_read() {
        assert_eq!(name(r#"{"title":"Boats\n","mapping":{"id":"no"},"id":"a-1"}"#), expected_name("Boats", "a-1"));
        assert_eq!(name(r#"{"uuid":7,"name":null}"#), expected_name("", "7"));
        assert_eq!(name(r#"{"name":"","uuid":["x"]}"#), expected_name("", ""));
        assert_eq!(name("[]"), expected_name("", ""));
    }

    #[test]
    fn fields_before_the_damage_are_read() {
        assert_eq!(name(r#"{"title":"Boats","id":"a-1","mapping":{"x":oops"#), expected_name("Boats", "a-1"));
        assert_eq!(name(r#"{"title":"Boats","mapping":{"x":oops},"id":"a-1"}"#), expected_name("Boats", ""));
    }

    #[test]
    fn long_names_are_truncated() {
        let long = "é".repeat(80);
        assert_eq!(name(&format!(r#"{{"title":"{long}"}}"#)), (Some("é".repeat(50)), None));
    }
}
