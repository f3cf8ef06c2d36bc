//! Builds the query: the question, with earlier questions that it refers to.

use threadkeep_core::text::{Language, fold};
use threadkeep_core::{Message, Role};

/// Maximum number of characters that are added from each earlier question.
const MAX_EARLIER_CHARACTERS: usize = 400;
/// Maximum number of earlier questions that are added.
const MAX_EARLIER_QUESTIONS: usize = 2;

/// First words of questions that continue the previous question.
const CONTINUATIONS: [&str; 12] =
    ["and", "or", "but", "also", "then", "so", "y", "o", "pero", "tambien", "entonces", "e"];
/// Words that refer to an earlier message.
const REFERRING: [&str; 30] = [
    "it", "its", "that", "this", "those", "these", "they", "them", "their", "there", "he", "she", "him", "his", "her",
    "one", "ones", "same", "eso", "esa", "ese", "esto", "esta", "este", "ello", "ella", "ahi", "alli", "mismo",
    "misma",
];

/// Words that ask for a value and name no topic, as in "what time?".
const VALUES: [&str; 12] =
    ["day", "days", "time", "date", "hour", "much", "dia", "dias", "hora", "fecha", "exactly", "exactamente"];

/// Builds the query for a question. If the question refers to earlier questions ("And after five years?"), they are added.
#[must_use]
pub fn build_query(question: &str, history: &[Message]) -> String {
    let earlier = history.iter().rev().filter(|message| message.content.role == Role::User);
    let referred = referred_questions(question, earlier.map(|message| message.plain_text().into_owned()));
    [vec![question.trim().to_owned()], referred].concat().join(" ")
}

/// Returns the earlier messages of the user, given newest first, that a question refers to. Each is truncated to a few hundred characters.
#[must_use]
pub fn referred_questions(question: &str, earlier: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut referred: Vec<String> = Vec::new();
    if !refers_back(question) {
        return referred;
    }
    for text in earlier.into_iter().take(MAX_EARLIER_QUESTIONS) {
        referred.push(text.trim().chars().take(MAX_EARLIER_CHARACTERS).collect());
        if !refers_back(&text) {
            break;
        }
    }
    referred
}

/// Whether a question cannot be understood without the previous question.
fn refers_back(question: &str) -> bool {
    let folded = fold(question);
    let words: Vec<&str> = folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let starts_with = |beginning: &[&str]| words.starts_with(beginning);
    let continues = words.first().is_some_and(|first| CONTINUATIONS.contains(first))
        || starts_with(&["what", "about"])
        || starts_with(&["how", "about"])
        || starts_with(&["que", "tal"]);
    let is_function_word = |word: &&str| Language::ALL.iter().any(|language| language.is_function_word(word));
    let names_no_topic = |word: &&str| is_function_word(word) || VALUES.contains(word);
    continues || words.iter().any(|word| REFERRING.contains(word)) || words.iter().all(names_no_topic)
}
