//! The questions in a message, without remarks and courtesies.

use threadkeep::core::text::content_terms;
use threadkeep::dialogue::{Utterance, is_question};

use super::words::{INTERROGATIVES, is_saying};
use crate::evidence::{sentences, spelling};

/// Returns the questions in a message, such as the second sentence of "Only two came. When was it due?". If no sentence is a question, the
/// whole message counts as one.
pub(super) fn questions_of(message: &str) -> String {
    let asks =
        |sentence: &&str| is_question(sentence) || asks_in_clause(sentence) || has_accented_interrogative(sentence);
    let questions: Vec<&str> = sentences(message).filter(asks).map(asked_part).collect();
    if questions.is_empty() { message.to_owned() } else { questions.join(" ") }
}

/// Returns the part of a long, polite question that contains the actual question: "I would be grateful if you could tell me | which cloth they chose".
fn asked_part(sentence: &str) -> &str {
    let sentence = without_reason(sentence);
    let utterance = Utterance::new(sentence);
    let words = utterance.words();
    if words.len() <= MAX_PLAIN_WORDS {
        return sentence;
    }
    let is_asking = |at: &usize| {
        matches!(words[*at].folded.as_str(), "tell" | "know" | "remind" | "wonder" | "wondering" | "remember")
    };
    let is_interrogative = |at: &usize| INTERROGATIVES.contains(&words[*at].folded.as_str());
    let asking = (0..words.len()).rfind(is_asking);
    let start = asking.and_then(|asking| (asking..words.len().min(asking + 5)).find(is_interrogative));
    start.map_or(sentence, |start| &sentence[words[start].span.start..])
}

/// Removes a remark from a question: "what was the hotel called, want to leave a review", "left my goggles, how long are they kept".
fn without_reason(sentence: &str) -> &str {
    let Some((first, rest)) = sentence.split_once(',') else { return sentence };
    let first_word = |text: &str| Utterance::new(text).word(0).to_owned();
    let asks = |text: &str| INTERROGATIVES.contains(&first_word(text).as_str());
    let is_remark = |text: &str| REMARKS.contains(&first_word(text).as_str());
    let (first_asks, rest_asks) = (asks(first), asks(rest));
    match (first_asks, rest_asks) {
        (true, false) if is_remark(rest) && Utterance::new(first).words().len() > 2 => first,
        (false, true) if is_remark_before(first, rest) => rest.trim_start(),
        _ => sentence,
    }
}

/// Whether the first part of a sentence is a remark, and the rest a question that can be understood without it. A condition is part of the
/// question: "if the centrifuge shows E7, what do I do?"
fn is_remark_before(first: &str, rest: &str) -> bool {
    let first = Utterance::new(first);
    let is_condition = matches!(first.word(0), "if" | "si" | "when" | "cuando" | "for" | "in" | "about" | "para");
    let says = first.words().iter().any(|word| is_saying(&word.folded));
    !is_condition && !says && first.words().len() > 3 && content_terms(rest).len() > 2
}

/// Whether a clause after the first is a question: "left my goggles there last week, how long do they keep stuff".
pub(crate) fn asks_in_clause(sentence: &str) -> bool {
    sentence.split([',', ';']).skip(1).any(|clause| {
        let clause = Utterance::new(clause);
        INTERROGATIVES.contains(&clause.word(0))
            && AFTER_INTERROGATIVES.contains(&clause.word(1))
            && clause.words().len() > 2
            || matches!(clause.word(0), "whats" | "wheres" | "whens" | "whos")
    })
}

/// Whether a short text contains a Spanish interrogative with its accent: "y la llave quién la tiene".
pub(crate) fn has_accented_interrogative(text: &str) -> bool {
    const ACCENTED: [&str; 12] = [
        "qué", "quién", "quiénes", "cuándo", "dónde", "cuál", "cuáles", "cuánto", "cuánta", "cuántos", "cuántas",
        "cómo",
    ];
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.len() <= MAX_PLAIN_WORDS && words.iter().any(|word| ACCENTED.contains(word))
}

/// Whether a sentence asks something in any of its parts: "the water bill was how much", "brisket how many lb".
pub(crate) fn asks_within(sentence: &str) -> bool {
    let utterance = Utterance::new(sentence);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let is_pair = |pair: &[&str]| {
        matches!(pair, ["how", "much" | "many" | "long" | "often" | "soon"] | ["what", "time" | "day" | "date"])
    };
    let ends = words.last().is_some_and(|last| {
        matches!(*last, "who" | "when" | "where" | "what" | "which" | "quien" | "cuando" | "donde")
    });
    let starts =
        words.iter().take(MAX_START).any(|word| INTERROGATIVES.contains(word) || matches!(*word, "cuanta" | "cuantas"));
    asks_in_clause(sentence) || ends || starts || words.windows(2).any(is_pair)
}

/// How many words at the start of a sentence are searched for an interrogative: "y quien", "con cuánta antelación".
const MAX_START: usize = 2;

/// Words that follow an interrogative: "how long", "what is".
const AFTER_INTERROGATIVES: [&str; 43] = [
    "is", "are", "was", "were", "do", "does", "did", "can", "could", "will", "would", "should", "has", "have", "had",
    "long", "much", "many", "often", "soon", "far", "time", "day", "date", "number", "es", "son", "era", "esta",
    "estan", "hay", "hago", "hace", "puedo", "tengo", "tiene", "dia", "hora", "fecha", "vale", "cuesta", "me", "lo",
];

/// First words of remarks after a question.
const REMARKS: [&str; 25] = [
    "i", "im", "ive", "want", "need", "because", "cause", "cos", "so", "since", "as", "its", "just", "thinking",
    "trying", "hoping", "asking", "quiero", "necesito", "porque", "es", "pues", "para", "voy", "tengo",
];

/// Questions with at most this many words are not shortened.
const MAX_PLAIN_WORDS: usize = 20;

/// Splits a message that asks several questions at once: "what day is judo and who goes to music?"
pub(crate) fn split_questions(message: &str) -> Vec<String> {
    let text = questions_of(&spelling::corrected(message));
    let utterance = Utterance::new(&*text);
    let words = utterance.words();
    let is_boundary = |at: &usize| {
        matches!(words[*at].folded.as_str(), "and" | "y" | "also")
            && words.get(at + 1).is_some_and(|next| INTERROGATIVES.contains(&next.folded.as_str()))
    };
    let mut parts = Vec::new();
    let mut start = 0;
    for at in (1..words.len()).filter(is_boundary) {
        parts.push(text[start..words[at].span.start].to_owned());
        start = words[at + 1].span.start;
    }
    parts.push(text[start..].to_owned());
    parts
}
