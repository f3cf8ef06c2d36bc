//! Reads parts of replies.

use redis::Value;
use threadkeep_core::{Result, StoreError};

fn unexpected() -> StoreError {
    StoreError::corrupt("reply", "not of the expected form")
}

/// A reply, or a part of one.
pub(crate) trait Reply: Sized {
    fn bytes(self) -> Result<Option<Vec<u8>>>;
    fn items(self) -> Result<Vec<Value>>;

    fn text(self) -> Result<Option<String>> {
        let bytes = self.bytes()?;
        bytes.map(|bytes| String::from_utf8(bytes).map_err(|_| StoreError::corrupt("text", "not UTF-8"))).transpose()
    }

    fn number(self) -> Result<u64> {
        let text = self.text()?;
        text.and_then(|text| text.parse().ok()).ok_or_else(unexpected)
    }
}

impl Reply for Value {
    /// Returns a string or a number as text; `None` for nil.
    fn bytes(self) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Nil | Self::Boolean(false) => Ok(None),
            Self::BulkString(bytes) => Ok(Some(bytes)),
            Self::SimpleString(text) => Ok(Some(text.into_bytes())),
            Self::VerbatimString { text, .. } => Ok(Some(text.into_bytes())),
            Self::Int(number) => Ok(Some(number.to_string().into_bytes())),
            Self::Double(number) => Ok(Some(number.to_string().into_bytes())),
            Self::Okay => Ok(Some(b"OK".to_vec())),
            _ => Err(unexpected()),
        }
    }

    fn items(self) -> Result<Vec<Value>> {
        match self {
            Self::Array(items) | Self::Set(items) => Ok(items),
            Self::Map(pairs) => Ok(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect()),
            Self::Nil => Ok(Vec::new()),
            _ => Err(unexpected()),
        }
    }
}

/// Takes the next item of a reply.
pub(crate) fn next(items: &mut impl Iterator<Item = Value>) -> Result<Value> {
    items.next().ok_or_else(unexpected)
}

/// Reads an item that is a string.
pub(crate) fn required_text(value: Value) -> Result<String> {
    value.text()?.ok_or_else(unexpected)
}
