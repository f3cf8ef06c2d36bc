//! A JSON object that keeps the order of its fields and the exact text of each value.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Members(Vec<(String, String)>);

impl Members {
    pub(super) fn read(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Returns the exact text of a field. If several fields have this name, returns the last one, as other JSON readers do.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a field that is a string; `None` if the field is missing or not a string.
    pub(super) fn get_string(&self, name: &str) -> Option<String> {
        self.get(name).and_then(|value| serde_json::from_str(value).ok())
    }

    /// Replaces the value of a field with a JSON text, or adds the field at the end. Duplicates of the field are removed.
    pub(super) fn set(&mut self, name: &str, json: impl Into<String>) {
        let mut json = Some(json.into());
        self.0.retain_mut(|(key, value)| match (key == name, json.take()) {
            (true, new) => new.map(|new| *value = new).is_some(),
            (false, kept) => {
                json = kept;
                true
            }
        });
        if let Some(json) = json {
            self.0.push((name.to_owned(), json));
        }
    }

    /// Sets a field that is missing or null.
    pub(super) fn set_if_null(&mut self, name: &str, value: &str) {
        if self.get(name).is_none_or(|value| value == "null") {
            self.set(name, value);
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }

    /// Whether the object has no fields other than these.
    pub(super) fn has_only(&self, names: &[&str]) -> bool {
        self.0.iter().all(|(key, _)| names.contains(&key.as_str()))
    }

    /// Returns the JSON text of the object, with `id` added as its first field.
    pub(super) fn to_json_with_id(&self, id: &str) -> String {
        let mut text = format!("{{\"id\":{}", json_string(id));
        for (name, value) in &self.0 {
            text.push(',');
            text.push_str(&json_string(name));
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        text
    }

    /// Returns the JSON text of the object.
    pub(super) fn to_json(&self) -> String {
        let members: Vec<String> =
            self.0.iter().map(|(name, value)| format!("{}:{value}", json_string(name))).collect();
        format!("{{{}}}", members.join(","))
    }
}

/// Encodes a string as JSON.
pub(super) fn json_string(text: &str) -> String {
    serde_json::to_string(text).expect("every string has a JSON form")
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.push((name, value.get().to_owned()));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_duplicate_is_returned_and_set_removes_the_others() {
        let mut members = Members::read(r#"{"a":1,"b":2,"a":3}"#).unwrap();
        assert_eq!(members.get("a"), Some("3"));
        members.set("a", "4");
        assert_eq!(members.get("a"), Some("4"));
        assert_eq!(members.to_json(), r#"{"a":4,"b":2}"#);
        members.set_if_null("b", "5");
        members.set_if_null("c", "6");
        assert_eq!(members.to_json(), r#"{"a":4,"b":2,"c":6}"#);
    }
}
