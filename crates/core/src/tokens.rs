use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use crate::Portable;

/// A number of tokens, by the counter that counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenCount(pub u64);

impl TokenCount {
    /// None.
    pub const ZERO: Self = Self(0);

    /// What is left of it after `other` is taken away, at least none.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for TokenCount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for TokenCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for TokenCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Add::add)
    }
}

impl std::fmt::Display for TokenCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts the tokens that a model makes of a text.
///
/// The same text always counts the same. The count of two texts joined need not be the sum of their counts.
pub trait TokenCounter: Portable + std::fmt::Debug {
    /// The counter's name, kept beside counts so that those of two counters are never mixed.
    fn name(&self) -> &str;

    /// Counts a text's tokens. Takes time in proportion to the text, whatever it holds.
    fn count(&self, text: &str) -> TokenCount;
}

/// Counts without a model's table, by a rule that seldom counts too little.
///
/// A run of ASCII letters counts one for every 4 begun, a run of digits one for every 3 begun, a run of letters of
/// alphabets beyond ASCII (up to U+07FF) one for every 2 begun. Any other character counts one, beyond U+FFFF three. A
/// single space before a word counts nothing.
///
/// ```
/// use threadkeep_core::{ApproximateCounter, TokenCount, TokenCounter};
/// assert_eq!(ApproximateCounter.count("The trains run."), TokenCount(5));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApproximateCounter;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Letters,
    Digits,
    Alphabet,
    Space,
    Single(u64),
}

impl Run {
    fn of(character: char) -> Self {
        match character {
            'a'..='z' | 'A'..='Z' => Self::Letters,
            '0'..='9' => Self::Digits,
            ' ' => Self::Space,
            '\u{80}'..='\u{7ff}' if character.is_alphabetic() => Self::Alphabet,
            '\u{10000}'.. => Self::Single(3),
            _ => Self::Single(1),
        }
    }

    fn tokens(self, length: u64) -> u64 {
        match self {
            Self::Letters => length.div_ceil(4),
            Self::Digits => length.div_ceil(3),
            Self::Alphabet => length.div_ceil(2),
            Self::Space => length - 1,
            Self::Single(each) => length * each,
        }
    }
}

impl TokenCounter for ApproximateCounter {
    fn name(&self) -> &'static str {
        "approximate"
    }

    fn count(&self, text: &str) -> TokenCount {
        let (mut tokens, mut run, mut length) = (0, Run::Single(1), 0);
        for character in text.chars() {
            let next = Run::of(character);
            if next != run {
                tokens += if length == 0 { 0 } else { run.tokens(length) };
                (run, length) = (next, 0);
            }
            length += 1;
        }
        TokenCount(tokens + if length == 0 { 0 } else { run.tokens(length) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_the_documented_one() {
        let cases = [
            ("", 0),
            (" ", 0),
            ("   ", 2),
            ("the", 1),
            ("hello", 2),
            ("2026", 2),
            ("año", 3),
            ("żółć", 2),
            ("東京", 2),
            ("👍", 3),
            ("a.\n\n", 4),
        ];
        for (text, expected) in cases {
            assert_eq!(ApproximateCounter.count(text), TokenCount(expected), "{text:?}");
        }
    }
}
