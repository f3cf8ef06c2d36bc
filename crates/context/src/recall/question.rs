use std::collections::BTreeSet;

use threadkeep_core::text::{self, CachingTermMatcher, Language, TermCounts, TermMatcher};
use threadkeep_core::{Message, Role, Timestamp};

use super::period::{Period, mentions_time, periods};

/// The maximum number of words of a question, and of terms to look up in an index.
pub const WORDS: usize = 32;

/// A parsed question.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The words to search for, normalised, each with its stems.
    words: Vec<(String, Vec<String>)>,
    /// The number of words whose stems are looked up as terms. Those of the other words are looked up as alternatives.
    term_words: usize,
    matcher: TermMatcher,
    /// All words, normalised.
    all_words: BTreeSet<String>,
    periods: Vec<Period>,
    asks_when: bool,
}

impl Question {
    /// Parses a question: its content words, and the periods that it refers to relative to `now`.
    ///
    /// Function words ([`Language::is_function_word`]) are omitted unless the question has no other words.
    #[must_use]
    pub fn new(question: &str, now: Timestamp) -> Self {
        let language = Language::of(question);
        let is_content_word = |word: &str| match language {
            Some(language) => !language.is_function_word(word),
            None => Language::ALL.iter().all(|language| !language.is_function_word(word)),
        };
        let all = text::query_terms(question);
        let content_words: Vec<_> = all.iter().filter(|(word, _)| is_content_word(word)).cloned().collect();
        let all_words: BTreeSet<String> = all.iter().map(|(word, _)| word.clone()).collect();
        let asks_when = asks_when(&all_words);
        let words = if content_words.is_empty() { all } else { content_words };
        Self { all_words, periods: periods(question, now), asks_when, ..Self::of_words(words) }
    }

    /// Parses a query as words only: every word is searched for, and none is interpreted as a time or speaker.
    #[must_use]
    pub fn of_all_words(query: &str) -> Self {
        Self::of_words(text::query_terms(query))
    }

    /// Parses a query as [`Question::of_all_words`] does, and adds prefixes, each with the words that it stands for. A prefix counts
    /// as one word, of which these words are forms; the letters of the prefix are also searched for as a word. At most [`WORDS`] stems
    /// of all prefixes are looked up, and at least one of each.
    #[must_use]
    pub fn with_prefixes(query: &str, prefixes: &[(String, Vec<String>)]) -> Self {
        let mut all = Self::of_all_words(query).words;
        let term_words = all.len();
        let max_stems = (WORDS / prefixes.len().max(1)).max(1);
        all.extend(prefixes.iter().map(|(prefix, words)| (prefix.clone(), stems_of_any(prefix, words, max_stems))));
        let question = Self::of_words(all);
        // If there is only one word, every candidate contains it, so the stems do not have to be looked up one by one.
        let term_words = if question.is_one_word() { 0 } else { term_words };
        Self { term_words, ..question }
    }

    fn of_words(all: Vec<(String, Vec<String>)>) -> Self {
        let mut seen = BTreeSet::new();
        let mut words: Vec<(String, Vec<String>)> = Vec::new();
        for (word, stems) in all {
            let stems: Vec<String> = stems.into_iter().filter(|stem| seen.insert(stem.clone())).collect();
            if !stems.is_empty() && words.len() < WORDS {
                words.push((word, stems));
            }
        }
        let matcher = TermMatcher::new(&words.iter().map(|(_, stems)| stems.clone()).collect::<Vec<_>>());
        Self { term_words: words.len(), words, matcher, ..Self::default() }
    }

    /// Whether there are no words to search for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether there is exactly one word to search for.
    #[must_use]
    pub fn is_one_word(&self) -> bool {
        self.words.len() == 1
    }

