//! Relevance of messages to a question. Scores are integers, so that they are equal on every platform.

use std::collections::BTreeMap;

use threadkeep_core::{Message, Part, Role, text};

use crate::summary::is_personal;

/// The bonus for statements of users about themselves.
const PERSONAL: u64 = 500;

/// Scores each message by the terms it shares with the question. Terms that are rare among the messages count more.
pub(crate) fn scores(question: &str, history: &[Message]) -> Vec<u64> {
    let question_terms = text::distinct_terms(question);
    let terms: Vec<Vec<String>> = history.iter().map(|message| text::distinct_terms(&text_of(message))).collect();
    let mut frequencies: BTreeMap<&str, u64> = BTreeMap::new();
    for term in terms.iter().flatten() {
        *frequencies.entry(term).or_default() += 1;
    }
    let count = history.len() as u64;
    let weight = |term: &String| {
        let frequency = frequencies.get(term.as_str()).copied().unwrap_or(count);
        // A term that occurs in every message does not discriminate.
        (count - frequency.min(count)) * 1_000 / frequency.max(1)
    };
    let scored = history.iter().zip(&terms).map(|(message, terms)| {
        let shared: u64 = question_terms.iter().filter(|term| terms.contains(term)).map(weight).sum();
        // Long messages share words by chance.
        let shared = shared * 100 / (100 + terms.len() as u64);
        let is_personal = message.content.role == Role::User && is_personal(&message.plain_text());
        shared + if is_personal { PERSONAL } else { 0 }
    });
    scored.collect()
}

/// Returns the text of a message, including tool results.
pub(crate) fn text_of(message: &Message) -> String {
    let texts = message.content.parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result.output.as_str()),
        part => part.text(),
    });
    texts.collect::<Vec<_>>().join("\n")
}
