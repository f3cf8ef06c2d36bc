//! Represents a JSON object whose fields are stored as JSON text and parsed on demand.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use threadkeep_core::{JsonText, Map, Value, limits};

use crate::error::Rejection;

/// The maximum number of fields of an object and of entries of a list. Each takes many times more memory than its bytes in
/// the file.
pub(crate) const MAX_ENTRIES: usize = 1_000_000;
/// The maximum size of a value that is parsed. No store accepts a larger one.
pub(crate) const MAX_VALUE_BYTES: usize = limits::MESSAGE_BYTES;

/// The fields of an object that have not been taken yet, in order. Fields that are null count as absent.
#[derive(Debug)]
pub(crate) struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    pub(crate) fn read(json: &'a RawValue) -> Result<Self, Rejection> {
        if kind(json) != Kind::Object {
            return Err(Rejection::new(format!("expected an object, found {}", kind(json))));
        }
        serde_json::from_str(json.get()).map_err(|error| parser_error(&error))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        // If a field name is repeated, the last field wins, as is usual in JSON.
        self.0.iter().rev().find(|(member, _)| member == name).map(|(_, json)| *json).filter(|json| !is_null(json))
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let taken = self.get(name);
        self.0.retain(|(member, _)| member != name);
        taken
    }

    pub(crate) fn take_text(&mut self, name: &str) -> Result<Option<String>, Rejection> {
        self.take(name).map(|json| text(json).map_err(|rejection| rejection.at(name))).transpose()
    }

    pub(crate) fn require_text(&mut self, name: &str) -> Result<String, Rejection> {
        self.take_text(name)?.ok_or_else(|| missing(name))
    }

    /// Takes a string, or a number as written in the file.
    pub(crate) fn take_id(&mut self, name: &str) -> Result<Option<String>, Rejection> {
        match self.take(name) {
            Some(json) if kind(json) == Kind::Number => Ok(Some(json.get().to_owned())),
            Some(json) => text(json).map(Some).map_err(|rejection| rejection.at(name)),
            None => Ok(None),
        }
    }

    pub(crate) fn take_list(&mut self, name: &str) -> Result<Option<Vec<&'a RawValue>>, Rejection> {
        self.take(name).map(|json| list(json).map_err(|rejection| rejection.at(name))).transpose()
    }

    pub(crate) fn require_list(&mut self, name: &str) -> Result<Vec<&'a RawValue>, Rejection> {
        self.take_list(name)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn take_fields(&mut self, name: &str) -> Result<Option<Self>, Rejection> {
        self.take(name).map(|json| Self::read(json).map_err(|rejection| rejection.at(name))).transpose()
    }

    pub(crate) fn take_value(&mut self, name: &str) -> Result<Option<Value>, Rejection> {
        self.take(name).map(|json| value(json).map_err(|rejection| rejection.at(name))).transpose()
    }

    /// Returns the remaining fields, in order.
    pub(crate) fn into_remaining(self) -> Vec<(String, &'a RawValue)> {
        self.0
    }

    /// Splits the remaining fields into the names of those that are too large to be parsed, and the other fields.
    pub(crate) fn into_large_and_small(self) -> (Vec<String>, Self) {
        let (large, small): (Vec<_>, Vec<_>) = self.0.into_iter().partition(|(_, json)| is_too_large(json));
        (large.into_iter().map(|(name, _)| name).collect(), Self(small))
    }

    /// Parses the remaining fields, except nulls.
    pub(crate) fn into_map(self) -> Result<Map, Rejection> {
        let members = self.0.into_iter().filter(|(_, json)| !is_null(json));
        members.map(|(name, json)| Ok((name, value(json)?))).collect()
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = access.next_entry()? {
                    if members.len() == MAX_ENTRIES {
                        return Err(A::Error::custom(format_args!("more than {MAX_ENTRIES} fields")));
                    }
                    members.push(member);
                }
                Ok(Fields(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

pub(crate) fn text(json: &RawValue) -> Result<String, Rejection> {
    match kind(json) {
        Kind::Text => serde_json::from_str(json.get()).map_err(|error| parser_error(&error)),
        other => Err(Rejection::new(format!("expected a string, found {other}"))),
    }
}

pub(crate) fn list(json: &RawValue) -> Result<Vec<&RawValue>, Rejection> {
    match kind(json) {
        Kind::List => {
            let List(entries) = serde_json::from_str(json.get()).map_err(|error| parser_error(&error))?;
            Ok(entries)
        }
        other => Err(Rejection::new(format!("expected an array, found {other}"))),
    }
}

/// The entries of a list. There are at most [`MAX_ENTRIES`].
struct List<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for List<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = List<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = access.next_element()? {
                    if entries.len() == MAX_ENTRIES {
                        return Err(A::Error::custom(format_args!("more than {MAX_ENTRIES} entries")));
                    }
                    entries.push(entry);
                }
                Ok(List(entries))
            }
        }

        deserializer.deserialize_seq(Entries)
    }
}

/// Whether a value is too large to be parsed.
pub(crate) fn is_too_large(json: &RawValue) -> bool {
    json.get().len() > MAX_VALUE_BYTES
}

pub(crate) fn value(json: &RawValue) -> Result<Value, Rejection> {
    if is_too_large(json) {
        return Err(Rejection::new(format!("value exceeds {MAX_VALUE_BYTES} bytes")));
    }
    serde_json::from_str(json.get()).map_err(|error| parser_error(&error))
}

pub(crate) fn exact(json: &RawValue) -> Result<JsonText, Rejection> {
    Ok(JsonText::new(json.get())?)
}

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    List,
    Text,
    Bool,
    Null,
    Number,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "an object",
            Self::List => "an array",
            Self::Text => "a string",
            Self::Bool => "a boolean",
            Self::Null => "null",
            Self::Number => "a number",
        })
    }
}

/// Determines the kind by the first byte, which suffices because the JSON is valid.
pub(crate) fn kind(json: &RawValue) -> Kind {
    match json.get().as_bytes().first() {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::List,
        Some(b'"') => Kind::Text,
        Some(b't' | b'f') => Kind::Bool,
        Some(b'n') => Kind::Null,
        _ => Kind::Number,
    }
}

fn is_null(json: &RawValue) -> bool {
    kind(json) == Kind::Null
}

pub(crate) fn missing(name: &str) -> Rejection {
    Rejection::new(format!("`{name}` is missing"))
}

/// Returns the parser's message without its position, which is misleading because it is relative to the value.
pub(crate) fn parser_error(error: &serde_json::Error) -> Rejection {
    let message = error.to_string();
    Rejection::new(message.split(" at line ").next().unwrap_or_default())
}
