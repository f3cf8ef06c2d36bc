//! Features of a message: its words and concepts, pairs of these, and parts of words.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::utterance::folded_words;

/// The concept of each word that expresses one. Concepts start with `=`, which no word contains.
static CONCEPTS: LazyLock<HashMap<&'static str, String>> = LazyLock::new(|| {
    let lines = include_str!("../concepts.txt").lines().filter_map(|line| line.split_once(':'));
    lines.flat_map(|(name, words)| words.split_whitespace().map(move |word| (word, format!("={name}")))).collect()
});

/// The hash of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeatureHash(pub(super) u32);

/// The number of characters of the parts of words.
const PART_CHARS: [usize; 2] = [3, 4];
/// The token that stands for any word outside the vocabulary.
const UNKNOWN: &str = "*";
/// The maximum number of tokens; further ones are ignored.
const MAX_TOKENS: usize = 60;

/// The distinct features of a message.
///
/// A mention of an entity counts as one token, the name of its kind in braces: a classifier trained on "from {station}
/// to {station}" does not need the names of stations. Each word outside the vocabulary counts as the token `*`: the
/// topics of questions are unlimited, but the ways to ask them are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    hashes: Vec<FeatureHash>,
    /// The words, and the names of kinds in braces.
    words: Vec<FeatureHash>,
}

impl Features {
    /// Computes the features of a message to classify. The tokens are normalized words and names of kinds
    /// (`{station}`). The parts of words outside the vocabulary count as features too, so that misspelt words resemble
    /// the intended ones.
    #[must_use]
    pub fn of_tokens<T: AsRef<str>>(tokens: &[T], is_known: impl Fn(&str) -> bool) -> Self {
        Self::with_vocabulary(tokens, is_known, true)
    }

    /// Computes the features of an example.
    pub(super) fn of_example<T: AsRef<str>>(tokens: &[T], is_known: impl Fn(&str) -> bool) -> Self {
        Self::with_vocabulary(tokens, is_known, false)
    }

    fn with_vocabulary<T: AsRef<str>>(tokens: &[T], is_known: impl Fn(&str) -> bool, has_all_parts: bool) -> Self {
        let words: Vec<&str> = tokens.iter().map(AsRef::as_ref).take(MAX_TOKENS).collect();
        let mut tokens = Vec::with_capacity(words.len());
        for word in &words {
            let concept = || CONCEPTS.get(word).map(String::as_str);
            tokens.push(if word.starts_with('{') || is_known(word) { word } else { concept().unwrap_or(UNKNOWN) });
        }
        let mut hashes = Vec::with_capacity(tokens.len() * 12);
        let at = |index: usize| tokens.get(index).copied().unwrap_or("$");
        for (index, token) in tokens.iter().enumerate() {
            hashes.push(FeatureHash::of_word(token));
            hashes.push(FeatureHash::of(Sort::Pair, &[token, at(index + 1)]));
            if index + 2 < tokens.len() {
                hashes.push(FeatureHash::of(Sort::Apart, &[token, at(index + 2)]));
            }
            if !token.starts_with('{') && (has_all_parts || *token != UNKNOWN) {
                add_parts(words[index], &mut hashes);
            }
        }
        add_concepts(&words, &mut hashes);
        if let Some(first) = tokens.first() {
            hashes.push(FeatureHash::of(Sort::First, &[first]));
        }
        hashes.push(FeatureHash::of(Sort::Length, &[length_class(tokens.len())]));
        hashes.sort_unstable();
        hashes.dedup();
        Self { hashes, words: words.iter().map(|word| FeatureHash::of_attestation(word)).collect() }
    }

    pub(super) fn hashes(&self) -> &[FeatureHash] {
        &self.hashes
    }

    pub(super) fn words(&self) -> &[FeatureHash] {
        &self.words
    }
}

/// Splits text into normalized words and names of kinds in braces.
pub(crate) fn tokens_of(text: &str) -> Vec<String> {
    tokens_with(text, folded_words)
}

/// Splits text at the names of kinds in braces, and splits the text between them with `split`.
pub(crate) fn tokens_with(text: &str, split: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some((before, kind, after)) = split_at_kind(rest) {
        tokens.extend(split(before));
        tokens.push(format!("{{{kind}}}"));
        rest = after;
    }
    tokens.extend(split(rest));
    tokens
}

fn split_at_kind(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (kind, after) = rest.split_once('}')?;
    Some((before, kind, after))
}

/// Adds the concepts of a message, and the pairs of neighbouring concepts and kinds. Words in between are ignored.
fn add_concepts(words: &[&str], hashes: &mut Vec<FeatureHash>) {
    let mut concepts: Vec<&str> = Vec::with_capacity(words.len());
    for word in words {
        if word.starts_with('{') {
            concepts.push(word);
        } else {
            concepts.extend(CONCEPTS.get(word).map(String::as_str));
        }
    }
    hashes.extend(concepts.iter().filter(|name| name.starts_with('=')).map(|name| FeatureHash::of_word(name)));
    hashes.extend(concepts.windows(2).map(|pair| FeatureHash::of(Sort::Concepts, pair)));
}

fn add_parts(word: &str, hashes: &mut Vec<FeatureHash>) {
    let marked: Vec<char> = std::iter::once('^').chain(word.chars()).chain(std::iter::once('$')).collect();
    for length in PART_CHARS {
        for part in marked.windows(length) {
            hashes.push(FeatureHash::of(Sort::Part, &[&part.iter().collect::<String>()]));
        }
    }
}

fn length_class(tokens: usize) -> &'static str {
    match tokens {
        0..=2 => "1",
        3..=5 => "3",
        6..=10 => "6",
        _ => "11",
    }
}

/// The sorts of features. The sort is part of the hash, so that a word and a part of a word with the same text have
/// different hashes.
#[derive(Clone, Copy)]
enum Sort {
    Word = 1,
    Pair,
    Apart,
    First,
    Part,
    Length,
    Attestation,
    Concepts,
}

impl FeatureHash {
    /// Returns the hash of a word as a feature.
    #[must_use]
    pub fn of_word(word: &str) -> Self {
        Self::of(Sort::Word, &[word])
    }

    /// Returns the hash under which the classes of a word are stored. Words outside the vocabulary are stored too.
    pub(super) fn of_attestation(word: &str) -> Self {
        Self::of(Sort::Attestation, &[word])
    }

    /// Returns the FNV-1a hash of a sort and texts.
    fn of(sort: Sort, texts: &[&str]) -> Self {
        let bytes = texts.iter().flat_map(|text| text.bytes().chain(std::iter::once(0)));
        let hash = std::iter::once(sort as u8)
            .chain(bytes)
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Self(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_tokens() {
        assert_eq!(tokens_of("From {station}, to «Él»: {line}?"), ["from", "{station}", "to", "el", "{line}"]);
        assert_eq!(tokens_of("a { b"), ["a", "b"]);
    }

    #[test]
    fn features_do_not_repeat() {
        let features = Features::of_tokens(&tokens_of("to go to go"), |_| true);
        assert!(features.hashes().windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn unknown_words_are_one_token() {
        let is_known = |word: &str| matches!(word, "the" | "is");
        let features = |text| Features::of_example(&tokens_of(text), is_known);
        assert_eq!(features("the tent is blue").hashes(), features("the vase is red").hashes());
        assert_ne!(features("the tent is blue").hashes(), features("is the tent blue").hashes());
    }
}
