//! Filters on the fields of entries.
//!
//! Every backend indexes one term per filterable value of an entry ([`filter_terms`]), so that filters are part of the lookup. A term
//! is a hash of field and value, in a form that text cannot produce.

use crate::{Map, Result, StoreError, Value, limits};

/// The first character of the term for a field's value. A private-use character is never part of a term of text.
const FILTER_MARK: char = '\u{e004}';
/// The maximum length of a filterable string, in bytes.
const VALUE_BYTES: usize = 64;
/// The maximum number of filterable values in a list.
const LIST_VALUES: usize = 32;
/// The maximum number of filters in a query.
const MAX_FILTERS: usize = 8;
/// The maximum number of values in a filter.
const MAX_VALUES: usize = 200;

/// A condition on a field of entries: the field is one of the values, or a list that contains one of them.
///
/// Integers, booleans and strings of at most 64 bytes are filterable. In a list, only the first 32 values are. Strings are compared
/// exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldFilter {
    /// The name of the field.
    pub field: String,
    /// The accepted values, at most 200. If there are none, no entry passes.
    pub values: Vec<Value>,
}

impl FieldFilter {
    /// Creates a filter that accepts one value.
    #[must_use]
    pub fn equal(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::any(field, [value])
    }

    /// Creates a filter that accepts any of these values.
    #[must_use]
    pub fn any<V: Into<Value>>(field: impl Into<String>, values: impl IntoIterator<Item = V>) -> Self {
        Self { field: field.into(), values: values.into_iter().map(Into::into).collect() }
    }

    /// Checks the filters against the limits that all backends share: at most 8 filters with at most 200 filterable values each.
    ///
    /// # Errors
    /// `LimitExceeded` if there are too many filters or values, `Invalid` if a value is not filterable.
    pub fn check_all(filters: &[Self]) -> Result<()> {
        limits::check_at_most("filters per query", filters.len(), MAX_FILTERS)?;
        for filter in filters {
            limits::check_at_most("values per filter", filter.values.len(), MAX_VALUES)?;
            if !filter.values.iter().all(is_filterable) {
                let reason = "values must be integers, booleans or strings of at most 64 bytes";
                return Err(StoreError::invalid("filter", reason));
            }
        }
        Ok(())
    }

    /// Whether an entry with these fields passes.
    #[must_use]
    pub fn passes(&self, fields: &Map) -> bool {
        let field = fields.get(&self.field);
        field.is_some_and(|field| filterable_values(field).any(|value| self.values.contains(value)))
    }

    /// Returns the index terms of the accepted values, at least one of which an entry must have.
    #[must_use]
    pub fn terms(&self) -> Vec<String> {
        self.values.iter().map(|value| filter_term(&self.field, value)).collect()
    }
}

/// Returns the terms to index for the fields of an entry: one per filterable value.
#[must_use]
pub fn filter_terms(fields: &Map) -> Vec<String> {
    let terms =
        fields.iter().flat_map(|(field, value)| filterable_values(value).map(move |value| filter_term(field, value)));
    terms.collect()
}

fn filterable_values(value: &Value) -> impl Iterator<Item = &Value> {
    let values = match value {
        Value::Array(values) => &values[..values.len().min(LIST_VALUES)],
        value => std::slice::from_ref(value),
    };
    values.iter().filter(|value| is_filterable(value))
}

fn is_filterable(value: &Value) -> bool {
    match value {
        Value::Bool(_) => true,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        Value::String(text) => text.len() <= VALUE_BYTES,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn filter_term(field: &str, value: &Value) -> String {
    let length = (field.len() as u64).to_be_bytes();
    let value = value.to_string();
    format!("{FILTER_MARK}{:016x}", hash(&[&length, field.as_bytes(), value.as_bytes()]))
}

/// Returns the 64-bit FNV-1a hash of some bytes. It is stored, so it must never change.
fn hash(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_booleans_short_strings_and_lists_of_them_are_filterable() {
        let json = r#"{"year": 2024, "is_open": true, "topics": ["civil", "penal"], "ratio": 0.5, "none": null}"#;
        let fields: Map = serde_json::from_str(json).unwrap();
        for (filter, expected) in [
            (FieldFilter::equal("year", 2024), true),
            (FieldFilter::any("year", [2023, 2024]), true),
            (FieldFilter::equal("year", "2024"), false),
            (FieldFilter::equal("is_open", true), true),
            (FieldFilter::equal("topics", "penal"), true),
            (FieldFilter::equal("topics", "Penal"), false),
            (FieldFilter::equal("month", 5), false),
            (FieldFilter { field: "year".to_owned(), values: Vec::new() }, false),
        ] {
            assert_eq!(filter.passes(&fields), expected, "{filter:?}");
            let has_term = filter.terms().iter().any(|term| filter_terms(&fields).contains(term));
            assert_eq!(has_term, expected, "{filter:?}");
        }
        assert_eq!(filter_terms(&fields).len(), 4);
    }

    #[test]
    fn invalid_filters_are_rejected() {
        let long = FieldFilter::equal("a", "x".repeat(65));
        assert!(matches!(FieldFilter::check_all(&[long]), Err(StoreError::Invalid { .. })));
        let fraction = FieldFilter::equal("a", 0.5);
        assert!(matches!(FieldFilter::check_all(&[fraction]), Err(StoreError::Invalid { .. })));
        let many = FieldFilter::any("a", 0..201);
        assert!(matches!(FieldFilter::check_all(&[many]), Err(StoreError::LimitExceeded { .. })));
        assert!(FieldFilter::check_all(&[FieldFilter::any("a", 0..200)]).is_ok());
    }

    #[test]
    fn filter_terms_are_stable() {
        assert_eq!(FieldFilter::equal("year", 2024).terms(), ["\u{e004}ca5c28e73e53c714"]);
    }
}
