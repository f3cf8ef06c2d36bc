use std::ops::Range;

use threadkeep_core::text::fold;
use unicode_normalization::char::is_combining_mark;

/// Words of an utterance that are looked at. Whoever asks for more than that has more than one question.
const WORDS: usize = 400;

/// What someone said, as words.
#[derive(Clone, Debug)]
pub struct Utterance {
    text: String,
    words: Vec<Word>,
}

/// A word: letters and digits; an apostrophe within is left out, everything else parts words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// In lower case, without accents.
    pub folded: String,
    /// Where it stands in the text, in bytes.
    pub place: Range<usize>,
    /// Whether a sentence may end behind it.
    pub(super) ends_sentence: bool,
}

impl Utterance {
    /// Takes a text apart. Of a long one, the first 400 words count.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let words = words_of(&text);
        Self { text, words }
    }

    /// The text as it was said.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its words.
    #[must_use]
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// A word, folded; empty where there is none.
    #[must_use]
    pub fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| &word.folded)
    }

    /// Words as they were said, with what stands between them.
    #[must_use]
    pub fn said(&self, words: Range<usize>) -> &str {
        match (self.words.get(words.start), words.end.checked_sub(1).and_then(|last| self.words.get(last))) {
            (Some(first), Some(last)) if words.start < words.end => &self.text[first.place.start..last.place.end],
            _ => "",
        }
    }
}

/// The words of a pattern, a name or an alias, as those of an utterance.
pub(super) fn folded_words(text: &str) -> Vec<String> {
    words_of(text).into_iter().map(|word| word.folded).collect()
}

fn words_of(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut start = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let joins =
            is_letter(character) || (matches!(character, '\'' | '’') && start.is_some() && next.is_some_and(is_letter));
        if joins {
            start.get_or_insert(at);
            continue;
        }
        push_word(text, start.take().map(|start| start..at), &mut words);
        let at_end = next.is_none_or(char::is_whitespace);
        let ends_sentence = matches!(character, '\n' | '?' | '!' | ';') || (character == '.' && at_end);
        if let Some(last) = words.last_mut().filter(|_| ends_sentence) {
            last.ends_sentence = true;
        }
        if words.len() >= WORDS {
            return words;
        }
    }
    push_word(text, start.map(|start| start..text.len()), &mut words);
    words
}

fn is_letter(character: char) -> bool {
    character.is_alphanumeric() || is_combining_mark(character)
}

fn push_word(text: &str, place: Option<Range<usize>>, words: &mut Vec<Word>) {
    let Some(place) = place else { return };
    let said: String = text[place.clone()].chars().filter(|character| !matches!(character, '\'' | '’')).collect();
    words.push(Word { folded: fold(&said), place, ends_sentence: false });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_and_parted_where_a_person_would() {
        let utterance = Utterance::new("What's the next A/C to Hoyt-Schermerhorn? ¿Y a Córdoba.");
        let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
        assert_eq!(words, ["whats", "the", "next", "a", "c", "to", "hoyt", "schermerhorn", "y", "a", "cordoba"]);
        assert_eq!(utterance.said(6..8), "Hoyt-Schermerhorn");
        assert_eq!(utterance.said(8..8), "");
        let ends: Vec<usize> =
            utterance.words().iter().enumerate().filter(|(_, word)| word.ends_sentence).map(|(at, _)| at).collect();
        assert_eq!(ends, [7, 10]);
    }

    #[test]
    fn a_long_text_is_bounded() {
        assert_eq!(Utterance::new("word ".repeat(100_000)).words().len(), WORDS);
    }
}
