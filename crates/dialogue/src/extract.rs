use std::collections::HashMap;
use std::ops::Range;

use threadkeep_core::{Portable, Value};

use crate::utterance::{Utterance, folded_words};

/// Finds entities of one kind in a message: stations, lines, directions.
///
/// Implemented for functions that take an [`Utterance`].
pub trait Extractor: Portable {
    /// Returns the mentions in order. Mentions of one kind must not overlap. The whole message is passed, so that the
    /// context of a name can resolve its meaning.
    fn find(&self, utterance: &Utterance) -> Vec<Mention>;
}

impl<F: Portable + Fn(&Utterance) -> Vec<Mention>> Extractor for F {
    fn find(&self, utterance: &Utterance) -> Vec<Mention> {
        self(utterance)
    }
}

/// A mention of an entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Mention {
    /// The range of words.
    pub words: Range<usize>,
    /// The possible meanings, most likely first. The user is asked if there are several.
    pub choices: Vec<Choice>,
    /// Whether the mention need not fill a slot, such as "now" in a question that is about now anyway. The words of
    /// such a mention are not reported as ignored, and the classifier receives the words themselves instead of their
    /// kind.
    pub is_incidental: bool,
    /// Whether the words are a pronoun, such as "there".
    pub(crate) is_pronoun: bool,
}

impl Mention {
    /// Creates a mention with its possible meanings.
    #[must_use]
    pub fn new(words: Range<usize>, choices: Vec<Choice>) -> Self {
        Self { words, choices, is_incidental: false, is_pronoun: false }
    }

    /// Creates a mention that need not fill a slot.
    #[must_use]
    pub fn incidental(words: Range<usize>, choices: Vec<Choice>) -> Self {
        Self { is_incidental: true, ..Self::new(words, choices) }
    }
}

/// An entity that a mention may refer to.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The value for tool arguments.
    pub value: Value,
    /// The name shown to users, distinct among the choices of a mention.
    pub label: String,
    /// Words that select this choice, in addition to those of the label: lines, a borough.
    pub hints: Vec<String>,
    /// The choice that replaces this one if the user says "the other way".
    pub opposite: Option<Box<Choice>>,
    /// The less likely meanings. "The one on Lexington" selects one of them.
    pub others: Vec<Choice>,
    /// Whether the entity is a place to which the user returns, such as home. It can then also mean the start of an
    /// earlier trip.
    pub is_return: bool,
}

impl Choice {
    /// Creates a choice without hints.
    #[must_use]
    pub fn new(value: impl Into<Value>, label: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            label: label.into(),
            hints: Vec::new(),
            opposite: None,
            others: Vec::new(),
            is_return: false,
        }
    }

    /// Sets the choice that replaces this one if the user says "the other way".
    #[must_use]
    pub fn opposite_of(mut self, value: impl Into<Value>, label: impl Into<String>) -> Self {
        let original = Self { opposite: None, ..self.clone() };
        self.opposite = Some(Box::new(Self { opposite: Some(Box::new(original)), ..Self::new(value, label) }));
        self
    }

    /// Sets the less likely meanings.
    #[must_use]
    pub fn preferred_to(mut self, others: impl IntoIterator<Item = Self>) -> Self {
        self.others.extend(others);
        self
    }

    /// Declares that the entity is a place to which the user returns, such as home.
    #[must_use]
    pub fn returning(mut self) -> Self {
        self.is_return = true;
        self
    }

    /// Adds words that select this choice.
    #[must_use]
    pub fn hinted<T: Into<String>>(mut self, hints: impl IntoIterator<Item = T>) -> Self {
        self.hints.extend(hints.into_iter().map(Into::into));
        self
    }
}

/// Finds names from a list, preferring the longest. If several entities share a name, all of them are choices.
#[derive(Clone, Debug, Default)]
pub struct Names {
    choices: Vec<Choice>,
    /// The names by their first word.
    by_first_word: HashMap<String, Vec<Name>>,
}

#[derive(Clone, Debug)]
struct Name {
    words: Vec<String>,
    choices: Vec<usize>,
}

impl Names {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a list of names that are also the values.
    #[must_use]
    pub fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        words.into_iter().fold(Self::new(), |names, word| names.with(Choice::new(word, word), &[]))
    }

    /// Adds an entity under its label and aliases.
    #[must_use]
    pub fn with(mut self, choice: Choice, aliases: &[&str]) -> Self {
        let at = self.choices.len();
        let label = choice.label.clone();
        self.choices.push(choice);
        for name in std::iter::once(label.as_str()).chain(aliases.iter().copied()) {
            self.add(name, at);
        }
        self
    }

    fn add(&mut self, name: &str, choice: usize) {
        let words = folded_words(name);
        let Some(first) = words.first() else { return };
        let names = self.by_first_word.entry(first.clone()).or_default();
        match names.iter_mut().find(|known| known.words == words) {
            Some(known) if known.choices.contains(&choice) => {}
            Some(known) => known.choices.push(choice),
            None => names.push(Name { words, choices: vec![choice] }),
        }
    }
}

impl Extractor for Names {
    fn find(&self, utterance: &Utterance) -> Vec<Mention> {
        let mut mentions = Vec::new();
        let mut at = 0;
        while at < utterance.words().len() {
            let names = self.by_first_word.get(utterance.word(at)).map_or(&[][..], Vec::as_slice);
            let matches_here =
                |name: &&Name| name.words.iter().enumerate().all(|(i, word)| utterance.word(at + i) == word);
            match names.iter().filter(matches_here).max_by_key(|name| name.words.len()) {
                Some(name) => {
                    let choices = name.choices.iter().map(|choice| self.choices[*choice].clone()).collect();
                    mentions.push(Mention::new(at..at + name.words.len(), choices));
                    at += name.words.len();
                }
                None => at += 1,
            }
        }
        mentions
    }
}

/// Finds whole numbers, written in digits or as English words up to twelve.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers;

const NUMBER_WORDS: [&str; 13] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

impl Extractor for Numbers {
    fn find(&self, utterance: &Utterance) -> Vec<Mention> {
        let number = |word: &str| {
            let named = NUMBER_WORDS.iter().position(|name| *name == word).map(|at| at as u64);
            named.or_else(|| word.parse().ok())
        };
        let mention = |at: usize, number: u64| Mention::new(at..at + 1, vec![Choice::new(number, number.to_string())]);
        let words = utterance.words().iter().enumerate();
        words.filter_map(|(at, word)| number(&word.folded).map(|number| mention(at, number))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_matches_and_a_shared_name_returns_all_choices() {
        let names = Names::new()
            .with(Choice::new("u", "Union Square"), &["14th st"])
            .with(Choice::new("w", "14 St on the West Side"), &["14th st"])
            .with(Choice::new("n", "Union"), &[]);
        let utterance = Utterance::new("from union square to 14th St, then Union");
        let found: Vec<_> = names
            .find(&utterance)
            .into_iter()
            .map(|mention| (mention.words, mention.choices.into_iter().map(|choice| choice.value).collect::<Vec<_>>()))
            .collect();
        let value = |text: &str| Value::String(text.to_owned());
        let expected = [(1..3, vec![value("u")]), (4..6, vec![value("u"), value("w")]), (7..8, vec![value("n")])];
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_are_found_in_digits_and_words() {
        let found = Numbers.find(&Utterance::new("two trains in 15 minutes, not 99999999999999999999999"));
        let values: Vec<&Value> = found.iter().map(|mention| &mention.choices[0].value).collect();
        assert_eq!(values, [&Value::from(2), &Value::from(15)]);
    }
}
