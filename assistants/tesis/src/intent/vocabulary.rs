//! The words of a message, grouped by what they are about: law, the topic so far, an answer or a source, something else.

use std::collections::HashSet;

use threadkeep::core::text::content_terms;

use super::phrase::Words;
use super::words::{
    self, ANSWER_STEMS, COURTESY, COURTESY_CORE, EVERYDAY, FOLLOW_UP_STEMS, FOLLOW_UP_WORDS, GIVE, NOUNS, ORDINALS,
    is_ordinary,
};
use super::{PastMessage, last_answer};
use crate::answer;
use crate::filters;
use crate::thesaurus;

/// The number of messages whose words belong to the topic.
const TOPIC_MESSAGES: usize = 4;
/// The maximum number of letters of a word that is too short to indicate a topic.
const MAX_SHORT: usize = 3;

/// The words of a message, grouped by what they are about.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    /// Legal terms outside of the topic.
    pub(super) legal: Vec<String>,
    /// Other words outside of the topic that do not belong to talk about sources.
    pub(super) unknown: Vec<String>,
    /// How many of the other words are common in legal matters.
    pub(super) weak: usize,
    /// The number of words of the topic.
    pub(super) topic: usize,
    /// Whether any word concerns law, an answer or a source.
    pub(super) is_about_law: bool,
}

impl Vocabulary {
    /// Returns the number of words outside of the topic.
    pub(super) fn new_words(&self) -> usize {
        self.legal.len() + self.unknown.len()
    }
}

impl Words {
    /// Sorts the words outside of filters by what they are about.
    pub(super) fn vocabulary(&self, history: &[PastMessage]) -> Vocabulary {
        let topic = topic_stems(history);
        let mut vocabulary = Vocabulary::default();
        let all = self.words.join(" ");
        let rest = filters::split(&all).rest;
        vocabulary.is_about_law = rest.split_whitespace().count() < self.words.len() || answer::asks_attribute(&all);
        for (word, stems) in content_terms(&rest) {
            let is_in = |known: &dyn Fn(&str) -> bool| stems.iter().any(|stem| known(stem));
            let is_law = is_in(&words::is_legal_stem);
            let is_of_topic = is_in(&|stem| topic.contains(stem));
            let is_weak = is_in(&words::is_weak_legal_stem)
                || is_in(&thesaurus::has_stem)
                    && !is_ordinary(&word)
                    && !is_follow_up_word(&word)
                    && !EVERYDAY.contains(&word.as_str());
            vocabulary.is_about_law |= is_law
                || is_weak
                || NOUNS.contains(&word.as_str())
                || is_answer_word(&word)
                || is_of_topic && !is_ordinary(&word);
            if is_of_topic {
                vocabulary.topic += usize::from(!is_ordinary(&word) && !is_follow_up_word(&word));
            } else if !(is_follow_up_word(&word) || is_ordinary(&word) || word.chars().all(|c| c.is_ascii_digit())) {
                if is_law {
                    vocabulary.legal.push(word);
                } else if word.len() > MAX_SHORT || is_weak {
                    vocabulary.weak += usize::from(is_weak);
                    vocabulary.unknown.push(word);
                }
            }
        }
        vocabulary
    }
}

/// Returns the stems of the words of the conversation so far, and of related words.
fn topic_stems(history: &[PastMessage]) -> HashSet<String> {
    let recent = &history[history.len().saturating_sub(TOPIC_MESSAGES)..];
    let mut topic: HashSet<String> = recent
        .iter()
        .flat_map(|message| std::iter::once(&message.text).chain(&message.sources))
        .flat_map(|text| content_terms(text))
        .flat_map(|(_, stems)| stems)
        .collect();
    // `pruebas` belongs to the topic of a source that says `acreditar`.
    let sources = last_answer(history).map(|answer| answer.sources.join("\n")).unwrap_or_default();
    topic.extend(thesaurus::all_related(&sources));
    topic
}

/// Whether a word concerns an answer or a source.
pub(super) fn is_answer_word(word: &str) -> bool {
    // `Materialidad` is no `materia`.
    ANSWER_STEMS.iter().any(|stem| word.starts_with(stem)) && !word.starts_with("material")
        || words::without_diminutive(word).is_some_and(|base| is_answer_word(&base))
}

/// Whether a word belongs to talk about sources and answers.
pub(super) fn is_follow_up_word(word: &str) -> bool {
    FOLLOW_UP_WORDS.contains(&word)
        || NOUNS.contains(&word)
        || ORDINALS.contains(&word)
        || GIVE.contains(&word)
        || COURTESY.contains(&word)
        || COURTESY_CORE.contains(&word)
        || FOLLOW_UP_STEMS.iter().any(|stem| word.starts_with(stem))
        || word.len() <= 2
        || words::without_diminutive(word).is_some_and(|base| is_follow_up_word(&base))
}
