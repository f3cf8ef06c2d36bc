//! Whole numbers in bodies. Some clients write every number with a fraction, so `497.0` is accepted like `497`.

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Number;

/// The largest number up to which every whole number has an exact 64-bit floating-point form.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads a whole number, possibly written with a fraction of zero. For serde's `deserialize_with`.
pub(crate) fn whole_number<'de, T: TryFrom<i128>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let number = Number::deserialize(deserializer)?;
    read(&number)
        .ok_or_else(|| D::Error::custom(format!("invalid value: `{number}`, expected a whole number in range")))
}

/// Like [`whole_number`], but also accepts null.
pub(crate) fn optional_whole_number<'de, T: TryFrom<i128>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    let error = || D::Error::custom(format!("invalid value: `{number}`, expected a whole number in range"));
    read(&number).map(Some).ok_or_else(error)
}

#[expect(clippy::cast_possible_truncation, reason = "the number is whole and in range")]
fn read<T: TryFrom<i128>>(number: &Number) -> Option<T> {
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let whole = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= MAX_EXACT);
    T::try_from(integer.or_else(|| whole().map(|float| float as i128))?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_a_fraction_of_zero_are_whole() {
        let number = |json: &str| optional_whole_number::<u64, _>(&mut serde_json::Deserializer::from_str(json));
        assert_eq!(number("497").unwrap(), Some(497));
        assert_eq!(number("497.0").unwrap(), Some(497));
        assert_eq!(number("4.97e2").unwrap(), Some(497));
        assert_eq!(number("18446744073709551615").unwrap(), Some(u64::MAX));
        assert_eq!(number("null").unwrap(), None);
        for wrong in ["497.5", "-1", "-1.0", "1e300", "\"497\""] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
        let signed: i64 = whole_number(&mut serde_json::Deserializer::from_str("-7.0")).unwrap();
        assert_eq!(signed, -7);
    }
}
