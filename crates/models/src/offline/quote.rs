//! Answers that quote what was said or written.

use std::collections::HashSet;

use threadkeep_core::text::{Language, alternatives, indexed_terms};
use threadkeep_core::{ChatMessage, Role};

use super::phrases::{Phrases, fill};
use super::utterance::folded_words;
use crate::Turn;

/// Passages that an answer quotes at most.
const QUOTATIONS: usize = 3;
/// A passage this much worse than the best is not quoted.
const WORTH_OF_BEST: f64 = 0.6;
/// Characters of a passage that are quoted.
const CHARACTERS: usize = 600;

/// Something that was said or written and may answer a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// What stands before the quotation: "You said on 4 May 2026:", "guide.md, line 12:".
    pub origin: String,
    /// The words.
    pub text: String,
}

impl Passage {
    /// Finds what bears on a question, best first: passages that hold at least half of its words, rare words counting
    /// more. A word counts in any form.
    #[must_use]
    pub fn best<'a>(question: &str, passages: &'a [Self]) -> Vec<&'a Self> {
        let words: Vec<Vec<String>> = content_words(question);
        let terms: Vec<HashSet<String>> =
            passages.iter().map(|passage| indexed_terms(&passage.text).into_iter().collect()).collect();
        let holds = |terms: &HashSet<String>, word: &[String]| word.iter().any(|stem| terms.contains(stem));
        let weights: Vec<f64> = words
            .iter()
            .map(|word| {
                let holders = terms.iter().filter(|terms| holds(terms, word)).count();
                (1.0 + passages.len() as f64 / holders.max(1) as f64).ln()
            })
            .collect();
        let mut scored: Vec<(f64, &Self)> = Vec::new();
        for (passage, terms) in passages.iter().zip(&terms) {
            let held: Vec<usize> = (0..words.len()).filter(|at| holds(terms, &words[*at])).collect();
            if !held.is_empty() && held.len() * 2 >= words.len() {
                scored.push((held.iter().map(|at| weights[*at]).sum(), passage));
            }
        }
        // Newer passages come later, and win between equals.
        scored.reverse();
        scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let least = scored.first().map_or(0.0, |(score, _)| score * WORTH_OF_BEST);
        let worthy = scored.into_iter().take_while(|(score, _)| *score >= least).map(|(_, passage)| passage);
        worthy.take(QUOTATIONS).collect()
    }

    fn quote(&self) -> String {
        let text = self.text.trim();
        let text = match text.char_indices().nth(CHARACTERS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        };
        format!("{} “{text}”", self.origin)
    }
}

/// Answers a question by what was said before, and by other passages; keeps in mind what is no question.
pub(super) fn answer_by_quoting(turn: &Turn<'_>, others: Vec<Passage>, phrases: &Phrases) -> String {
    let question = turn.question();
    if !is_question(&question) {
        return phrases.noted.clone();
    }
    let mut passages = said_before(turn, phrases);
    passages.extend(others);
    let best = Passage::best(&question, &passages);
    if best.is_empty() {
        return phrases.nothing_said.clone();
    }
    best.into_iter().map(Passage::quote).collect::<Vec<_>>().join("\n")
}

/// What the user said before, as far as the context shows it; and what was recalled from further back.
fn said_before(turn: &Turn<'_>, phrases: &Phrases) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    for message in turn.earlier() {
        match message.role {
            Role::System => passages.extend(recalled(message, phrases)),
            Role::User => {
                let text = message.plain_text();
                if !is_question(&text) {
                    passages.push(Passage { origin: phrases.you_said.clone(), text });
                }
            }
            Role::Assistant | Role::Tool => {}
        }
    }
    passages
}

/// Reads lines of the form `- INSTANT (ROLE[, AUTHOR]): TEXT`, as a context writes what it recalls; further lines of a
/// text are indented.
fn recalled(message: &ChatMessage, phrases: &Phrases) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let mut continues = false;
    for line in message.plain_text().lines() {
        if let Some((phrase, day, text)) = recalled_line(line, phrases) {
            passages.push(Passage { origin: fill(phrase, &[("day", day)]), text: text.to_owned() });
            continues = true;
        } else if let Some(last) = passages.last_mut().filter(|_| continues && line.starts_with([' ', '\t'])) {
            last.text.push('\n');
            last.text.push_str(line.trim());
        } else {
            continues = false;
        }
    }
    passages.retain(|passage| !is_question(&passage.text));
    passages
}

fn recalled_line<'a>(line: &'a str, phrases: &'a Phrases) -> Option<(&'a str, &'a str, &'a str)> {
    let (instant, rest) = line.strip_prefix("- ")?.split_once(" (")?;
    let (day, _time) = instant.split_once('T')?;
    instant.parse::<threadkeep_core::Timestamp>().ok()?;
    let (speaker, text) = rest.split_once("): ")?;
    let role = speaker.split(',').next()?;
    let phrase = match role {
        "user" => &phrases.you_said_on,
        "assistant" => &phrases.i_said_on,
        _ => return None,
    };
    Some((phrase, day, text))
}

fn content_words(question: &str) -> Vec<Vec<String>> {
    let says_nothing = |word: &str| Language::ALL.iter().any(|language| language.is_function_word(word));
    let words =
        alternatives(question).into_iter().filter(|(word, _)| !says_nothing(word) && !ASKING.contains(&word.as_str()));
    let mut seen = HashSet::new();
    words.filter(|(word, _)| seen.insert(word.clone())).map(|(_, stems)| stems).collect()
}

/// Words that ask and name nothing.
const ASKING: [&str; 10] =
    ["tell", "remind", "say", "said", "know", "remember", "dime", "dije", "recuerdame", "recuerdas"];

/// Words that a question begins with, folded.
const QUESTION_WORDS: [&str; 46] = [
    "what",
    "whats",
    "when",
    "whens",
    "where",
    "wheres",
    "who",
    "whos",
    "whose",
    "whom",
    "which",
    "why",
    "how",
    "do",
    "did",
    "does",
    "is",
    "are",
    "was",
    "were",
    "am",
    "can",
    "could",
    "have",
    "has",
    "had",
    "will",
    "would",
    "should",
    "tell",
    "remind",
    "and",
    "que",
    "cuando",
    "donde",
    "quien",
    "cual",
    "cuales",
    "como",
    "cuanto",
    "cuantos",
    "dime",
    "recuerdame",
    "sabes",
    "find",
    "search",
];

/// Whether a message asks something, in English or Spanish: by its question mark, or by its first word after "please".
#[must_use]
pub fn is_question(text: &str) -> bool {
    let words = folded_words(text);
    let first = words.iter().find(|word| *word != "please").map_or("", String::as_str);
    text.trim_end().ends_with('?') || QUESTION_WORDS.contains(&first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_told_from_a_statement() {
        for question in ["Who has the keys", "keys?", "Please tell me about the tent", "¿Dónde está?", "What's up"] {
            assert!(is_question(question), "{question}");
        }
        for statement in ["I have the keys.", "The tent is blue", ""] {
            assert!(!is_question(statement), "{statement}");
        }
    }
}
