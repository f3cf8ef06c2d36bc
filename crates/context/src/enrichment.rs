//! What a conversation is about, as an application sees it: entities that its extractors find, told in sentences.

use std::sync::Arc;

use threadkeep_core::{Message, Portable};

use crate::quote::one_line;

/// Finds what a message mentions. Applications implement it for their own domain.
///
/// The same message must always give the same mentions.
pub trait Extractor: Portable + std::fmt::Debug {
    /// The mentions of a message, in the order in which it makes them.
    fn extract(&self, message: &Message) -> Vec<Mention>;
}

/// Something that a message mentions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mention {
    /// What kind of thing it is (`lines`, `stations`, `query_types`, …).
    pub kind: String,
    /// Which one, in the application's own spelling.
    pub value: String,
}

impl Mention {
    /// Makes a mention.
    #[must_use]
    pub fn new(kind: impl Into<String>, value: impl Into<String>) -> Self {
        Self { kind: kind.into(), value: value.into() }
    }
}

/// Extractors, and the sentences that tell what they found.
#[derive(Clone, Debug, Default)]
pub struct Enrichment {
    /// Asked in order, for each message.
    pub extractors: Vec<Arc<dyn Extractor>>,
    /// Told in order, each only if there is something to tell.
    pub sentences: Vec<Sentence>,
}

/// A sentence about what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sentence {
    /// All values of a kind, with commas between.
    List {
        /// The kind.
        kind: String,
        /// What stands before the values.
        before: String,
        /// What stands after them.
        after: String,
    },
    /// A text that is told when a value was mentioned.
    When {
        /// The kind.
        kind: String,
        /// The value.
        value: String,
        /// The text.
        text: String,
    },
}

impl Sentence {
    /// Makes a sentence that lists the values of a kind.
    #[must_use]
    pub fn list(kind: impl Into<String>, before: impl Into<String>, after: impl Into<String>) -> Self {
        Self::List { kind: kind.into(), before: before.into(), after: after.into() }
    }

    /// Makes a sentence that is told when a value was mentioned.
    #[must_use]
    pub fn when(kind: impl Into<String>, value: impl Into<String>, text: impl Into<String>) -> Self {
        Self::When { kind: kind.into(), value: value.into(), text: text.into() }
    }

    fn tell(&self, mentions: &[Mention]) -> Option<String> {
        match self {
            Self::List { kind, before, after } => {
                let values = mentions.iter().filter(|mention| mention.kind == *kind);
                let values: Vec<String> = values.map(|mention| one_line(&mention.value)).collect();
                (!values.is_empty()).then(|| format!("{before}{}{after}", values.join(", ")))
            }
            Self::When { kind, value, text } => {
                let is_mentioned = mentions.iter().any(|mention| mention.kind == *kind && mention.value == *value);
                is_mentioned.then(|| text.clone())
            }
        }
    }
}

/// Collects what messages mention, each once, in the order of first mention.
#[must_use]
pub fn collect(messages: &[Message], extractors: &[Arc<dyn Extractor>]) -> Vec<Mention> {
    let mut mentions = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for message in messages {
        for mention in extractors.iter().flat_map(|extractor| extractor.extract(message)) {
            if seen.insert(mention.clone()) {
                mentions.push(mention);
            }
        }
    }
    mentions
}

/// Appends to a prompt what the sentences tell, a blank line before each. Nothing to tell leaves it unchanged.
#[must_use]
pub fn enrich(base: &str, mentions: &[Mention], sentences: &[Sentence]) -> String {
    let mut enriched = base.to_owned();
    for told in sentences.iter().filter_map(|sentence| sentence.tell(mentions)) {
        enriched.push_str("\n\n");
        enriched.push_str(&told);
    }
    enriched
}

/// The sentences of an assistant for travellers: over the kinds `lines`, `stations` and `query_types`.
#[must_use]
pub fn travel_sentences() -> Vec<Sentence> {
    vec![
        Sentence::list("lines", "Previous conversation mentioned: ", " lines."),
        Sentence::list("stations", "User has asked about: ", " stations."),
        Sentence::when("query_types", "status", "User is interested in service status information."),
    ]
}

/// The agents that wrote the last messages that have one, oldest first, repeats kept.
#[must_use]
pub fn recent_agents(messages: &[Message], at_most: usize) -> Vec<&str> {
    let agents = messages.iter().rev().filter_map(|message| message.content.agent.as_deref());
    let mut agents: Vec<&str> = agents.take(at_most).collect();
    agents.reverse();
    agents
}
