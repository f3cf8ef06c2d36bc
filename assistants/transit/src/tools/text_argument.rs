//! Tool arguments, in the forms in which models write them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use threadkeep::core::ToolError;

/// A text argument, which a model may also write as a number (`"line": 1`) or as a list (`["2", "3"]`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextArgument(String);

#[derive(Deserialize)]
#[serde(untagged)]
enum RawArgument {
    Text(String),
    Number(u64),
    List(Vec<Self>),
}

impl TextArgument {
    /// Returns the trimmed text; `None` if it is empty.
    #[must_use]
    pub fn non_empty(&self) -> Option<&str> {
        Some(self.0.trim()).filter(|text| !text.is_empty())
    }

    /// Returns the trimmed text, which must not be empty and must have at most `limit` bytes.
    ///
    /// # Errors
    /// [`ToolError::Arguments`] with the argument's name.
    pub fn required(&self, name: &str, limit: usize) -> Result<&str, ToolError> {
        match self.non_empty() {
            None => Err(ToolError::Arguments(format!("{name} is empty"))),
            Some(text) if text.len() > limit => {
                Err(ToolError::Arguments(format!("{name} has more than {limit} bytes")))
            }
            Some(text) => Ok(text),
        }
    }
}

impl<'de> Deserialize<'de> for TextArgument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawArgument::deserialize(deserializer).map(|argument| Self(text_of(argument)))
    }
}

fn text_of(argument: RawArgument) -> String {
    match argument {
        RawArgument::Text(text) => text,
        RawArgument::Number(number) => number.to_string(),
        RawArgument::List(list) => list.into_iter().map(text_of).collect::<Vec<_>>().join(","),
    }
}

impl JsonSchema for TextArgument {
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

    fn read(json: &str) -> TextArgument {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn numbers_and_lists_become_text() {
        for (json, text) in [(r#"" A ""#, "A"), ("7", "7"), (r#"["2", 3]"#, "2,3"), (r#"["4/5"]"#, "4/5")] {
            assert_eq!(read(json).non_empty(), Some(text));
        }
        assert_eq!(read(r#""  ""#).non_empty(), None);
        assert!(serde_json::from_str::<TextArgument>("{}").is_err());
        assert_eq!(
            read("\"abc\"").required("line", 2).unwrap_err().to_string(),
            "invalid arguments: line has more than 2 bytes"
        );
        assert_eq!(read("[]").required("line", 2).unwrap_err().to_string(), "invalid arguments: line is empty");
    }
}
