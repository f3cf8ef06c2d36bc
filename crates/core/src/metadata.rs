use crate::{Map, Result, StoreError, Value, limits};

/// The maximum number of conditions in a filter.
const MAX_CONDITIONS: usize = 8;
/// The maximum length of a filtered value, in bytes: 512 characters of any script.
pub const METADATA_VALUE_BYTES: usize = 2_048;

/// A filter on metadata: every condition must be met.
///
/// A condition compares one top-level field with strings, integers and booleans. Other values (fractions, null, lists, objects,
/// strings longer than [`METADATA_VALUE_BYTES`]) never meet a condition. Strings are compared exactly. The empty filter passes
/// everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MetadataFilter {
    conditions: Vec<MetadataCondition>,
}

/// A condition of a [`MetadataFilter`]: a top-level field has one of the values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MetadataCondition {
    /// The name of the field.
    pub key: String,
    /// The accepted values: one, or several values of different types with the same text.
    pub values: Vec<MetadataValue>,
}

/// A value that filters compare.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MetadataValue {
    /// A string.
    Text(String),
    /// An integer of 64 bits.
    Integer(i64),
    /// A boolean.
    Bool(bool),
}

impl MetadataFilter {
    /// Adds a condition: the field has exactly this value.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: MetadataValue) -> Self {
        self.conditions.push(MetadataCondition { key: key.into(), values: vec![value] });
        self
    }

    /// Adds a condition for a value without a type, such as a query parameter: the field is this string, or the integer or boolean
    /// with this JSON text.
    #[must_use]
    pub fn with_text(mut self, key: impl Into<String>, text: &str) -> Self {
        let mut values = vec![MetadataValue::Text(text.to_owned())];
        match text {
            "true" | "false" => values.push(MetadataValue::Bool(text == "true")),
            _ => {
                let integer = text.parse::<i64>().ok().filter(|integer| integer.to_string() == text);
                values.extend(integer.map(MetadataValue::Integer));
            }
        }
        self.conditions.push(MetadataCondition { key: key.into(), values });
        self
    }

    /// Creates a filter from a JSON object: each field is a condition.
    ///
    /// # Errors
    /// `Invalid`, naming the field, if a value is not a string, an integer or a boolean; otherwise the same as for
    /// [`MetadataFilter::check`].
    pub fn from_map(map: &Map) -> Result<Self> {
        let mut filter = Self::default();
        for (key, value) in map {
            let value = match value {
                Value::String(text) => Some(MetadataValue::Text(text.clone())),
                Value::Bool(bool) => Some(MetadataValue::Bool(*bool)),
                Value::Number(number) => number.as_i64().map(MetadataValue::Integer),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            };
            let Some(value) = value else {
                let reason = format!("the value of `{key}` must be a string, an integer or a boolean");
                return Err(StoreError::invalid("metadata", reason));
            };
            filter = filter.with(key, value);
        }
        filter.check()?;
        Ok(filter)
    }

    /// Returns the conditions.
    #[must_use]
    pub fn conditions(&self) -> &[MetadataCondition] {
        &self.conditions
    }

    /// Whether the filter passes everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Whether metadata meets all conditions.
    #[must_use]
    pub fn matches(&self, metadata: &Map) -> bool {
        self.conditions.iter().all(|condition| {
            let value = metadata.get(&condition.key).and_then(MetadataValue::of);
            value.is_some_and(|value| condition.values.contains(&value))
        })
    }

    /// Checks the filter against the limits that all stores share: at most 8 conditions, with keys of at most
    /// [`limits::NAME_BYTES`] and values of at most [`METADATA_VALUE_BYTES`].
    ///
    /// # Errors
    /// `LimitExceeded` if a limit is exceeded, `Invalid` for a key that appears twice, is empty or contains control characters, and for a
    /// value with NUL.
    pub fn check(&self) -> Result<()> {
        limits::check_count("conditions per metadata filter", self.conditions.len(), MAX_CONDITIONS)?;
        for (index, condition) in self.conditions.iter().enumerate() {
            limits::check_name("metadata key", &condition.key)?;
            if self.conditions[..index].iter().any(|other| other.key == condition.key) {
                return Err(StoreError::invalid("metadata", format!("the key `{}` appears twice", condition.key)));
            }
            for value in &condition.values {
                if let MetadataValue::Text(text) = value {
                    limits::check_count("metadata filter value bytes", text.len(), METADATA_VALUE_BYTES)?;
                    limits::check_text("metadata value", text)?;
                }
            }
        }
        Ok(())
    }
}

