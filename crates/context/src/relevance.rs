//! How much a message bears on a question, in whole numbers, so that it is the same on every machine.

use std::collections::BTreeMap;

use threadkeep_core::{Message, Part, Role, text};

use crate::summary::is_personal;

/// What a user says about themselves is worth this much without a word in common with the question.
const PERSONAL: u64 = 500;

/// Scores each message for a question: for every term that they share, the rarer among these messages the more.
pub(crate) fn scores(question: &str, history: &[Message]) -> Vec<u64> {
    let asked = text::distinct_terms(question);
    let terms: Vec<Vec<String>> = history.iter().map(|message| text::distinct_terms(&words(message))).collect();
    let mut frequencies: BTreeMap<&str, u64> = BTreeMap::new();
    for term in terms.iter().flatten() {
        *frequencies.entry(term).or_default() += 1;
    }
    let count = history.len() as u64;
    let weight = |term: &String| {
        let frequency = frequencies.get(term.as_str()).copied().unwrap_or(count);
        // A term of every message tells nothing.
        (count - frequency.min(count)) * 1_000 / frequency.max(1)
    };
    let scored = history.iter().zip(&terms).map(|(message, terms)| {
        let shared: u64 = asked.iter().filter(|term| terms.contains(term)).map(weight).sum();
        // Long messages share words by chance.
        let shared = shared * 100 / (100 + terms.len() as u64);
        let is_personal = message.content.role == Role::User && is_personal(&message.plain_text());
        shared + if is_personal { PERSONAL } else { 0 }
    });
    scored.collect()
}

/// All words of a message, those of tool results included.
pub(crate) fn words(message: &Message) -> String {
    let words = message.content.parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result.output.as_str()),
        part => part.text(),
    });
    words.collect::<Vec<_>>().join("\n")
}
