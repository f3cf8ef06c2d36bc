//! A JSON object whose members are read one by one, each as its exact text until someone asks for more.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use threadkeep_core::{JsonText, Map, Value, limits};

use crate::error::Refusal;

/// Members of an object and entries of a list: what is read of each takes many times the bytes that it has in the file.
pub(crate) const ENTRIES: usize = 1_000_000;
/// Bytes of a value that is read whole. No store takes a larger one.
pub(crate) const VALUE_BYTES: usize = limits::MESSAGE_BYTES;

/// The members of an object that nobody has taken yet, in order. A member that is null counts as absent.
#[derive(Debug)]
pub(crate) struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    pub(crate) fn read(json: &'a RawValue) -> Result<Self, Refusal> {
        if kind(json) != Kind::Object {
            return Err(Refusal::new(format!("{} instead of an object", kind(json))));
        }
        serde_json::from_str(json.get()).map_err(|error| unreadable(&error))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        // Of members with one name, the last is the one, as everywhere in JSON.
        self.0.iter().rev().find(|(member, _)| member == name).map(|(_, json)| *json).filter(|json| !is_null(json))
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let taken = self.get(name);
        self.0.retain(|(member, _)| member != name);
        taken
    }

    pub(crate) fn take_text(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        self.take(name).map(|json| text(json).map_err(|refusal| refusal.at(name))).transpose()
    }

    pub(crate) fn require_text(&mut self, name: &str) -> Result<String, Refusal> {
        self.take_text(name)?.ok_or_else(|| missing(name))
    }

    /// Takes a text, or a number as the text that it has in the file.
    pub(crate) fn take_id(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        match self.take(name) {
            Some(json) if kind(json) == Kind::Number => Ok(Some(json.get().to_owned())),
            Some(json) => text(json).map(Some).map_err(|refusal| refusal.at(name)),
            None => Ok(None),
        }
    }

    pub(crate) fn take_list(&mut self, name: &str) -> Result<Option<Vec<&'a RawValue>>, Refusal> {
        self.take(name).map(|json| list(json).map_err(|refusal| refusal.at(name))).transpose()
    }

    pub(crate) fn require_list(&mut self, name: &str) -> Result<Vec<&'a RawValue>, Refusal> {
        self.take_list(name)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn take_fields(&mut self, name: &str) -> Result<Option<Self>, Refusal> {
        self.take(name).map(|json| Self::read(json).map_err(|refusal| refusal.at(name))).transpose()
    }

    pub(crate) fn take_value(&mut self, name: &str) -> Result<Option<Value>, Refusal> {
        self.take(name).map(|json| value(json).map_err(|refusal| refusal.at(name))).transpose()
    }

    /// The members that are left, in order.
    pub(crate) fn into_members(self) -> Vec<(String, &'a RawValue)> {
        self.0
    }

    /// The names of the members that are left and too large to be read whole, and the others.
    pub(crate) fn into_large_and_small(self) -> (Vec<String>, Self) {
        let (large, small): (Vec<_>, Vec<_>) = self.0.into_iter().partition(|(_, json)| is_too_large(json));
        (large.into_iter().map(|(name, _)| name).collect(), Self(small))
    }

    /// The members that are left, nulls aside.
    pub(crate) fn into_map(self) -> Result<Map, Refusal> {
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
                    if members.len() == ENTRIES {
                        return Err(A::Error::custom(format_args!("an object with more than {ENTRIES} members")));
                    }
                    members.push(member);
                }
                Ok(Fields(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

pub(crate) fn text(json: &RawValue) -> Result<String, Refusal> {
    match kind(json) {
        Kind::Text => serde_json::from_str(json.get()).map_err(|error| unreadable(&error)),
        other => Err(Refusal::new(format!("{other} instead of a text"))),
    }
}

pub(crate) fn list(json: &RawValue) -> Result<Vec<&RawValue>, Refusal> {
    match kind(json) {
        Kind::List => {
            let List(entries) = serde_json::from_str(json.get()).map_err(|error| unreadable(&error))?;
            Ok(entries)
        }
        other => Err(Refusal::new(format!("{other} instead of a list"))),
    }
}

/// The entries of a list, of which there are not too many.
struct List<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for List<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = List<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = access.next_element()? {
                    if entries.len() == ENTRIES {
                        return Err(A::Error::custom(format_args!("a list with more than {ENTRIES} entries")));
                    }
                    entries.push(entry);
                }
                Ok(List(entries))
            }
        }

        deserializer.deserialize_seq(Entries)
    }
}

/// Whether a value is too large to be read whole.
pub(crate) fn is_too_large(json: &RawValue) -> bool {
    json.get().len() > VALUE_BYTES
}

pub(crate) fn value(json: &RawValue) -> Result<Value, Refusal> {
    if is_too_large(json) {
        return Err(Refusal::new(format!("larger than {VALUE_BYTES} bytes, the most that a value may have")));
    }
    serde_json::from_str(json.get()).map_err(|error| unreadable(&error))
}

pub(crate) fn exact(json: &RawValue) -> Result<JsonText, Refusal> {
    Ok(JsonText::new(json.get())?)
}

/// What kind of value it is.
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
            Self::List => "a list",
            Self::Text => "a text",
            Self::Bool => "true or false",
            Self::Null => "null",
            Self::Number => "a number",
        })
    }
}

/// Tells the kind by the first byte, which is enough for text that is known to be JSON.
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

pub(crate) fn missing(name: &str) -> Refusal {
    Refusal::new(format!("`{name}` is missing"))
}

/// The parser's words without its position, which counts from the beginning of the value and would mislead.
pub(crate) fn unreadable(error: &serde_json::Error) -> Refusal {
    let words = error.to_string();
    Refusal::new(words.split(" at line ").next().unwrap_or_default())
}
