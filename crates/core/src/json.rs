use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{StoreError, limits};

/// A JSON value, with its members in the order they were given.
pub type Value = serde_json::Value;
/// A JSON object, with its members in the order they were given.
pub type Map = serde_json::Map<String, serde_json::Value>;

/// Exact JSON text: kept and given back byte for byte, read only by whoever knows its meaning.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// Takes a text after checking that it is one JSON value of bounded depth.
    ///
    /// # Errors
    /// `Invalid` when it is not JSON, `LimitExceeded` when it nests deeper than [`limits::JSON_DEPTH`].
    pub fn new(text: impl Into<String>) -> Result<Self, StoreError> {
        let text = text.into();
        limits::check_json_depth(&text)?;
        Self::stored(text)
    }

    /// Takes back a text that was [`Self::new`] before it was stored: its depth was checked then.
    ///
    /// # Errors
    /// `Invalid` when it is not JSON.
    pub fn stored(text: impl Into<String>) -> Result<Self, StoreError> {
        let text = text.into();
        RawValue::from_string(text).map(Self).map_err(|error| StoreError::invalid("json", format!("not JSON: {error}")))
    }

    /// Writes a value as text.
    ///
    /// # Errors
    /// `Invalid` when the value has no JSON form (a map whose keys are not text).
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, StoreError> {
        serde_json::value::to_raw_value(value).map(Self).map_err(|error| StoreError::invalid("json", error.to_string()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Reads the text as a value.
    ///
    /// # Errors
    /// `Corrupt` when the text has another shape than `T`.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, StoreError> {
        serde_json::from_str(self.as_str()).map_err(|error| StoreError::corrupt("json", error.to_string()))
    }
}

/// Writes a value as JSON on one line, for formats in which a line break ends something.
///
/// A [`JsonText`] is written as it came, which may be over several lines.
///
/// # Errors
/// As [`serde_json::to_string`].
pub fn json_line<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    serde_json::to_string(value).map(on_one_line)
}

/// JSON on one line: its line breaks stand between tokens, as texts have none, and become blanks.
#[must_use]
pub fn on_one_line(json: String) -> String {
    if json.contains(['\n', '\r']) { json.replace(['\n', '\r'], " ") } else { json }
}

impl From<&Value> for JsonText {
    fn from(value: &Value) -> Self {
        Self(serde_json::value::to_raw_value(value).expect("a JSON value always has a text"))
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for JsonText {}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parser's own bound holds behind ours, so that no text is read until the stack is full.
    #[test]
    fn no_depth_fills_the_stack() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(JsonText::new(deep(limits::JSON_DEPTH)).unwrap().read::<Value>().is_ok());
        assert!(matches!(JsonText::new(deep(limits::JSON_DEPTH + 1)), Err(StoreError::LimitExceeded { .. })));
        let stored = JsonText::stored(deep(500_000)).unwrap();
        assert!(matches!(stored.read::<Value>(), Err(StoreError::Corrupt { .. })));
        assert!(serde_json::from_str::<JsonText>(stored.as_str()).is_ok());
    }

    #[test]
    fn what_stands_on_several_lines_is_written_on_one() {
        let text = JsonText::new("{\r\n \"a\\n\": [1,\n1.0]\n}").unwrap();
        let line = json_line(std::slice::from_ref(&text)).unwrap();
        assert_eq!(line, r#"[{   "a\n": [1, 1.0] }]"#);
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()[0], text.read::<Value>().unwrap());
    }
}