    /// Returns the words to search for, in order.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|(word, _)| word.as_str())
    }

    /// Returns the terms to look up in an index, at most [`WORDS`]: one stem of each word, then the other stems.
    #[must_use]
    pub fn terms(&self) -> Vec<String> {
        let words = &self.words[..self.term_words.min(self.words.len())];
        first_stems_of(words.iter().map(|(_, stems)| stems.as_slice()), WORDS)
    }

    /// Returns the stems of the words to look up in an index as alternatives: those of prefixes.
    #[must_use]
    pub fn alternatives(&self) -> Vec<Vec<String>> {
        self.words.iter().skip(self.term_words).map(|(_, stems)| stems.clone()).collect()
    }

    /// Returns all stems of all words.
    #[must_use]
    pub fn stems(&self) -> Vec<String> {
        self.words.iter().flat_map(|(_, stems)| stems.iter().cloned()).collect()
    }

    /// Converts frequencies of [`Question::terms`] and [`Question::alternatives`] to frequencies of words. The frequency of a word
    /// whose stems are terms is that of its most frequent stem.
    #[must_use]
    pub fn frequencies_of_words(&self, frequencies: &[u64]) -> Vec<u64> {
        let terms = self.terms();
        let frequency = |stem: &String| {
            let index = terms.iter().position(|term| term == stem)?;
            frequencies.get(index).copied()
        };
        let words = self.words.iter().take(self.term_words);
        let words = words.map(|(_, stems)| stems.iter().filter_map(frequency).max().unwrap_or(0));
        let alternatives = (terms.len()..).take(self.words.len().saturating_sub(self.term_words));
        words.chain(alternatives.map(|index| frequencies.get(index).copied().unwrap_or(0))).collect()
    }

    /// Counts the occurrences of the words in the text.
    #[must_use]
    pub fn count(&self, text: &str) -> TermCounts {
        self.matcher.count(text)
    }

    /// Returns a matcher that counts the words in many texts and stems each distinct word only once.
    #[must_use]
    pub fn caching_matcher(&self) -> CachingTermMatcher<'_> {
        self.matcher.caching()
    }

    /// Returns the periods that the question refers to.
    #[must_use]
    pub fn periods(&self) -> &[Period] {
        &self.periods
    }

    /// Whether the question asks for a time and the text mentions one.
    pub(super) fn is_answered_by_time_in(&self, text: &str) -> bool {
        self.asks_when && mentions_time(text)
    }

    /// Returns for each word of the question whether it is a name, or part of a name, of one of `speakers`.
    pub(super) fn speaker_name_flags(&self, speakers: &BTreeSet<String>) -> Vec<bool> {
        self.words.iter().map(|(word, _)| speakers.contains(word)).collect()
    }

    /// Whether the question refers to the speaker of a message: by part of the author's name, or by the first person to a
    /// user without a name.
    pub(super) fn refers_to_speaker_of(&self, message: &Message) -> bool {
        match &message.content.author {
            Some(author) => name_parts(author).any(|part| self.all_words.contains(&part)),
            None => {
                message.content.role == Role::User && FIRST_PERSON.iter().any(|word| self.all_words.contains(*word))
            }
        }
    }
}

/// Returns at most `max` stems: the first stem of each word, then the others.
fn first_stems_of<'a>(words: impl Iterator<Item = &'a [String]> + Clone, max: usize) -> Vec<String> {
    let first_stems = words.clone().filter_map(|stems| stems.first());
    let other_stems = words.flat_map(|stems| stems.iter().skip(1));
    first_stems.chain(other_stems).take(max).cloned().collect()
}

/// Returns at most `max` distinct stems of a prefix and of the words with it.
fn stems_of_any(prefix: &str, words: &[String], max: usize) -> Vec<String> {
    let text = std::iter::once(prefix).chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    let stems: Vec<Vec<String>> = text::query_terms(&text).into_iter().map(|(_, stems)| stems).collect();
    let mut seen = BTreeSet::new();
    let mut stems = first_stems_of(stems.iter().map(Vec::as_slice), usize::MAX);
    stems.retain(|stem| seen.insert(stem.clone()));
    stems.truncate(max);
    stems
}

const FIRST_PERSON: [&str; 11] = ["i", "me", "my", "mine", "myself", "yo", "mi", "mis", "mio", "mia", "conmigo"];

/// Returns the parts of a name that can refer to the person. Excludes function words such as `Will`, which would match many
/// questions.
pub(super) fn name_parts(name: &str) -> impl Iterator<Item = String> {
    let is_function_word = |word: &str| Language::ALL.iter().any(|language| language.is_function_word(word));
    let parts = text::query_terms(name).into_iter().map(|(word, _)| word);
    parts.filter(move |word| word.chars().count() > 1 && !is_function_word(word))
}

fn asks_when(all_words: &BTreeSet<String>) -> bool {
    let says = |word: &str| all_words.contains(word);
    let asks_which = ["what", "which", "how", "que", "cual", "cuanto", "cuantos", "cuantas"].into_iter().any(says);
    let unit = [
        "long", "date", "day", "days", "week", "weeks", "month", "months", "year", "years", "ago", "fecha", "dia",
        "dias", "semana", "semanas", "mes", "meses", "ano", "anos", "tiempo",
    ];
    says("when") || says("cuando") || (asks_which && unit.into_iter().any(says))
}

#[cfg(test)]
mod tests {
    use threadkeep_core::{Content, MessageId};

    use super::*;

    fn now() -> Timestamp {
        "2026-11-21T08:00:00Z".parse().unwrap()
    }

