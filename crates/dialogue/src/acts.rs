//! Dialogue acts: what a message does in a conversation, whatever the conversation is about.

use crate::classifier::{Example, Features};
use crate::templates::{Section, expand, sections};

/// The name of the class of messages that no intent covers.
pub(crate) const OFF_TOPIC: &str = "off_topic";

/// What a message does, other than to express an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Requests the last answer once more: "again".
    Again,
    /// Requests the opposite: "and the other way?".
    Reverse,
    /// Replaces or adds something: "what about the D?", "with no stairs".
    Change,
    /// Corrects something: "no, I meant Court Square".
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
    /// Takes leave.
    Leave,
    /// Asks what the assistant can do.
    Help,
    /// Asks what the assistant is.
    Identity,
    /// Asks where the last answer comes from, or whether it is current.
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

/// Returns the class and the text of each example message: those of the acts, and those of an assistant. `{any}` stands for
/// each kind in turn.
pub(crate) fn examples<'a>(own: impl IntoIterator<Item = (&'a str, &'a str)>, kinds: &[&str]) -> Vec<(String, String)> {
    let builtin = sections(PHRASES).expect("the built-in phrases are well formed: a test reads them");
    let builtin = builtin.iter().flat_map(|Section { class, lines }| lines.iter().map(move |line| (*class, *line)));
    let mut found = Vec::new();
    for (class, line) in builtin.chain(own) {
        for message in expand(line) {
            if message.contains("{any}") {
                found.extend(
                    kinds.iter().map(|kind| (class.to_owned(), message.replace("{any}", &format!("{{{kind}}}")))),
                );
            } else {
                found.push((class.to_owned(), message));
            }
        }
    }
    found
}

/// Trains a classifier from classes and texts.
pub(crate) fn train(examples: &[(String, String)]) -> crate::Classifier {
    let mut classes: Vec<String> = Vec::new();
    let examples: Vec<Example> = examples
        .iter()
        .map(|(class, text)| {
            let class = classes.iter().position(|known| known == class).unwrap_or_else(|| {
                classes.push(class.clone());
                classes.len() - 1
            });
            Example { class, features: Features::of_text(text) }
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
            assert!(examples.iter().filter(|(class, _)| class == act.class()).count() >= 8, "{act:?}");
        }
        assert!(examples.contains(&("act:change".to_owned(), "{line} instead".to_owned())));
        assert!(examples.iter().all(|(_, text)| !text.contains("{any}")));
    }
}
