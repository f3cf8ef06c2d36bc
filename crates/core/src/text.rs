//! How words are taken from text for search: the same in every store, for what is indexed and for what is asked.
//!
//! A text is stemmed in the language that its own function words show ([`Language::of`]). One that shows none (a name, a
//! short reply) is indexed under the stems of every language, and a question asks for the stems of every language
//! ([`query_terms`]), so neither side has to guess what the other was written in.

mod function_words;
mod irregular;
mod term_matcher;

use std::cmp::Ordering;
use std::collections::HashSet;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};
use unicode_segmentation::UnicodeSegmentation;

pub use term_matcher::{CachingTermMatcher, TermCounts, TermMatcher};

/// The version of this analysis. An index made by another one is rebuilt.
pub const ANALYSIS_VERSION: u32 = 2;

/// The longest term, in characters; longer words are cut.
const TERM_CHARS: usize = 64;

/// A language whose endings are removed. A text in another is taken apart as both would, and so is the question, so
/// that equal words still meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// English.
    English,
    /// Spanish.
    Spanish,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 2] = [Self::English, Self::Spanish];

    /// The language whose function words a text holds more of; `None` where none is ahead.
    ///
    /// ```
    /// use threadkeep_core::text::Language;
    /// assert_eq!(Language::of("Where is the station?"), Some(Language::English));
    /// assert_eq!(Language::of("¿Dónde está la estación?"), Some(Language::Spanish));
    /// assert_eq!(Language::of("Córdoba, 42"), None);
    /// ```
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        language_of(&words(text))
    }

    /// Whether a word, folded as [`fold`] does, says nothing by itself in this language: an article, a pronoun, an
    /// auxiliary.
    #[must_use]
    pub fn is_function_word(self, folded: &str) -> bool {
        function_words::languages_of(folded)[self as usize]
    }

    fn stemmer(self) -> Stemmer {
        Stemmer::create(match self {
            Self::English => Algorithm::English,
            Self::Spanish => Algorithm::Spanish,
        })
    }
}

/// Takes stems from words of one or more languages.
struct Stems {
    by_language: Vec<(Language, Stemmer)>,
}

impl Stems {
    fn new(languages: &[Language]) -> Self {
        Self { by_language: languages.iter().map(|language| (*language, language.stemmer())).collect() }
    }

    /// The stems of a folded word, each once.
    fn of(&self, word: &str) -> Vec<String> {
        let mut stems: Vec<String> = Vec::with_capacity(self.by_language.len());
        for (language, stemmer) in &self.by_language {
            let stem = match language {
                Language::English => stemmer.stem(irregular::base_of(word)).into_owned(),
                // The stemmer knows these endings with their accents only, and not everyone types them.
                Language::Spanish => fold(&stemmer.stem(&with_accented_ending(word))),
            };
            if !stems.contains(&stem) {
                stems.push(stem);
            }
        }
        stems
    }
}

/// Takes the terms from a text, in order, repeats included: words by Unicode's borders, lower case, accents folded,
/// the endings of its language removed (English where it shows none). A term holds letters and digits only.
///
/// ```
/// assert_eq!(threadkeep_core::text::terms("The trains to Córdoba…"), ["the", "train", "to", "cordoba"]);
/// ```
#[must_use]
pub fn terms(text: &str) -> Vec<String> {
    let words = words(text);
    let stems = Stems::new(&[language_of(&words).unwrap_or(Language::English)]);
    words.iter().flat_map(|word| stems.of(word)).collect()
}

/// The same terms, each once, in the order of first mention.
#[must_use]
pub fn distinct_terms(text: &str) -> Vec<String> {
    distinct(terms(text))
}

/// What a text is found by: for each word in order, its stems in the text's language, or in all of them where it shows
/// none.
#[must_use]
pub fn stems(text: &str) -> Vec<Vec<String>> {
    let words = words(text);
    let stems = match language_of(&words) {
        Some(language) => Stems::new(&[language]),
        None => Stems::new(&Language::ALL),
    };
    words.iter().map(|word| stems.of(word)).collect()
}

/// What an index holds of a text: its [`stems`], each once.
#[must_use]
pub fn indexed_terms(text: &str) -> Vec<String> {
    distinct(stems(text).into_iter().flatten())
}

/// What a question looks for: for each word in order, the word itself, folded, and its stems in every language.
#[must_use]
pub fn query_terms(question: &str) -> Vec<(String, Vec<String>)> {
    let stems = Stems::new(&Language::ALL);
    words(question).into_iter().map(|word| (word.clone(), stems.of(&word))).collect()
}

/// A word in lower case and without accents, cut to the length of a term.
#[must_use]
pub fn fold(word: &str) -> String {
    if word.is_ascii() {
        let mut word = word[..word.len().min(TERM_CHARS)].to_owned();
        word.make_ascii_lowercase();
        return word;
    }
    let unmarked = word.nfkd().filter(|character| !is_combining_mark(*character));
    let lower = unmarked.flat_map(char::to_lowercase).filter(|character| character.is_alphanumeric());
    lower.take(TERM_CHARS).collect()
}

