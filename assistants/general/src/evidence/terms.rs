//! The words of a statement or a passage, against which the words of a question are matched.

use std::collections::HashSet;

use threadkeep::core::text::indexed_terms;
use threadkeep::dialogue::Utterance;
use threadkeep::dialogue::time::find_times;

use super::question::QuestionWord;
use super::related::related_stems;
use super::spelling::is_misspelling;

/// How a word of a question occurs in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// In any inflection.
    Exact,
    /// As a related word.
    Related,
    /// Probably misspelt in the question.
    Misspelt,
}

impl Match {
    /// Returns the weight of the match, relative to an exact one.
    pub(crate) fn weight(self) -> f64 {
        match self {
            Self::Exact => 1.0,
            Self::Related => 0.7,
            Self::Misspelt => 0.8,
        }
    }
}

/// The words of the text.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    stems: HashSet<String>,
    words: HashSet<String>,
    has_time: bool,
    has_number: bool,
}

impl Terms {
    pub(crate) fn new(text: &str) -> Self {
        let utterance = Utterance::new(text);
        let words = utterance.words().iter().map(|word| word.folded.clone()).collect();
        let has_digit = text.contains(|c: char| c.is_ascii_digit());
        let has_time = !find_times(&utterance).is_empty() || has_clock_time_or_ordinal(text);
        let has_number = has_digit || utterance.words().iter().any(|word| NUMBERS.contains(&word.folded.as_str()));
        Self { stems: indexed_terms(text).into_iter().collect(), words, has_time, has_number }
    }

    /// Adds the words of text that explains this one, such as the message that this text refers to.
    pub(crate) fn with_context(mut self, text: &str) -> Self {
        self.stems.extend(indexed_terms(text));
        self.words.extend(Utterance::new(text).words().iter().map(|word| word.folded.clone()));
        self
    }

    /// Returns how a word of a question occurs in the text; `None` if it does not occur.
    pub(crate) fn contains(&self, word: &QuestionWord) -> Option<Match> {
        if word.iter().any(|stem| self.stems.contains(stem)) {
            return Some(Match::Exact);
        }
        if related_stems(&word.stems).any(|stem| self.stems.contains(stem)) {
            return Some(Match::Related);
        }
        // "The boat" is the sailboat.
        let is_compound = |known: &String| {
            let is_long =
                word.word.len() >= MIN_COMPOUND_PART && known.len() >= word.word.len() + MIN_COMPOUND_PART - 1;
            is_long && known.ends_with(word.word.as_str())
        };
        if self.words.iter().any(is_compound) {
            return Some(Match::Related);
        }
        // "plumers number"
        let singular = word.word.strip_suffix('s');
        let is_likely_intended = |known: &String| {
            is_misspelling(&word.word, known) || singular.is_some_and(|singular| is_misspelling(singular, known))
        };
        self.words.iter().any(is_likely_intended).then_some(Match::Misspelt)
    }

    pub(crate) fn has_time(&self) -> bool {
        self.has_time
    }

    pub(crate) fn has_number(&self) -> bool {
        self.has_number
    }
}

/// The minimum length of the last part of a compound word.
const MIN_COMPOUND_PART: usize = 4;

/// Whether the text contains a time such as "8:50" or an ordinal such as "21st".
pub(crate) fn has_clock_time_or_ordinal(text: &str) -> bool {
    text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())).any(|word| {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let rest = &word[digits..];
        let is_clock_time =
            rest.starts_with([':', '.']) && rest.len() == 3 && rest[1..].bytes().all(|byte| byte.is_ascii_digit());
        (1..=2).contains(&digits) && (is_clock_time || matches!(rest, "st" | "nd" | "rd" | "th" | "am" | "pm"))
    })
}

const NUMBERS: [&str; 32] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "twenty",
    "thirty", "forty", "fifty", "hundred", "thousand", "half", "dozen", "couple", "dos", "tres", "cuatro", "cinco",
    "seis", "siete", "ocho", "nueve", "diez", "cien", "mil",
];
