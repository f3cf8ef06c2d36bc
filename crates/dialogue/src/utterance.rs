use std::borrow::Cow;
use std::ops::Range;

use threadkeep_core::text::fold;
use unicode_normalization::char::is_combining_mark;

/// The maximum number of words of an utterance; further words are ignored.
const MAX_WORDS: usize = 400;

/// A message, split into words.
#[derive(Clone, Debug)]
pub struct Utterance {
    text: String,
    words: Vec<Word>,
}

/// A word: letters and digits. Apostrophes within a word are removed; all other characters separate words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word in lower case without accents.
    pub folded: String,
    /// The byte range in the text.
    pub span: Range<usize>,
    /// Whether a sentence may end after the word.
    pub(crate) ends_sentence: bool,
    /// Whether the spelling was corrected.
    pub(crate) is_corrected: bool,
}

impl Word {
    /// Whether a sentence may end after the word.
    #[must_use]
    pub fn ends_a_sentence(&self) -> bool {
        self.ends_sentence
    }
}

impl Utterance {
    /// Splits text into words; uses only the first 400.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let words = words_of(&text);
        Self { text, words }
    }

    /// Replaces each normalized word for which `correct`, given its position, returns another word. The original text
    /// is kept.
    #[must_use]
    pub fn corrected(mut self, correct: impl Fn(&Self, usize) -> Option<String>) -> Self {
        let meant: Vec<Option<String>> = (0..self.words.len()).map(|at| correct(&self, at)).collect();
        for (word, meant) in self.words.iter_mut().zip(meant) {
            if let Some(meant) = meant {
                word.is_corrected |= word.folded != meant;
                word.folded = meant;
            }
        }
        self
    }

    /// Returns the original text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the words.
    #[must_use]
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// Returns a normalized word; empty if out of range.
    #[must_use]
    pub fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| &word.folded)
    }

    /// Returns the text of a range of words: the original, or the normalized words if the spelling of one was corrected.
    #[must_use]
    pub fn spelled(&self, words: Range<usize>) -> Cow<'_, str> {
        let within = self.words.get(words.clone()).unwrap_or_default();
        match within.iter().any(|word| word.is_corrected) {
            true => Cow::Owned(within.iter().map(|word| word.folded.as_str()).collect::<Vec<_>>().join(" ")),
            false => Cow::Borrowed(self.said(words)),
        }
    }

    /// Returns the original text of a range of words.
    #[must_use]
    pub fn said(&self, words: Range<usize>) -> &str {
        match (self.words.get(words.start), words.end.checked_sub(1).and_then(|last| self.words.get(last))) {
            (Some(first), Some(last)) if words.start < words.end => &self.text[first.span.start..last.span.end],
            _ => "",
        }
    }
}

/// Splits a pattern, a name or an alias into normalized words.
pub(crate) fn folded_words(text: &str) -> Vec<String> {
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
        let arrow = match (character, next) {
            ('→', _) => Some(at..at + character.len_utf8()),
            ('-', Some('>')) => Some(at..at + 2),
            _ => None,
        };
        if let Some(span) = arrow.filter(|_| !words.is_empty()) {
            words.push(Word { folded: "to".to_owned(), span, ends_sentence: false, is_corrected: false });
        }
        let at_end = next.is_none_or(char::is_whitespace);
        let ends_sentence = matches!(character, '\n' | '?' | '!' | ';') || (character == '.' && at_end);
        if let Some(last) = words.last_mut().filter(|_| ends_sentence) {
            last.ends_sentence = true;
        }
        if words.len() >= MAX_WORDS {
            return words;
        }
    }
    push_word(text, start.map(|start| start..text.len()), &mut words);
    words
}

/// The meaning of "w/".
const WITH: &str = "with";
/// Abbreviations that are common in chats, and their meanings.
const ABBREVIATIONS: [(&str, &str); 39] = [
    ("thx", "thanks"),
    ("thnx", "thanks"),
    ("tx", "thanks"),
    ("ty", "thanks"),
    ("tysm", "thanks"),
    ("tyvm", "thanks"),
    ("thanx", "thanks"),
    ("pls", "please"),
    ("plz", "please"),
    ("plse", "please"),
    ("u", "you"),
    ("ur", "your"),
    ("tmrw", "tomorrow"),
    ("tmr", "tomorrow"),
    ("tmrow", "tomorrow"),
    ("tomorow", "tomorrow"),
    ("tommorow", "tomorrow"),
    ("tommorrow", "tomorrow"),
    ("2moro", "tomorrow"),
    ("tonite", "tonight"),
    ("2nite", "tonight"),
    ("bc", "because"),
    ("cuz", "because"),
    ("abt", "about"),
    ("gonna", "going"),
    ("wanna", "want"),
    ("gotta", "must"),
    ("lemme", "let"),
    ("dunno", "know"),
    ("idk", "know"),
    ("yea", "yes"),
    ("yeah", "yes"),
    ("yep", "yes"),
    ("xq", "porque"),
    ("wen", "when"),
    ("wut", "what"),
    ("wat", "what"),
    ("wich", "which"),
    ("teh", "the"),
];

fn is_letter(character: char) -> bool {
    character.is_alphanumeric() || is_combining_mark(character)
}

fn push_word(text: &str, span: Option<Range<usize>>, words: &mut Vec<Word>) {
    let Some(span) = span else { return };
    let letters: String = text[span.clone()].chars().filter(|character| !matches!(character, '\'' | '’')).collect();
    let folded = fold(&letters);
    if folded == "o" && text[..span.start].ends_with('/') && words.last().is_some_and(|last| last.folded == WITH) {
        // "w/o"
        if let Some(last) = words.last_mut() {
            *last = Word {
                folded: "without".to_owned(),
                span: last.span.start..span.end,
                ends_sentence: false,
                is_corrected: false,
            };
        }
        return;
    }
    let is_with = folded == "w"
        && text[span.end..].starts_with('/')
        && !text[span.end + 1..].starts_with(|next: char| next.is_ascii_uppercase());
    // In "n how many stops", "n" means "and". The line N is written as a capital letter, or after another word.
    let is_and = words.is_empty()
        && &text[span.clone()] == "n"
        && !text[span.end..].trim_start().starts_with(['t', 'T', 'l', 'L']);
    let folded = if is_and { "and".to_owned() } else { folded };
    let known = ABBREVIATIONS.iter().find(|(short, _)| *short == folded).map(|(_, long)| *long);
    let folded = if is_with { WITH.to_owned() } else { known.map_or(folded, str::to_owned) };
    words.push(Word { folded, span, ends_sentence: false, is_corrected: false });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_into_normalized_words() {
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
    fn abbreviations_are_expanded() {
        let words = |text: &str| folded_words(text).join(" ");
        assert_eq!(words("thx, w/o the E tmrw plz"), "thanks without the e tomorrow please");
        assert_eq!(words("w/ a stroller on the N/W or W/N"), "with a stroller on the n w or w n");
    }

    #[test]
    fn the_number_of_words_is_bounded() {
        assert_eq!(Utterance::new("word ".repeat(100_000)).words().len(), MAX_WORDS);
    }
}
