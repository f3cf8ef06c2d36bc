//! Text analysis for search: tokenising and stemming, the same in every store, for indexed text and for queries.
//!
//! Text is stemmed in the language that its function words indicate ([`Language::of`]). If they indicate none (as in a name or a
//! short reply), it is indexed with its stems in every language. Queries use the stems in every language ([`query_terms`]), so that
//! neither side has to guess the language of the other.

mod function_words;
mod irregular;
mod spelling;
mod term_matcher;

use std::cmp::Ordering;
use std::collections::HashSet;

use foldhash::fast::RandomState;
use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};
use unicode_segmentation::UnicodeSegmentation;

pub use term_matcher::{CachingTermMatcher, TermCounts, TermMatcher};

/// The version of the analysis. Indexes built with another version are rebuilt.
pub const ANALYSIS_VERSION: u32 = 3;

/// The maximum length of a term in characters. Longer words are truncated.
const TERM_CHARS: usize = 64;

/// A language with a stemmer. Text in any other language is indexed with its stems in both languages. Queries also use both stems, so
/// equal words still match.
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

    /// Detects the language of the text: the one with more function words in it, `None` on a tie.
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

    /// Whether a word, folded by [`fold`], is a function word of this language: an article, a pronoun, an auxiliary.
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

/// Stems words in one or more languages.
struct Stems {
    by_language: Vec<(Language, Stemmer)>,
}

impl Stems {
    fn new(languages: &[Language]) -> Self {
        Self { by_language: languages.iter().map(|language| (*language, language.stemmer())).collect() }
    }

    /// Creates the stemmers of the language of these words, or of all languages if none is detected.
    fn for_words(words: &[String]) -> Self {
        language_of(words).map_or_else(|| Self::new(&Language::ALL), |language| Self::new(&[language]))
    }

    /// Returns the distinct stems of a folded word.
    fn of(&self, word: &str) -> Vec<String> {
        let mut stems: Vec<String> = Vec::with_capacity(self.by_language.len());
        for (language, stemmer) in &self.by_language {
            let stem = match function_words::stem_of(word, *language) {
                Some(known) => known.to_owned(),
                None => stem(word, *language, stemmer),
            };
            if !stems.contains(&stem) {
                stems.push(stem);
            }
        }
        stems
    }
}

/// Returns the stem of a folded word.
fn stem(word: &str, language: Language, stemmer: &Stemmer) -> String {
    match language {
        Language::English => stemmer.stem(irregular::base_of(word)).into_owned(),
        // The stemmer only recognises these endings with their accents, which many people omit.
        Language::Spanish => fold(&stemmer.stem(&with_accented_ending(word))),
    }
}

/// Returns the terms of the text in order, including repetitions: words by Unicode word boundaries, in lower case, without accents,
/// stemmed in the language of the text (English if none is detected). A term contains only letters and digits.
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

/// Returns the distinct [`terms`] of the text, in the order of their first occurrence.
#[must_use]
pub fn distinct_terms(text: &str) -> Vec<String> {
    distinct(terms(text))
}

/// Returns the stems of each word of the text, in order: in the language of the text, or in all languages if none is detected.
#[must_use]
pub fn stems(text: &str) -> Vec<Vec<String>> {
    let words = words(text);
    let stems = Stems::for_words(&words);
    words.iter().map(|word| stems.of(word)).collect()
}

/// Returns the terms to index for a text: its distinct [`stems`].
#[must_use]
pub fn indexed_terms(text: &str) -> Vec<String> {
    let words = words(text);
    let stems = Stems::for_words(&words);
    // A word that occurs several times is stemmed once.
    let mut seen: HashSet<&str, RandomState> = HashSet::default();
    distinct(words.iter().filter(|word| seen.insert(word)).flat_map(|word| stems.of(word)))
}

/// Returns the search terms of a query: for each word in order, the folded word and its stems in every language, followed by the
/// stems of its other English spelling (`colour`, `color`).
#[must_use]
pub fn query_terms(query: &str) -> Vec<(String, Vec<String>)> {
    let stems = Stems::new(&Language::ALL);
    let terms_of = |word: &str| {
        let mut terms = stems.of(word);
        let others = spelling::other_spelling(word).into_iter().flat_map(|other| stems.of(&other));
        terms.extend(others.filter(|other| !terms.contains(other)).collect::<Vec<_>>());
        terms
    };
    words(query).into_iter().map(|word| (word.clone(), terms_of(&word))).collect()
}

/// Returns the [`query_terms`] of the text, without the function words of any language.
#[must_use]
pub fn content_terms(text: &str) -> Vec<(String, Vec<String>)> {
    let is_function_word = |word: &str| Language::ALL.iter().any(|language| language.is_function_word(word));
    query_terms(text).into_iter().filter(|(word, _)| !is_function_word(word)).collect()
}

/// Returns a word in lower case, without accents, truncated to the maximum length of a term.
#[must_use]
pub fn fold(word: &str) -> String {
    let mut folded = String::new();
    fold_into(word, &mut folded);
    folded
}

/// Replaces the contents of `folded` with the folded word.
fn fold_into(word: &str, folded: &mut String) {
    folded.clear();
    if word.is_ascii() {
        folded.push_str(&word[..word.len().min(TERM_CHARS)]);
        folded.make_ascii_lowercase();
        return;
    }
    for character in word.chars() {
        if character.is_ascii_alphanumeric() {
            folded.push(character.to_ascii_lowercase());
        } else {
            let unmarked = std::iter::once(character).nfkd().filter(|character| !is_combining_mark(*character));
            folded.extend(unmarked.flat_map(char::to_lowercase).filter(|character| character.is_alphanumeric()));
        }
    }
    if let Some((end, _)) = folded.char_indices().nth(TERM_CHARS) {
        folded.truncate(end);
    }
}

