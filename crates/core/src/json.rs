use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{StoreError, limits};

/// A JSON value. Objects preserve the order of their fields.
pub type Value = serde_json::Value;
/// A JSON object. It preserves the order of its fields.
pub type Map = serde_json::Map<String, serde_json::Value>;

/// The largest number up to which every whole number can be represented exactly as a 64-bit floating-point number.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns the value of a whole number, even if it is written with a zero fraction, as some clients do (`497.0`). Returns `None` for any
/// other number.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the number is whole and in range")]
pub fn whole_number(number: &serde_json::Number) -> Option<i128> {
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let whole = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= MAX_EXACT);
    integer.or_else(|| whole().map(|float| float as i128))
}

/// Rewords an error message of the JSON library in JSON terms instead of Rust terms, and removes the position at its end.
#[must_use]
pub fn plain_json_error(message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    let mut message = message.to_owned();
    for (term, plain) in [
        ("unknown variant", "unknown value"),
        ("floating point", "number"),
        ("a sequence", "an array"),
        ("invalid type: sequence", "invalid type: array"),
        ("invalid type: map", "invalid type: object"),
        ("expected a map", "expected an object"),
        ("a JSON number", "a number"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected u8", "expected a whole number"),
        ("expected usize", "expected a whole number"),
        ("expected i64", "expected a whole number"),
        ("expected f64", "expected a number"),
        ("EOF while parsing", "the text ends within"),
    ] {
        message = message.replace(term, plain);
    }
    // For an object, the library's message contains the name of a Rust type.
    match message.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected an object"),
        None => message,
    }
}

/// Opaque JSON text, stored and returned byte for byte.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// Checks that the text is a single JSON value of limited depth.
    ///
    /// # Errors
    /// `Invalid` if it is not JSON, `LimitExceeded` if it nests deeper than [`limits::JSON_DEPTH`].
    pub fn new(text: impl Into<String>) -> Result<Self, StoreError> {
        let text = text.into();
        limits::check_json_depth(&text)?;
        Self::from_stored(text)
    }

    /// Creates a value from stored text. Does not check the depth, which [`Self::new`] checked before the text was stored.
    ///
    /// # Errors
    /// `Invalid` if it is not JSON.
    pub fn from_stored(text: impl Into<String>) -> Result<Self, StoreError> {
        let text = text.into();
        RawValue::from_string(text).map(Self).map_err(|error| StoreError::invalid("json", format!("not JSON: {error}")))
    }

    /// Serialises a value.
    ///
    /// # Errors
    /// `Invalid` if the value cannot be represented in JSON, such as a map whose keys are not strings.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, StoreError> {
        serde_json::value::to_raw_value(value).map(Self).map_err(|error| StoreError::invalid("json", error.to_string()))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Deserialises the text.
    ///
    /// # Errors
    /// `Corrupt` if the text does not match `T`.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, StoreError> {
        serde_json::from_str(self.as_str()).map_err(|error| StoreError::corrupt("json", error.to_string()))
    }
}

/// Serialises a value as JSON on one line, for line-based formats. Line breaks inside a [`JsonText`] are replaced.
///
/// # Errors
/// The same as [`serde_json::to_string`].
pub fn json_line<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    serde_json::to_string(value).map(on_one_line)
}

/// Replaces line breaks in JSON with spaces. They can only be between tokens, because they are escaped in strings.
#[must_use]
pub fn on_one_line(json: String) -> String {
    if json.contains(['\n', '\r']) { json.replace(['\n', '\r'], " ") } else { json }
}

impl From<&Value> for JsonText {
    fn from(value: &Value) -> Self {
        Self(serde_json::value::to_raw_value(value).expect("a JSON value can always be serialised"))
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

    /// The depth of stored text is not checked, so the parser's own limit must prevent a stack overflow.
    #[test]
    fn deep_nesting_cannot_overflow_the_stack() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(JsonText::new(deep(limits::JSON_DEPTH)).unwrap().read::<Value>().is_ok());
        assert!(matches!(JsonText::new(deep(limits::JSON_DEPTH + 1)), Err(StoreError::LimitExceeded { .. })));
        let stored = JsonText::from_stored(deep(500_000)).unwrap();
        assert!(matches!(stored.read::<Value>(), Err(StoreError::Corrupt { .. })));
        assert!(serde_json::from_str::<JsonText>(stored.as_str()).is_ok());
    }

    #[test]
    fn json_line_joins_several_lines() {
        let text = JsonText::new("{\r\n \"a\\n\": [1,\n1.0]\n}").unwrap();
        let line = json_line(std::slice::from_ref(&text)).unwrap();
        assert_eq!(line, r#"[{   "a\n": [1, 1.0] }]"#);
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()[0], text.read::<Value>().unwrap());
    }
}
