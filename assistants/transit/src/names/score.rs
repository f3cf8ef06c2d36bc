//! Scores how well a phrase matches a name.

use super::Vocabulary;
use super::phrase::{Phrase, words_of};
use super::spelling::Spelling;

/// A station that matches a phrase.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) station: usize,
    pub(super) tier: Tier,
    /// Whether the station's name matches, not only an alias.
    pub(super) is_named: bool,
}

/// The quality of a match, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// With words that match nothing.
    Loose,
    /// With spelling mistakes.
    Close,
    /// A complete part with spelling mistakes.
    ClosePart,
    /// Some words of the name.
    Some,
    /// A complete part of a name such as "59 St-Columbus Circle".
    Part,
    /// The whole name.
    Whole,
    /// An alias of the station.
    Alias,
}

/// A parsed name.
#[derive(Debug)]
pub(super) struct Name {
    is_alias: bool,
    words: Vec<Word>,
    /// The parts between dashes, as ranges of `words`.
    parts: Vec<std::ops::Range<usize>>,
    /// The whole and each part without spaces, for "grandcentral".
    joined: Vec<Spelling>,
}

#[derive(Debug)]
struct Word {
    spelling: Spelling,
    is_generic: bool,
}

impl Name {
    pub(super) fn new(text: &str, vocabulary: &Vocabulary, is_alias: bool) -> Self {
        let (mut words, mut parts) = (Vec::new(), Vec::new());
        for part in parts_of(text) {
            let start = words.len();
            words.extend(words_of(part, vocabulary).into_iter().map(|text| Word {
                is_generic: vocabulary.generic_words.contains(&text.as_str()),
                spelling: Spelling::new(text),
            }));
            parts.push(start..words.len());
        }
        let join = |words: &[Word]| Spelling::new(words.iter().map(Word::text).collect());
        let joined = std::iter::once(join(&words)).chain(parts.iter().map(|part| join(&words[part.clone()]))).collect();
        Self { is_alias, words, parts, joined }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.joined.iter().map(|joined| &joined.text).eq(other.joined.iter().map(|joined| &joined.text))
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|known| known.text() == word)
    }

    /// Returns the quality of the match, or `None`. `explains` returns whether a word that is not in the name is a correct
    /// qualifier of the station.
    pub(super) fn tier(&self, phrase: &Phrase, explains: &impl Fn(&str) -> bool) -> Option<Tier> {
        let is_generic_here = |word: &str| self.words.iter().any(|known| known.is_generic && known.text() == word);
        if !phrase.words.iter().any(|word| self.has(&word.text) && !is_generic_here(&word.text)) {
            return self.close_tier(phrase);
        }
        let has_generic = self.words.iter().any(|known| known.is_generic);
        let is_redundant = |word: &str| phrase.is_generic(word) && !has_generic;
        let rest = phrase.words.iter().map(|word| word.text.as_str()).filter(|word| !self.has(word));
        let unexplained = rest.filter(|word| !explains(word) && !is_redundant(word)).count();
        let covers = |words: &[Word]| words.iter().all(|known| known.is_generic || phrase.has(known.text()));
        let is_whole = covers(&self.words);
        let covered: Vec<&Word> =
            self.parts.iter().map(|part| &self.words[part.clone()]).filter(|part| covers(part)).flatten().collect();
        let in_covered = |word: &str| covered.iter().any(|known| known.text() == word);
        // "Bedford Av" is not part of "Bedford-Nostrand Avs".
        let is_part = covered.iter().any(|known| !known.is_generic)
            && phrase.words.iter().all(|word| !is_generic_here(&word.text) || in_covered(&word.text));
        match unexplained {
            0 if self.is_alias => is_whole.then_some(Tier::Alias),
            0 if is_whole => Some(Tier::Whole),
            0 if is_part => Some(Tier::Part),
            0 => Some(Tier::Some),
            _ if self.is_close(phrase) => self.close_tier(phrase),
            _ if is_whole && unexplained < 3 => Some(Tier::Loose),
            _ => None,
        }
    }

    /// Returns the quality of a match with spelling mistakes.
    fn close_tier(&self, phrase: &Phrase) -> Option<Tier> {
        let is_close =
            |known: &Word| known.is_generic || phrase.words.iter().any(|word| word.is_misspelt(&known.spelling));
        let is_covered = |words: &[Word]| words.iter().all(is_close) && words.iter().any(|known| !known.is_generic);
        let is_part = is_covered(&self.words) || self.parts.iter().any(|part| is_covered(&self.words[part.clone()]));
        self.is_close(phrase).then_some(if is_part { Tier::ClosePart } else { Tier::Close })
    }

    /// Whether the phrase is the name with spelling mistakes in words or in spacing.
    fn is_close(&self, phrase: &Phrase) -> bool {
        let is_close_joined = self.joined.iter().any(|known| {
            known.letter_count >= 5
                && known.is_within(&phrase.joined, known.letter_count / 6)
                && same_digits(&known.text, &phrase.joined.text)
        });
        let is_close_word = |word: &Spelling| self.words.iter().any(|known| word.is_misspelt(&known.spelling));
        let is_strong =
            |word: &Spelling| self.words.iter().any(|known| !known.is_generic && word.is_misspelt(&known.spelling));
        is_close_joined
            || phrase.words.iter().all(|word| is_close_word(word) || phrase.is_generic(&word.text))
                && phrase.words.iter().any(is_strong)
    }
}

impl Word {
    fn text(&self) -> &str {
        &self.spelling.text
    }
}

/// Splits a name at dashes and brackets, but not at the dash of "47-50 Sts".
fn parts_of(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, sign) in text.char_indices().filter(|(_, sign)| matches!(sign, '-' | '(')) {
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let after = &text[at + sign.len_utf8()..];
        if !is_digit(text[..at].chars().next_back()) || !is_digit(after.chars().next()) {
            parts.push(&text[start..at]);
            start = at + sign.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts
}

fn same_digits(one: &str, other: &str) -> bool {
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    digits(one) == digits(other)
}