    fn message_by(author: Option<&str>, role: Role) -> Message {
        let content = Content { author: author.map(str::to_owned), ..Content::text(role, "…") };
        let id = MessageId(uuid::Uuid::nil());
        Message { seq: 1, id, external_id: None, revision: 0, created_at: now(), content }
    }

    #[test]
    fn function_words_are_omitted_unless_there_are_no_other_words() {
        assert_eq!(Question::new("Where did the trains go?", now()).terms(), ["train", "go", "trains"]);
        assert_eq!(Question::new("¿Dónde está el tren?", now()).terms(), ["tren"]);
        assert_eq!(Question::new("who are you?", now()).words.len(), 3);
        for nothing in ["", "…", "\u{0}\u{202e}", "?!\n\t"] {
            assert!(Question::new(nothing, now()).is_empty(), "{nothing:?}");
        }
    }

    #[test]
    fn terms_are_bounded_and_distinct() {
        let long: String = (0..10_000).map(|number| format!("word{number} ")).collect();
        assert_eq!(Question::new(&long, now()).terms().len(), WORDS);
        let terms = Question::of_all_words("train trains TRAIN tren trenes").terms();
        let distinct: BTreeSet<_> = terms.iter().collect();
        assert_eq!(distinct.len(), terms.len(), "{terms:?}");
    }

    #[test]
    fn a_word_is_as_frequent_as_its_most_frequent_stem() {
        let question = Question::of_all_words("trains go");
        assert_eq!(question.terms(), ["train", "go", "trains"]);
        assert_eq!(question.frequencies_of_words(&[4, 7, 5]), [5, 7]);
        assert_eq!(question.frequencies_of_words(&[]), [0, 0]);
    }

    #[test]
    fn a_prefix_counts_as_one_word() {
        let prefix = |letters: &str, words: &[&str]| {
            (letters.to_owned(), words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        let question = Question::with_prefixes("fast tren", &[prefix("tra", &["trains", "tracks"])]);
        assert_eq!(question.words().collect::<Vec<_>>(), ["fast", "tren", "tra"]);
        assert_eq!((question.terms(), question.alternatives().len()), (vec!["fast".to_owned(), "tren".to_owned()], 1));
        assert_eq!(question.alternatives()[0][..3], ["tra", "train", "track"]);
        assert_eq!(question.frequencies_of_words(&[3, 4, 9]), [3, 4, 9]);
        assert_eq!(question.count("a fast train on other tracks").counts, [1, 0, 2]);
        let alone = Question::with_prefixes("", &[prefix("tra", &["trains"])]);
        assert!(alone.is_one_word() && alone.terms().is_empty());
        assert_eq!(alone.frequencies_of_words(&[9]), [9]);
        let word = Question::with_prefixes("trains", &[]);
        assert_eq!((word.terms().len(), word.alternatives()), (0, vec![word.stems()]));
    }

    #[test]
    fn the_stems_of_prefixes_are_bounded() {
        let words: Vec<String> = (0..99).map(|number| format!("word{number}")).collect();
        for prefixes in [1, 3, 20] {
            let all: Vec<_> = (0..prefixes).map(|number| (format!("pre{number}"), words.clone())).collect();
            let question = Question::with_prefixes("", &all);
            assert_eq!(question.words().count(), prefixes);
            assert!(question.alternatives().concat().len() <= WORDS);
        }
    }

    #[test]
    fn speakers_match_by_part_of_their_name_and_users_by_the_first_person() {
        let question = Question::new("What did Ana say to me?", now());
        assert!(question.refers_to_speaker_of(&message_by(Some("Ana Pérez"), Role::Assistant)));
        assert!(!question.refers_to_speaker_of(&message_by(Some("Ben"), Role::User)));
        assert!(question.refers_to_speaker_of(&message_by(None, Role::User)));
        assert!(!question.refers_to_speaker_of(&message_by(None, Role::Assistant)));
        let will = Question::new("Will it rain?", now());
        assert!(!will.refers_to_speaker_of(&message_by(Some("Will"), Role::User)));
    }

    #[test]
    fn questions_that_ask_for_a_time_are_recognized() {
        for (question, expected) in [
            ("When did Ana paint?", true),
            ("How long has she lived here?", true),
            ("¿Cuándo fue?", true),
            ("¿Cuántos meses duró?", true),
            ("What did Ana paint?", false),
            ("How does it work?", false),
        ] {
            let question = Question::new(question, now());
            assert_eq!(question.is_answered_by_time_in("It was last week"), expected);
            assert!(!question.is_answered_by_time_in("It was nice"));
        }
    }
}
