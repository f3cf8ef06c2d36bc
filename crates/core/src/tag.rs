//! Tags, which distinguish commits with the same number.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{IdempotencyKey, StoreError};

/// A tag of the commit that made a change: the first 4 bytes of the SHA-256 of its idempotency key. Text form: 8 hex digits.
///
/// A failover can lose the last commits of a store, and the store then assigns their numbers to other commits. The tags of two such
/// commits differ (except with probability 2⁻³²). A tag depends only on the key, so retrying a lost commit gives it the same tag,
/// although possibly another number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeTag([u8; 4]);

impl ChangeTag {
    /// Computes the tag of the commit with this key.
    #[must_use]
    pub fn of(key: &IdempotencyKey) -> Self {
        Self::of_stored_key(&key.to_bytes())
    }

    /// Like [`ChangeTag::of`], for a stored key ([`IdempotencyKey::to_bytes`]).
    #[must_use]
    pub fn of_stored_key(stored: &[u8]) -> Self {
        let digest = Sha256::digest(stored);
        Self([digest[0], digest[1], digest[2], digest[3]])
    }

    /// Returns the tag as an integer, to be stored in a four-byte column.
    #[must_use]
    pub const fn to_stored(self) -> i32 {
        i32::from_be_bytes(self.0)
    }

    /// Restores a tag from the integer that [`ChangeTag::to_stored`] returned.
    #[must_use]
    pub const fn from_stored(stored: i32) -> Self {
        Self(stored.to_be_bytes())
    }
}

impl fmt::Display for ChangeTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl fmt::Debug for ChangeTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChangeTag({self})")
    }
}

impl FromStr for ChangeTag {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let is_canonical = text.len() == 8 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u32::from_str_radix(text, 16).ok().filter(|_| is_canonical);
        number
            .map(|number| Self(number.to_be_bytes()))
            .ok_or_else(|| StoreError::invalid("change tag", "not 8 lower-case hex digits"))
    }
}

impl Serialize for ChangeTag {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ChangeTag {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A change number, or the version of a record, with the tag of the commit that made it. Text form: `17-a1b2c3d4`, or `17`
/// without a tag.
///
/// The tag is absent from data that earlier versions wrote, from change 0, from versions of records of users and tenants, and from
/// numbers that a caller supplies without a tag. A value without a tag is compared by its number, so [`TaggedNumber::may_be_same`] is
/// not transitive. Use that method to compare a value supplied by a caller with a stored one, and `==` to compare two stored values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TaggedNumber {
    /// The change number, or the version.
    pub number: u64,
    /// The tag of the commit; `None` if unknown.
    pub tag: Option<ChangeTag>,
}

impl TaggedNumber {
    /// Whether both numbers may be from the same commit: the numbers are equal, and so are the tags if both have one.
    #[must_use]
    pub fn may_be_same(self, other: Self) -> bool {
        self.number == other.number && self.tag.zip(other.tag).is_none_or(|(a, b)| a == b)
    }
}

impl From<u64> for TaggedNumber {
    /// Creates a value without a tag.
    fn from(number: u64) -> Self {
        Self { number, tag: None }
    }
}

impl fmt::Display for TaggedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag {
            Some(tag) => write!(f, "{}-{tag}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

impl FromStr for TaggedNumber {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let (number, tag) = match text.split_once('-') {
            Some((number, tag)) => (number, Some(tag.parse()?)),
            None => (text, None),
        };
        let number = number.parse().map_err(|_| StoreError::invalid("change", "not a number"))?;
        Ok(Self { number, tag })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(key: &str) -> ChangeTag {
        ChangeTag::of(&IdempotencyKey::FromCaller(key.to_owned()))
    }

    /// Stores and clients retain tags: if the algorithm changed, every change would appear to belong to a discarded history.
    #[test]
    fn tag_algorithm_is_stable() {
        assert_eq!(tag("a").to_string(), "1c335bbf");
        assert_eq!(ChangeTag::of(&IdempotencyKey::Generated(uuid::Uuid::from_u128(7))).to_string(), "6bae4268");
        assert_eq!(ChangeTag::from_stored(tag("a").to_stored()), tag("a"));
    }

    #[test]
    fn text_form_round_trips() {
        for tagged in
            [TaggedNumber { number: 17, tag: Some(tag("a")) }, TaggedNumber::from(17), TaggedNumber::default()]
        {
            assert_eq!(tagged.to_string().parse::<TaggedNumber>().unwrap(), tagged);
        }
        assert_eq!(TaggedNumber::from(17).to_string(), "17");
        for text in ["", "-", "17-", "-a1b2c3d4", "17-A1B2C3D4", "17-a1b2c3", "17-a1b2c3d4e5", "17-+1b2c3d4", "x"] {
            assert!(text.parse::<TaggedNumber>().is_err(), "{text}");
        }
    }

    #[test]
    fn values_without_a_tag_are_compared_by_number() {
        let (a, b) =
            (TaggedNumber { number: 17, tag: Some(tag("a")) }, TaggedNumber { number: 17, tag: Some(tag("b")) });
        assert!(a.may_be_same(a) && !a.may_be_same(b) && !b.may_be_same(a));
        assert!(a.may_be_same(17.into()) && TaggedNumber::from(17).may_be_same(b));
        assert!(!a.may_be_same(18.into()) && !a.may_be_same(TaggedNumber { number: 18, ..a }));
    }
}
