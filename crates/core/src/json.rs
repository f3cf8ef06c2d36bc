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
