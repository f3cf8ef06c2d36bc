//! Recognises misspelt words in questions: letters that are swapped, missing, added or replaced.

use std::collections::HashSet;
use std::sync::LazyLock;

use threadkeep::core::text::{Language, fold};
use threadkeep::dialogue::Utterance;

use super::related;

/// Common words in questions. Missing and added letters are recognised only in long ones, because short words resemble each other.
const COMMON_WORDS: [&str; 74] = [
    "what",
    "whats",
    "when",
    "whens",
    "where",
    "wheres",
    "which",
    "who",
    "whos",
    "whose",
    "how",
    "much",
    "many",
    "does",
    "did",
    "have",
    "with",
    "about",
    "the",
    "there",
    "their",
    "and",
    "that",
    "this",
    "for",
    "was",
    "are",
    "will",
    "should",
    "could",
    "would",
    "again",
    "please",
    "tell",
    "remind",
    "want",
    "need",
    "time",
    "date",
    "number",
    "name",
    "today",
    "doing",
    "going",
    "getting",
    "still",
    "last",
    "next",
    "week",
    "weekdays",
    "friday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "saturday",
    "sunday",
    "give",
    "giving",
    "left",
    "que",
    "cuando",
    "donde",
    "quien",
    "cual",
    "cuanto",
    "cuantos",
    "como",
    "hora",
    "fecha",
    "dia",
    "numero",
    "preferences",
    "preference",
];

/// Abbreviations used in chat, and common misspellings.
const ABBREVIATIONS: [(&str, &str); 25] = [
    ("preferance", "preference"),
    ("preferances", "preferences"),
    ("pw", "password"),
    ("pwd", "password"),
    ("pword", "password"),
    ("hw", "how"),
    ("appt", "appointment"),
    ("mtg", "meeting"),
    ("bday", "birthday"),
    ("prefs", "preferences"),
    ("addr", "address"),
    ("nr", "number"),
    ("num", "number"),
    ("nmbr", "number"),
    ("tel", "telephone"),
    ("cel", "celular"),
    ("cell", "phone"),
    ("wknd", "weekend"),
    ("wk", "week"),
    ("wrk", "work"),
    ("nw", "now"),
    ("2day", "today"),
    ("2nite", "tonight"),
    ("nite", "night"),
    ("rn", "now"),
];

static KNOWN: LazyLock<HashSet<&str>> =
    LazyLock::new(|| COMMON_WORDS.into_iter().chain(related::known_words()).collect());

/// The minimum length of a word that may lack or add a letter. In shorter words, only swapped letters of common words are corrected.
const MIN_LETTERS: usize = 5;

/// Returns the common word of which a folded word is an abbreviation or a misspelling; `None` if the word is known, or resembles
/// none.
fn correction(word: &str) -> Option<&'static str> {
    if let Some((_, long)) = ABBREVIATIONS.iter().find(|(short, _)| *short == word) {
        return Some(long);
    }
    let is_likely_intended = |known: &&&str| match Difference::between(word, known) {
        Some(Difference::Swapped) => true,
        Some(Difference::Missing { .. }) => known.len() > MIN_LETTERS && word.len() >= MIN_LETTERS,
        _ => false,
    };
    if is_known(word) { None } else { COMMON_WORDS.iter().find(is_likely_intended).copied() }
}

/// Returns the words in the lists of related words that a folded word may be a misspelling of.
pub(crate) fn similar(word: &str) -> impl Iterator<Item = &'static str> {
    let is_candidate = !is_known(word) && word.len() >= MIN_LETTERS;
    let is_likely_intended = |known: &&str| {
        known.len() >= MIN_LETTERS
            && matches!(Difference::between(word, known), Some(Difference::Swapped | Difference::Missing { .. }))
    };
    let similar: Vec<&'static str> =
        if is_candidate { related::known_words().filter(is_likely_intended).collect() } else { Vec::new() };
    similar.into_iter()
}

fn is_known(word: &str) -> bool {
    let is_function_word = Language::ALL.iter().any(|language| language.is_function_word(word));
    is_function_word || KNOWN.contains(word) || word.len() < 3 || word.contains(|c: char| c.is_ascii_digit())
}

