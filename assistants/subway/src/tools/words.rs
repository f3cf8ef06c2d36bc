//! Arguments as models write them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use threadkeep::core::ToolError;

/// Text that a model may also write as a number (`"line": 1`) or as a list (`["2", "3"]`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words(String);

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Number(u64),
    List(Vec<Self>),
}

impl Words {
    /// The text without white space around it, if there is any.
    pub(super) fn given(&self) -> Option<&str> {
        Some(self.0.trim()).filter(|text| !text.is_empty())
    }

    /// The text, which must be there and have `limit` bytes at most.
    pub(super) fn required(&self, name: &str, limit: usize) -> Result<&str, ToolError> {
        match self.given() {
            None => Err(ToolError::Arguments(format!("{name} is empty"))),
            Some(text) if text.len() > limit => {
                Err(ToolError::Arguments(format!("{name} has more than {limit} bytes")))
            }
            Some(text) => Ok(text),
        }
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer).map(|written| Self(text_of(written)))
    }
}

fn text_of(written: Written) -> String {
    match written {
        Written::Text(text) => text,
        Written::Number(number) => number.to_string(),
        Written::List(list) => list.into_iter().map(text_of).collect::<Vec<_>>().join(","),
    }
}

impl JsonSchema for Words {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Words {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn lines_may_be_numbers_and_lists() {
        for (json, text) in [(r#"" A ""#, "A"), ("7", "7"), (r#"["2", 3]"#, "2,3"), (r#"["4/5"]"#, "4/5")] {
            assert_eq!(read(json).given(), Some(text));
        }
        assert_eq!(read(r#""  ""#).given(), None);
        assert!(serde_json::from_str::<Words>("{}").is_err());
        assert_eq!(
            read("\"abc\"").required("line", 2).unwrap_err().to_string(),
            "invalid arguments: line has more than 2 bytes"
        );
        assert_eq!(read("[]").required("line", 2).unwrap_err().to_string(), "invalid arguments: line is empty");
    }
}
