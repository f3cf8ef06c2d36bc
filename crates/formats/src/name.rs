//! What a conversation calls itself, read as far as its text can be read.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::ConversationName;
use crate::fields::{Kind, kind, text};

/// Bytes of a title and of an id that are told.
const TOLD_BYTES: usize = 100;
const TITLES: [&str; 2] = ["title", "name"];
const IDS: [&str; 5] = ["conversation_id", "id", "uuid", "dialogue_id", "sample_id"];

/// Reads the name of a conversation. What stands before the place where its text is damaged counts.
pub(crate) fn name_of(text: &str) -> ConversationName {
    let mut name = ConversationName::default();
    // The damage itself is told elsewhere.
    drop(Members(&mut name).deserialize(&mut serde_json::Deserializer::from_str(text)));
    name
}

/// A text without control characters, of bounded length.
pub(crate) fn told(text: &str) -> Option<String> {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let told = clean[..clean.floor_char_boundary(TOLD_BYTES)].trim();
    (!told.is_empty()).then(|| told.to_owned())
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
            let place = if TITLES.contains(&member.as_str()) {
                &mut self.0.title
            } else if IDS.contains(&member.as_str()) {
                &mut self.0.id
            } else {
                access.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = access.next_value::<&RawValue>()?;
            if place.is_none() {
                *place = word(value);
            }
        }
        Ok(())
    }
}

/// A text, or a number as it is written.
fn word(json: &RawValue) -> Option<String> {
    match kind(json) {
        Kind::Text => told(&text(json).ok()?),
        Kind::Number => told(json.get()),
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

    fn is(title: &str, id: &str) -> (Option<String>, Option<String>) {
        (told(title), told(id))
    }

    #[test]
    fn the_first_title_and_id_are_told() {
        assert_eq!(name(r#"{"title":"Boats\n","mapping":{"id":"no"},"id":"a-1"}"#), is("Boats", "a-1"));
        assert_eq!(name(r#"{"uuid":7,"name":null}"#), is("", "7"));
        assert_eq!(name(r#"{"name":"","uuid":["x"]}"#), is("", ""));
        assert_eq!(name("[]"), is("", ""));
    }

    #[test]
    fn what_stands_before_the_damage_is_told() {
        assert_eq!(name(r#"{"title":"Boats","id":"a-1","mapping":{"x":oops"#), is("Boats", "a-1"));
        assert_eq!(name(r#"{"title":"Boats","mapping":{"x":oops},"id":"a-1"}"#), is("Boats", ""));
    }

    #[test]
    fn long_names_are_cut() {
        let long = "é".repeat(80);
        assert_eq!(name(&format!(r#"{{"title":"{long}"}}"#)), (Some("é".repeat(50)), None));
    }
}
