//! What to look for: the question, with what it leans on.

use threadkeep_core::text::{Language, fold};
use threadkeep_core::{Message, Role};

/// Characters of earlier questions that are added.
const EARLIER_CHARACTERS: usize = 400;
/// Earlier questions that are added at most.
const EARLIER: usize = 2;

/// What a question begins with that goes on with the one before.
const CONTINUATIONS: [&str; 12] =
    ["and", "or", "but", "also", "then", "so", "y", "o", "pero", "tambien", "entonces", "e"];
/// Words that stand for something said before.
const REFERRING: [&str; 30] = [
    "it", "its", "that", "this", "those", "these", "they", "them", "their", "there", "he", "she", "him", "his", "her",
    "one", "ones", "same", "eso", "esa", "ese", "esto", "esta", "este", "ello", "ella", "ahi", "alli", "mismo",
    "misma",
];

/// Says what to look for: the question, and where it leans on what came before ("And after five years?"), the questions
/// that it leans on.
#[must_use]
pub fn formulate(question: &str, history: &[Message]) -> String {
    let mut query = question.trim().to_owned();
    if !leans(question) {
        return query;
    }
    let said = history.iter().rev().filter(|message| message.content.role == Role::User);
    for message in said.take(EARLIER) {
        let text = message.plain_text();
        query.push(' ');
        query.extend(text.trim().chars().take(EARLIER_CHARACTERS));
        if !leans(&text) {
            break;
        }
    }
    query
}

/// Whether a question cannot be understood by itself.
fn leans(question: &str) -> bool {
    let folded = fold(question);
    let words: Vec<&str> = folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let starts = |beginning: &[&str]| words.starts_with(beginning);
    let continues = words.first().is_some_and(|first| CONTINUATIONS.contains(first))
        || starts(&["what", "about"])
        || starts(&["how", "about"])
        || starts(&["que", "tal"]);
    let says_nothing = |word: &&str| Language::ALL.iter().any(|language| language.is_function_word(word));
    continues || words.iter().any(|word| REFERRING.contains(word)) || words.iter().all(says_nothing)
}
