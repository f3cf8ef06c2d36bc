use std::fmt;
use std::str::FromStr;

use jiff::tz::Offset;
use serde::{Deserialize, Serialize};

use crate::{Portable, StoreError};

/// An instant in UTC, in microseconds since 1970-01-01T00:00:00Z.
///
/// Range: the years 0001 to 9999, which also keeps it exact in a double (below 2^53 in size). Text form: RFC 3339 with
/// as many decimals as are needed; in JSON it is that text.
///
/// ```
/// use threadkeep_core::Timestamp;
/// let at: Timestamp = "2026-11-21T08:30:00.25Z".parse()?;
/// assert_eq!(at.to_string(), "2026-11-21T08:30:00.25Z");
/// assert_eq!(at.plus_ms(750).to_string(), "2026-11-21T08:30:01Z");
/// assert!("yesterday".parse::<Timestamp>().is_err());
/// # Ok::<(), threadkeep_core::StoreError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The first instant: 0001-01-01T00:00:00Z.
    pub const MIN: Self = Self(-62_135_596_800_000_000);
    /// The last instant: 9999-12-30T22:00:00Z.
    pub const MAX: Self = Self(253_402_207_200_000_000);

    /// Makes an instant from microseconds since 1970 UTC.
    ///
    /// # Errors
    /// `Invalid` outside the years 0001 to 9999.
    pub fn from_micros(micros: i64) -> Result<Self, StoreError> {
        if (Self::MIN.0..=Self::MAX.0).contains(&micros) {
            Ok(Self(micros))
        } else {
            Err(StoreError::invalid("timestamp", "outside the years 0001 to 9999"))
        }
    }

    /// Makes an instant from milliseconds since 1970 UTC.
    ///
    /// # Errors
    /// `Invalid` outside the years 0001 to 9999.
    pub fn from_millis(millis: i64) -> Result<Self, StoreError> {
        Self::from_micros(millis.saturating_mul(1000))
    }

    /// Microseconds since 1970 UTC.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since 1970 UTC, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The instant `ms` milliseconds later (earlier if negative), held at the ends of the range.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        let micros = self.0.saturating_add(ms.saturating_mul(1000));
        Self(micros.clamp(Self::MIN.0, Self::MAX.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(at) = jiff::Timestamp::from_microsecond(self.0) else { return write!(f, "{} µs", self.0) };
        let at = Offset::UTC.to_datetime(at);
        // Digit by digit: pages of messages are full of instants, and this takes a fifth of what a general printer does.
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let date = [(0..4, at.year()), (5..7, at.month().into()), (8..10, at.day().into())];
        let time = [(11..13, at.hour().into()), (14..16, at.minute().into()), (17..19, at.second().into())];
        for (place, number) in date.into_iter().chain(time) {
            write_digits(&mut text[place], number.unsigned_abs().into());
        }
        write_digits(&mut text[20..26], self.0.rem_euclid(1_000_000).unsigned_abs());
        let end = match text[20..26].iter().rposition(|digit| *digit != b'0') {
            Some(last) => 21 + last,
            None => 19,
        };
        text[end] = b'Z';
        f.write_str(std::str::from_utf8(&text[..=end]).unwrap_or_default())
    }
}

/// Fills a place with the last digits of a number.
fn write_digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let at: jiff::Timestamp =
            text.parse().map_err(|_| StoreError::invalid("timestamp", "not an RFC 3339 instant with an offset"))?;
        Self::from_micros(at.as_microsecond())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // In one piece: each piece is looked at for what must be escaped.
        serializer.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Tells the time and gives randomness: the only way they enter, so that a test can hold both still.
pub trait Clock: Portable {
    /// The instant now.
    fn now(&self) -> Timestamp;
    /// 80 random bits, for ids.
    fn random(&self) -> [u8; 10];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_as_its_library_writes_it() {
        let mut micros = Timestamp::MIN.0;
        let mut instants = vec![Timestamp::MIN, Timestamp::MAX, Timestamp(-1), Timestamp(0), Timestamp(1)];
        while micros < Timestamp::MAX.0 {
            // Fractions of every length.
            instants
                .extend([1, 10, 100, 1_000, 10_000, 100_000, 1_000_000].map(|unit| Timestamp(micros / unit * unit)));
            micros += 12_345_678_901_234;
        }
        for at in instants {
            let expected = jiff::Timestamp::from_microsecond(at.0).unwrap().to_string();
            assert_eq!(at.to_string(), expected);
            assert_eq!(serde_json::to_string(&at).unwrap(), format!("\"{expected}\""));
            assert_eq!(expected.parse::<Timestamp>().unwrap(), at);
        }
    }
}
