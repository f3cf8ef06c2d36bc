mod ascii;

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use crate::Portable;

/// A number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenCount(pub u64);

impl TokenCount {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Subtracts `other`, with a minimum of zero.
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

/// Counts the tokens of the text for a model.
///
/// The same text always has the same count. The count of two concatenated texts may differ from the sum of their counts.
pub trait TokenCounter: Portable + std::fmt::Debug {
    /// Returns the name of the counter. It is stored with counts, so that counts of different counters are never mixed.
    fn name(&self) -> &str;

    /// Counts the tokens of the text, in linear time for any text.
    fn count(&self, text: &str) -> TokenCount;
}

/// Estimates the number of tokens without a vocabulary, by a rule that rarely underestimates.
///
/// A run of ASCII letters counts one token per 4 characters, a run of ASCII digits one per 3, and a run of other letters up to U+07FF
/// one per 2, each rounded up. A run of spaces counts one per space, except the first. Any other character counts one, or three
/// beyond U+FFFF.
///
/// ```
/// use threadkeep_core::{ApproximateCounter, TokenCount, TokenCounter};
/// assert_eq!(ApproximateCounter.count("The trains run."), TokenCount(5));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApproximateCounter;

/// The kind of characters in a run.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Run {
    Letters,
    Digits,
    OtherLetters,
    Space,
    Single,
}

/// The period of the pattern in [`Run::BEGINS`]: a common multiple of the numbers of characters per token.
const PERIOD: u32 = 12;

impl Run {
    const ASCII: [Self; 128] = {
        let mut runs = [Self::Single; 128];
        let mut byte = 0;
        while byte < runs.len() {
            runs[byte] = match byte as u8 {
                b'a'..=b'z' | b'A'..=b'Z' => Self::Letters,
                b'0'..=b'9' => Self::Digits,
                b' ' => Self::Space,
                _ => Self::Single,
            };
            byte += 1;
        }
        runs
    };

    /// For each kind, one bit per index in a run (lowest bit first), set if the character at that index begins a token. Bit 0 is for
    /// the first character; the following [`PERIOD`] bits repeat for the rest of the run.
    const BEGINS: [u16; 5] =
        [0b1_0001_0001_0001, 0b1_0010_0100_1001, 0b1_0101_0101_0101, 0b1_1111_1111_1110, 0b1_1111_1111_1111];
}

impl TokenCounter for ApproximateCounter {
    fn name(&self) -> &'static str {
        "approximate"
    }

    fn count(&self, text: &str) -> TokenCount {
        TokenCount(if text.is_ascii() { ascii::count(text.as_bytes()) } else { count_characters(text) })
    }
}

fn count_characters(text: &str) -> u64 {
    let (mut tokens, mut run, mut index) = (0, Run::Single, 0);
    // The loop has no branches at the ends of words, because mispredicting them would take most of the time.
    for character in text.chars() {
        let next = match Run::ASCII.get(character as usize) {
            Some(run) => *run,
            None if character <= '\u{7ff}' && character.is_alphabetic() => Run::OtherLetters,
            None => {
                tokens += if character >= '\u{10000}' { 2 } else { 0 };
                Run::Single
            }
        };
        let following = if index == PERIOD { 1 } else { index + 1 };
        index = if next == run { following } else { 0 };
        run = next;
        tokens += u64::from(Run::BEGINS[run as usize] >> index & 1);
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_examples_are_stable() {
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
            ("  a", 2),
            ("👍👍", 6),
        ];
        for (text, expected) in cases {
            assert_eq!(ApproximateCounter.count(text), TokenCount(expected), "{text:?}");
        }
    }

    #[test]
    fn runs_of_any_length_follow_the_rule() {
        for length in 1..200_u64 {
            let rules = [
                ('x', length.div_ceil(4)),
                ('7', length.div_ceil(3)),
                ('ñ', length.div_ceil(2)),
                (' ', length - 1),
                ('.', length),
                ('東', length),
                ('👍', length * 3),
            ];
            for (character, expected) in rules {
                let text = character.to_string().repeat(length as usize);
                assert_eq!(ApproximateCounter.count(&text), TokenCount(expected), "{length} of {character:?}");
                // The run counts the same between runs of another kind.
                let between = ApproximateCounter.count(&format!("東{text}東"));
                let expected = if character == '東' { length + 2 } else { expected + 2 };
                assert_eq!(between, TokenCount(expected), "{length} of {character:?}");
            }
        }
    }

    #[test]
    fn ascii_fast_path_gives_the_same_counts() {
        let mut seed = 7_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for length in 0..2_000 {
            // Runs of all lengths, beginning anywhere in a block.
            let mut text = String::new();
            while text.len() < length {
                let character =
                    ['a', 'Z', '0', '9', ' ', '.', '@', '[', '`', '{', '/', ':', '\0', '\u{7f}'][random(14) as usize];
                let run = [1, 1, 2, 5, 13, 70][random(6) as usize];
                text.extend(std::iter::repeat_n(character, run));
            }
            text.truncate(length);
            assert_eq!(ascii::count(text.as_bytes()), count_characters(&text), "{text:?}");
        }
        for byte in 0..128_u8 {
            let text = char::from(byte).to_string().repeat(9);
            assert_eq!(ascii::count(text.as_bytes()), count_characters(&text), "{text:?}");
        }
    }
}
