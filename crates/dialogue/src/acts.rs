//! Dialogue acts: what a message does in a conversation, independently of its topic.

use std::collections::HashSet;

use threadkeep_core::text::Language;

use crate::classifier::{Example, tokens_of};
use crate::templates::{Section, expand, sections};

/// The name of the class of messages that no intent covers.
pub(crate) const OFF_TOPIC: &str = "off_topic";

/// What a message does, other than to express an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Requests the last answer again.
    Again,
    /// Requests the opposite: "and the other way?".
    Reverse,
    /// Replaces a value or adds one: "what about the D?", "with no stairs".
    Change,
    /// Corrects a value: "no, I meant Court Square".
    Correct,
    /// Requests another alternative: "the other one".
    Other,
    /// Agrees.
    Affirm,
    /// Declines.
    Deny,
    /// Greets.
    Greet,
    /// Thanks, or acknowledges an answer.
    Thank,
    /// Says goodbye.
    Leave,
    /// Asks what the assistant can do.
    Help,
    /// Asks what the assistant is.
    Identity,
    /// Asks for the source of the last answer, or whether it is current.
    Source,
    /// Comments on the answers: "that is wrong".
    Complain,
}

impl Act {
    /// All acts.
    pub const ALL: [Self; 14] = [
        Self::Again,
        Self::Reverse,
        Self::Change,
        Self::Correct,
        Self::Other,
        Self::Affirm,
        Self::Deny,
        Self::Greet,
        Self::Thank,
        Self::Leave,
        Self::Help,
        Self::Identity,
        Self::Source,
        Self::Complain,
    ];

    /// Returns the name of the act's class.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Again => "act:again",
            Self::Reverse => "act:reverse",
            Self::Change => "act:change",
            Self::Correct => "act:correct",
            Self::Other => "act:other",
            Self::Affirm => "act:affirm",
            Self::Deny => "act:deny",
            Self::Greet => "act:greet",
            Self::Thank => "act:thank",
            Self::Leave => "act:leave",
            Self::Help => "act:help",
            Self::Identity => "act:identity",
            Self::Source => "act:source",
            Self::Complain => "act:complain",
        }
    }
}

/// The example messages of the acts.
const PHRASES: &str = include_str!("acts.txt");

/// An example message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExampleMessage {
    class: String,
    text: String,
    /// The index of the phrase line from which the message was expanded.
    line: usize,
}

/// Returns the built-in example messages of the acts, and those of the assistant (`own`). A line with `{any}` is
/// repeated for each kind. A built-in off-topic example is omitted if at least half of its content words also occur in
/// the assistant's examples.
pub(crate) fn examples<'a>(own: impl IntoIterator<Item = (&'a str, &'a str)>, kinds: &[&str]) -> Vec<ExampleMessage> {
    let builtin = sections(PHRASES).expect("a test checks that the built-in phrases are well formed");
    let builtin_count: usize = builtin.iter().map(|section| section.lines.len()).sum();
    let builtin = builtin.iter().flat_map(|Section { class, lines }| lines.iter().map(move |line| (*class, *line)));
    let own: Vec<(&str, &str)> = own.into_iter().collect();
    let own_words: HashSet<String> = own
        .iter()
        .filter(|(class, _)| *class != OFF_TOPIC)
        .flat_map(|(_, phrase)| expand(phrase))
        .flat_map(|message| content_tokens(&message))
        .collect();
    let is_own = |message: &String| {
        let words = content_tokens(message);
        words.iter().filter(|word| own_words.contains(*word)).count() * 2 >= words.len()
    };
    let mut found = Vec::new();
    let own_line = |at: usize| at >= builtin_count;
    for (line, (class, phrase)) in builtin.chain(own.iter().copied()).enumerate() {
        let mut add = |text| found.push(ExampleMessage { class: class.to_owned(), text, line });
        for message in expand(phrase) {
            if class == OFF_TOPIC && !own_line(line) && is_own(&message) {
                continue;
            }
            if message.contains("{any}") {
                kinds.iter().for_each(|kind| add(message.replace("{any}", &format!("{{{kind}}}"))));
            } else {
                add(message);
            }
        }
    }
    found
}

/// Returns the tokens of a message that are neither function words nor kinds.
fn content_tokens(message: &str) -> Vec<String> {
    let is_content = |token: &String| {
        !token.starts_with('{') && !Language::ALL.iter().any(|language| language.is_function_word(token))
    };
    tokens_of(message).into_iter().filter(is_content).collect()
}

/// Trains a classifier on examples. `tokens_of` splits a text, in which kinds are named in braces, into tokens.
pub(crate) fn train(examples: &[ExampleMessage], tokens_of: impl Fn(&str) -> Vec<String>) -> crate::Classifier {
    let mut classes: Vec<String> = Vec::new();
    let examples: Vec<Example> = examples
        .iter()
        .map(|ExampleMessage { class, text, line }| {
            let class = classes.iter().position(|known| known == class).unwrap_or_else(|| {
                classes.push(class.clone());
                classes.len() - 1
            });
            Example { class, line: *line, tokens: tokens_of(text) }
        })
        .collect();
    crate::classifier::train(classes, &examples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_act_has_examples() {
        let examples = examples([], &["station", "line"]);
        for act in Act::ALL {
            assert!(examples.iter().filter(|example| example.class == act.class()).count() >= 8, "{act:?}");
        }
        assert!(examples.iter().any(|example| example.class == "act:change" && example.text == "{line} instead"));
        assert!(examples.iter().all(|example| !example.text.contains("{any}")));
    }
}