/// The words of a text, folded.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_word(text, |word| words.push(word.to_owned()));
    words
}

/// Shows the words of a text, folded, one after the other.
fn for_each_word(text: &str, mut show: impl FnMut(&str)) {
    if text.is_ascii() {
        // The same words: without marks and scripts, only what is no letter or digit parts them.
        let mut folded = String::new();
        for piece in text.split(|character: char| !character.is_ascii_alphanumeric()) {
            folded.clear();
            folded.push_str(&piece[..piece.len().min(TERM_CHARS)]);
            folded.make_ascii_lowercase();
            if !folded.is_empty() {
                show(&folded);
            }
        }
        return;
    }
    let pieces = text.unicode_words().flat_map(|word| word.split(|character: char| !character.is_alphanumeric()));
    for folded in pieces.map(fold).filter(|word| !word.is_empty()) {
        show(&folded);
    }
}

fn language_of(words: &[String]) -> Option<Language> {
    let mut tally = Tally::default();
    words.iter().for_each(|word| tally.take(word));
    tally.language()
}

/// How many function words of each language a text holds.
#[derive(Default)]
struct Tally {
    english: usize,
    spanish: usize,
}

impl Tally {
    fn take(&mut self, word: &str) {
        let [is_english, is_spanish] = function_words::languages_of(word);
        self.english += usize::from(is_english);
        self.spanish += usize::from(is_spanish);
    }

    fn language(&self) -> Option<Language> {
        match self.english.cmp(&self.spanish) {
            Ordering::Greater => Some(Language::English),
            Ordering::Less => Some(Language::Spanish),
            Ordering::Equal => None,
        }
    }
}

/// Spanish endings whose accent [`fold`] took.
const ACCENTED_ENDINGS: [(&str, &str); 4] =
    [("cion", "ción"), ("logia", "logía"), ("abamos", "ábamos"), ("iamos", "íamos")];

fn with_accented_ending(word: &str) -> String {
    let ending = ACCENTED_ENDINGS.iter().find_map(|(plain, accented)| Some((word.strip_suffix(plain)?, accented)));
    ending.map_or_else(|| word.to_owned(), |(start, accented)| format!("{start}{accented}"))
}

fn distinct(terms: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    terms.into_iter().filter(|term| seen.insert(term.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_and_stemmed() {
        assert_eq!(terms("Don't PANIC, hotels: 42!"), ["don", "t", "panic", "hotel", "42"]);
        assert_eq!(terms("Ámparo ÁMPARO amparo"), ["amparo", "amparo", "amparo"]);
        assert_eq!(terms("東京 タワー").len(), 3);
        assert_eq!(terms("\u{0}\u{202e}…"), Vec::<String>::new());
        assert_eq!(terms(&"x".repeat(500))[0].len(), 64);
    }

    #[test]
    fn the_language_is_the_one_of_the_function_words() {
        for (text, expected) in [
            ("I went to the station", Some(Language::English)),
            ("fui a la estacion con mi tia", Some(Language::Spanish)),
            ("Ella dijo que the train llega a las cinco y no me gusta", Some(Language::Spanish)),
            ("Trains", None),
            ("", None),
            ("東京 タワー", None),
        ] {
            assert_eq!(Language::of(text), expected, "{text}");
        }
    }

    #[test]
    fn a_question_finds_a_text_in_either_language() {
        let finds = |question: &str, text: &str| {
            let held = indexed_terms(text);
            query_terms(question).into_iter().flat_map(|(_, stems)| stems).any(|stem| held.contains(&stem))
        };
        for (question, text) in [
            ("trenes", "¿Cuándo sale el tren a la ciudad?"),
            ("tren", "Trenes: 4"),
            ("obligacion", "Las obligaciones de la empresa"),
            ("OBLIGACIONES", "una obligación"),
            ("trains", "the train is late"),
            ("train", "Trains: 4"),
            ("tia", "¿Cómo está mi tía?"),
            ("buying", "she bought it yesterday"),
            ("wrote", "I am writing to you"),
        ] {
            assert!(finds(question, text), "{question} in {text}");
        }
        assert!(!finds("plane", "the train is late"));
    }

    proptest::proptest! {
        #[test]
        fn plain_letters_are_parted_as_any_others(text in "[ -~\n\t]{0,60}") {
            let marked = words(&format!("{text} é"));
            let (last, before) = marked.split_last().unwrap();
            proptest::prop_assert_eq!(last, "e");
            proptest::prop_assert_eq!(words(&text), before);
        }
    }

    #[test]
    fn terms_hold_letters_and_digits_only() {
        for text in ["canción ñandú ÁÉÍ", "İstanbul ǅ ﬁne", "a\u{301}b x_y 3.14 e-mail"] {
            for term in stems(text).into_iter().flatten() {
                assert!(!term.is_empty() && term.chars().all(char::is_alphanumeric), "{term:?}");
            }
        }
    }
}
