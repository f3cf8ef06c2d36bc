//! How words are taken from text for search: the same in every store, for what is indexed and for what is asked.

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};
use unicode_segmentation::UnicodeSegmentation;

/// The version of [`terms`]. An index made by another one is rebuilt.
pub const ANALYSIS_VERSION: u32 = 1;

/// The longest term, in characters; longer words are cut.
const TERM_CHARS: usize = 64;

/// Takes the terms from a text, in order, repeats included: words by Unicode's borders, lower case, accents folded,
/// English endings removed. A term holds letters and digits only.
///
/// ```
/// assert_eq!(threadkeep_core::text::terms("The trains to Córdoba…"), ["the", "train", "to", "cordoba"]);
/// ```
#[must_use]
pub fn terms(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut terms = Vec::new();
    for word in text.unicode_words() {
        for piece in word.split(|character: char| !character.is_alphanumeric()) {
            if !piece.is_empty() {
                terms.push(stemmer.stem(&fold(piece)).into_owned());
            }
        }
    }
    terms
}

/// The same terms, each once, in the order of first mention.
#[must_use]
pub fn distinct_terms(text: &str) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let mut terms = terms(text);
    terms.retain(|term| seen.insert(term.clone()));
    terms
}

fn fold(word: &str) -> String {
    if word.is_ascii() {
        let mut word = word[..word.len().min(TERM_CHARS)].to_owned();
        word.make_ascii_lowercase();
        return word;
    }
    let unmarked = word.nfkd().filter(|character| !is_combining_mark(*character));
    let lower = unmarked.flat_map(char::to_lowercase).filter(|character| character.is_alphanumeric());
    lower.take(TERM_CHARS).collect()
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
}