/// Returns the words of the text in order, each folded by [`fold`].
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_word(text, |word| words.push(word.to_owned()));
    words
}

/// Calls a function with each folded word of the text, in order.
pub fn for_each_word(text: &str, mut visit: impl FnMut(&str)) {
    let mut folded = String::new();
    let mut visit_folded = |word: &str| {
        fold_into(word, &mut folded);
        if !folded.is_empty() {
            visit(&folded);
        }
    };
    let is_separator = |character: char| !character.is_alphanumeric();
    if text.chars().all(|character| is_latin(character) || is_separator(character)) {
        // Latin letters and ASCII digits have no boundaries between them, so this has the same result as the segmentation, which is slow.
        text.split(is_separator).for_each(&mut visit_folded);
    } else {
        text.unicode_words().flat_map(|word| word.split(is_separator)).for_each(&mut visit_folded);
    }
}

/// Whether a letter or digit is ASCII, or a letter of Latin-1 or Latin Extended-A.
fn is_latin(character: char) -> bool {
    character.is_ascii() || matches!(character, 'ª' | 'º' | 'À'..='ſ')
}

fn language_of(words: &[String]) -> Option<Language> {
    let mut counts = FunctionWordCounts::default();
    words.iter().for_each(|word| counts.add(word));
    counts.language()
}

/// The number of function words of each language in the text.
#[derive(Default)]
struct FunctionWordCounts {
    english: usize,
    spanish: usize,
}

impl FunctionWordCounts {
    fn add(&mut self, word: &str) {
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

/// Spanish endings without and with the accent that [`fold`] removes.
const ACCENTED_ENDINGS: [(&str, &str); 4] =
    [("cion", "ción"), ("logia", "logía"), ("abamos", "ábamos"), ("iamos", "íamos")];

fn with_accented_ending(word: &str) -> String {
    let ending = ACCENTED_ENDINGS.iter().find_map(|(plain, accented)| Some((word.strip_suffix(plain)?, accented)));
    ending.map_or_else(|| word.to_owned(), |(start, accented)| format!("{start}{accented}"))
}

fn distinct(terms: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen: HashSet<String, RandomState> = HashSet::default();
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

    /// The words by segmentation of the whole text.
    fn segmented_words(text: &str) -> Vec<String> {
        let pieces = text.unicode_words().flat_map(|word| word.split(|character: char| !character.is_alphanumeric()));
        pieces.map(fold).filter(|word| !word.is_empty()).collect()
    }

    #[test]
    fn words_are_those_of_the_segmentation() {
        for text in [
            "Artículo 2o.- Señoría, 1ª Sala: 3.5 m²",
            "日本語のテキスト 東京2020",
            "L'été n'est_pas «là»",
            "ñandú123ñ Ⓜx ½x",
        ] {
            assert_eq!(words(text), segmented_words(text), "{text}");
        }
        // Every three characters of the scripts in which words are joined or separated in special ways.
        let samples = [
            'a', 'ñ', 'ſ', 'ƀ', 'Ж', 'א', 'ا', 'ก', '東', 'ひ', 'カ', 'ー', '1', '²', '½', 'ª', 'Ⓜ', 'ि', '१', '_',
            '.', '\'', '-', '\u{301}', '\u{200d}', '\u{ad}', '🇪', '👍',
        ];
        for first in samples {
            for second in samples {
                for third in samples {
                    let text = format!("x{first}{second}{third}y");
                    assert_eq!(words(&text), segmented_words(&text), "{text:?}");
                }
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn words_of_any_text_are_those_of_the_segmentation(text in "\\PC{0,40}") {
            proptest::prop_assert_eq!(words(&text), segmented_words(&text));
        }
    }

    #[test]
    fn language_is_detected_by_function_words() {
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
    fn query_matches_text_in_either_language() {
        let matches = |query: &str, text: &str| {
            let indexed = indexed_terms(text);
            query_terms(query).into_iter().flat_map(|(_, stems)| stems).any(|stem| indexed.contains(&stem))
        };
        for (query, text) in [
            ("trenes", "¿Cuándo sale el tren a la ciudad?"),
            ("tren", "Trenes: 4"),
            ("obligacion", "Las obligaciones de la empresa"),
            ("OBLIGACIONES", "una obligación"),
            ("trains", "the train is late"),
            ("train", "Trains: 4"),
            ("tia", "¿Cómo está mi tía?"),
            ("buying", "she bought it yesterday"),
            ("wrote", "I am writing to you"),
            ("favorite", "my favourite colours"),
            ("colour", "what colors do you like"),
            ("organized", "we organised it"),
        ] {
            assert!(matches(query, text), "{query} in {text}");
        }
        assert!(!matches("plane", "the train is late"));
    }

    proptest::proptest! {
        #[test]
        fn ascii_text_is_split_like_other_text(text in "[ -~\n\t]{0,60}") {
            let split = words(&format!("{text} é"));
            let (last, before) = split.split_last().unwrap();
            proptest::prop_assert_eq!(last, "e");
            proptest::prop_assert_eq!(words(&text), before);
        }
    }

    #[test]
    fn terms_have_only_letters_and_digits() {
        for text in ["canción ñandú ÁÉÍ", "İstanbul ǅ ﬁne", "a\u{301}b x_y 3.14 e-mail"] {
            for term in stems(text).into_iter().flatten() {
                assert!(!term.is_empty() && term.chars().all(char::is_alphanumeric), "{term:?}");
            }
        }
    }
}