impl MetadataValue {
    /// Returns the value of a field; `None` if filters do not compare it.
    #[must_use]
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) if text.len() <= METADATA_VALUE_BYTES => Some(Self::Text(text.clone())),
            Value::Bool(bool) => Some(Self::Bool(*bool)),
            Value::Number(number) => number.as_i64().map(Self::Integer),
            Value::String(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Map {
        let json = r#"{"env": "prod", "n": 3, "text": "3", "on": true, "ratio": 3.0, "big": 18446744073709551615,
                       "list": ["prod"], "none": null}"#;
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn strings_integers_and_booleans_are_compared_with_their_type() {
        let text = |text: &str| MetadataValue::Text(text.to_owned());
        for (key, value, expected) in [
            ("env", text("prod"), true),
            ("env", text("Prod"), false),
            ("n", MetadataValue::Integer(3), true),
            ("n", text("3"), false),
            ("text", MetadataValue::Integer(3), false),
            ("on", MetadataValue::Bool(true), true),
            ("on", text("true"), false),
            ("ratio", MetadataValue::Integer(3), false),
            ("list", text("prod"), false),
            ("none", text("null"), false),
            ("absent", text(""), false),
        ] {
            let filter = MetadataFilter::default().with(key, value);
            assert_eq!(filter.matches(&metadata()), expected, "{filter:?}");
        }
        let both = MetadataFilter::default().with_text("env", "prod").with_text("n", "4");
        assert!(!both.matches(&metadata()), "every condition must be met");
        assert!(MetadataFilter::default().matches(&Map::new()));
    }

    #[test]
    fn text_without_a_type_matches_values_of_every_type_with_this_text() {
        for (key, text, expected) in [
            ("n", "3", true),
            ("text", "3", true),
            ("on", "true", true),
            ("n", "03", false),
            ("n", "+3", false),
            ("ratio", "3.0", false),
            ("big", "18446744073709551615", false),
        ] {
            assert_eq!(MetadataFilter::default().with_text(key, text).matches(&metadata()), expected, "{key}={text}");
        }
    }

    #[test]
    fn invalid_filters_are_rejected() {
        for (json, member) in [(r#"{"a": 0.5}"#, "`a`"), (r#"{"b": null}"#, "`b`"), (r#"{"c": ["x"]}"#, "`c`")] {
            let error = MetadataFilter::from_map(&serde_json::from_str(json).unwrap()).unwrap_err();
            assert!(error.to_string().contains(member), "{error}");
        }
        let with = |key: &str, text: &str| MetadataFilter::default().with_text(key, text).check();
        assert!(matches!(with("", "a"), Err(StoreError::Invalid { .. })));
        let twice = MetadataFilter::default().with_text("a", "1").with_text("a", "1").check();
        assert!(matches!(twice, Err(StoreError::Invalid { .. })));
        assert!(matches!(with("a\n", "a"), Err(StoreError::Invalid { .. })));
        assert!(matches!(with("a", "\0"), Err(StoreError::Invalid { .. })));
        assert!(matches!(with(&"k".repeat(201), "a"), Err(StoreError::LimitExceeded { .. })));
        assert!(matches!(with("a", &"x".repeat(2_049)), Err(StoreError::LimitExceeded { .. })));
        assert!(with("a", &"x".repeat(2_048)).is_ok());
        let conditions = |count: u8| {
            (0..count).fold(MetadataFilter::default(), |filter, n| filter.with_text(n.to_string(), "x")).check()
        };
        assert!(conditions(8).is_ok());
        assert!(matches!(conditions(9), Err(StoreError::LimitExceeded { .. })));
    }
}
