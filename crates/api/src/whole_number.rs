//! Whole numbers in bodies. Some clients write every number with a fraction, so `497.0` is accepted as `497`.

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Number;
use threadkeep::core;

/// Reads a whole number, possibly written with a fraction of zero. For serde's `deserialize_with`.
pub fn whole_number<'de, T: TryFrom<i128>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let number = Number::deserialize(deserializer)?;
    read(&number)
        .ok_or_else(|| D::Error::custom(format!("invalid value: `{number}`, expected a whole number in range")))
}

/// Like [`whole_number`], but also accepts null.
pub fn optional_whole_number<'de, T: TryFrom<i128>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    let error = || D::Error::custom(format!("invalid value: `{number}`, expected a whole number in range"));
    read(&number).map(Some).ok_or_else(error)
}

fn read<T: TryFrom<i128>>(number: &Number) -> Option<T> {
    T::try_from(core::whole_number(number)?).ok()
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
