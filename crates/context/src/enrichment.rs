//! Application-defined notes on the topic of a conversation: extractors find entities, and templates render them as
//! sentences.

use std::sync::Arc;

use threadkeep_core::{Message, Portable};

use crate::quote::one_line;

/// Finds the entities that a message mentions. Implemented by applications for their domain.
///
/// Implementations must be deterministic.
pub trait Extractor: Portable + std::fmt::Debug {
    /// Returns the mentions of a message, in order of appearance.
    fn extract(&self, message: &Message) -> Vec<Mention>;
}

/// An entity that a message mentions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mention {
    /// The kind of entity (`lines`, `stations`, `query_types`, …).
    pub kind: String,
    /// The entity, in the application's canonical spelling.
    pub value: String,
}

impl Mention {
    /// Creates a mention.
    #[must_use]
    pub fn new(kind: impl Into<String>, value: impl Into<String>) -> Self {
        Self { kind: kind.into(), value: value.into() }
    }
}

/// The extractors and sentence templates of an application.
#[derive(Clone, Debug, Default)]
pub struct Enrichment {
    /// The extractors, run in order on each message.
    pub extractors: Vec<Arc<dyn Extractor>>,
    /// The sentences, rendered in order. A sentence without matching mentions is omitted.
    pub sentences: Vec<Sentence>,
}

/// A template for a sentence about mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sentence {
    /// Lists all values of a kind, separated by commas.
    List {
        /// The kind.
        kind: String,
        /// The text before the values.
        before: String,
        /// The text after the values.
        after: String,
    },
    /// A fixed text, included if a message mentions a value.
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
    /// Creates a sentence that lists the values of a kind.
    #[must_use]
    pub fn list(kind: impl Into<String>, before: impl Into<String>, after: impl Into<String>) -> Self {
        Self::List { kind: kind.into(), before: before.into(), after: after.into() }
    }

    /// Creates a sentence that is included if a message mentions a value.
    #[must_use]
    pub fn when(kind: impl Into<String>, value: impl Into<String>, text: impl Into<String>) -> Self {
        Self::When { kind: kind.into(), value: value.into(), text: text.into() }
    }

    fn render(&self, mentions: &[Mention]) -> Option<String> {
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

/// Collects the mentions of messages without duplicates, in the order of first mention.
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

/// Appends the rendered sentences to a prompt, each after a blank line. Returns the prompt unchanged if there are none.
#[must_use]
pub fn enrich(base: &str, mentions: &[Mention], sentences: &[Sentence]) -> String {
    let mut enriched = base.to_owned();
    for sentence in sentences.iter().filter_map(|sentence| sentence.render(mentions)) {
        enriched.push_str("\n\n");
        enriched.push_str(&sentence);
    }
    enriched
}

/// Returns the sentences of a travel assistant, for the kinds `lines`, `stations` and `query_types`.
#[must_use]
pub fn travel_sentences() -> Vec<Sentence> {
    vec![
        Sentence::list("lines", "Previous conversation mentioned: ", " lines."),
        Sentence::list("stations", "User has asked about: ", " stations."),
        Sentence::when("query_types", "status", "User is interested in service status information."),
    ]
}

/// Returns the agents of the last messages that name an agent, oldest first, including repetitions.
#[must_use]
pub fn recent_agents(messages: &[Message], at_most: usize) -> Vec<&str> {
    let agents = messages.iter().rev().filter_map(|message| message.content.agent.as_deref());
    let mut agents: Vec<&str> = agents.take(at_most).collect();
    agents.reverse();
    agents
}