/// Returns the word that the offline model substitutes for a misspelt one.
pub(crate) fn corrected_word(utterance: &Utterance, at: usize) -> Option<String> {
    correction(utterance.word(at)).map(str::to_owned)
}

/// Returns the text with its misspelt and abbreviated words corrected.
pub(crate) fn corrected(text: &str) -> String {
    let utterance = Utterance::new(text);
    let mut corrected = String::with_capacity(text.len());
    let mut end = 0;
    for word in utterance.words() {
        let folded = fold(&text[word.span.clone()]);
        if let Some(meant) = correction(&folded) {
            corrected.push_str(&text[end..word.span.start]);
            corrected.push_str(meant);
            end = word.span.end;
        }
    }
    corrected.push_str(&text[end..]);
    corrected
}

/// Whether a word in a question is probably a misspelling of a word in a statement. The check is strict, because either word may be a
/// name: "Mario" is not a misspelling of "Maria".
pub(crate) fn is_misspelling(typed: &str, meant: &str) -> bool {
    let has_digit = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    !has_digit(typed)
        && !has_digit(meant)
        && Difference::between(typed, meant).is_some_and(|found| match found {
            Difference::Swapped => typed.len() > 3,
            Difference::Missing { is_last } => !is_last && typed.len().min(meant.len()) >= 4,
            Difference::Replaced { is_last } => !is_last && typed.len() >= 6,
        })
}

/// How two similar words differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    /// Two neighbouring letters are swapped.
    Swapped,
    /// One word lacks a letter of the other. The first letter is the same.
    Missing { is_last: bool },
    /// One letter is replaced. The first letter is the same.
    Replaced { is_last: bool },
}

impl Difference {
    fn between(one: &str, other: &str) -> Option<Self> {
        if one.is_ascii() && other.is_ascii() {
            return Self::between_characters(one.as_bytes(), other.as_bytes());
        }
        let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
        Self::between_characters(&one, &other)
    }

    fn between_characters<C: PartialEq>(one: &[C], other: &[C]) -> Option<Self> {
        if one.len().abs_diff(other.len()) > 1 || one == other {
            return None;
        }
        let start = one.iter().zip(other).take_while(|(a, b)| a == b).count();
        let end = one[start..].iter().rev().zip(other[start..].iter().rev()).take_while(|(a, b)| a == b).count();
        let (left, right) = (&one[start..one.len() - end], &other[start..other.len() - end]);
        match (left, right) {
            ([a, b], [c, d]) if a == d && b == c => Some(Self::Swapped),
            ([_], []) | ([], [_]) if start > 0 => Some(Self::Missing { is_last: end == 0 }),
            ([_], [_]) if start > 0 => Some(Self::Replaced { is_last: end == 0 }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_are_corrected() {
        for (typed, meant) in [
            ("how mcuh did I put down", "how much did I put down"),
            ("waht am I givng gran", "what am I giving gran"),
            ("adn when deos it open", "and when does it open"),
            ("wifi pw", "wifi password"),
        ] {
            assert_eq!(corrected(typed), meant);
        }
        assert_eq!(similar("wieght").next(), Some("weight"));
        assert_eq!(similar("bookin").next(), Some("booking"));
        assert_eq!(similar("spare").next(), None);
        for text in [
            "who has the spare key",
            "who is Mario",
            "the dairy in Form Lane",
            "won 3 of 4",
            "¿cuándo es?",
            "when is Nina's party",
        ] {
            assert_eq!(corrected(text), text);
        }
    }

    #[test]
    fn names_are_not_misspellings_of_each_other() {
        for (typed, meant) in
            [("siobahn", "siobhan"), ("cuboards", "cupboards"), ("glutin", "gluten"), ("clucth", "clutch")]
        {
            assert!(is_misspelling(typed, meant), "{typed}");
        }
        for (one, other) in
            [("maria", "mario"), ("ana", "ann"), ("marco", "marcos"), ("flat3", "flat4"), ("jon", "jan")]
        {
            assert!(!is_misspelling(one, other), "{one}");
        }
    }
}
