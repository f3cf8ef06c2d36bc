//! Lines that do not run, according to the message: "if the 7 is out", "the L isn't running, how else can I get there".
//!
//! Whether a line runs is not known here. A trip of a person who says that it does not has to avoid it.

use std::ops::Range;

use threadkeep::dialogue::Utterance;

use super::lines::LineRun;

/// Words before a line whose outage is a condition of the trip.
const CONDITIONS: [&str; 17] = [
    "if",
    "since",
    "because",
    "cause",
    "cos",
    "cuz",
    "as",
    "when",
    "while",
    "with",
    "given",
    "assuming",
    "suppose",
    "supposing",
    "case",
    "seeing",
    "heard",
];
/// Words between a condition and its line: "if that L train", "in case there is no L".
const BEFORE_LINES: [&str; 6] = ["the", "that", "this", "both", "my", "all"];
const VERBS: [&str; 11] = ["is", "are", "s", "was", "were", "be", "being", "went", "goes", "gets", "got"];
const NEGATED_VERBS: [&str; 12] =
    ["isnt", "arent", "aint", "doesnt", "dont", "wasnt", "werent", "not", "cant", "wont", "didnt", "cannot"];
const ADVERBS: [&str; 9] =
    ["all", "still", "currently", "completely", "totally", "apparently", "just", "actually", "even"];
/// States of a line that does not run.
const STATES: [&str; 18] = [
    "down",
    "out",
    "closed",
    "shut",
    "suspended",
    "cancelled",
    "canceled",
    "dead",
    "broken",
    "bust",
    "busted",
    "borked",
    "knackered",
    "unavailable",
    "stuck",
    "off",
    "screwed",
    "buggered",
];
/// What a line that does not run does not do.
const ACTIVITIES: [&str; 8] = ["running", "run", "working", "work", "going", "operating", "available", "up"];
/// The number of further words that make a statement about a line part of a question.
const QUESTION_WORDS: usize = 3;

/// Returns the words that say that a run of lines does not run, from the condition to the state.
pub(super) fn words_of_outage(message: &Utterance, run: &LineRun) -> Option<Range<usize>> {
    let end = end_of_state(message, run.words.end)?;
    let mut start = run.words.start;
    while start > 0 && BEFORE_LINES.contains(&message.word(start - 1)) {
        start -= 1;
    }
    if let Some(condition) = start.checked_sub(1).filter(|at| CONDITIONS.contains(&message.word(*at))) {
        return Some(condition..end);
    }
    // "Is the L down?" and "why is the L down" ask about the line.
    let is_asked = start
        .checked_sub(1)
        .is_some_and(|at| VERBS.contains(&message.word(at)) || NEGATED_VERBS.contains(&message.word(at)));
    let rest = message.words().len() - (end - start);
    (!is_asked && rest >= QUESTION_WORDS && !asks_right_after(message, end)).then_some(start..end)
}

/// Whether the sentence that says so is a question: "the L is down?"
fn asks_right_after(message: &Utterance, end: usize) -> bool {
    let Some(last) = end.checked_sub(1).and_then(|last| message.words().get(last)) else { return false };
    message.text()[last.span.end..].trim_start().starts_with('?')
}

/// Returns where a state ends that begins after the lines: "train is down", "isn't running", "out of service".
fn end_of_state(message: &Utterance, from: usize) -> Option<usize> {
    let mut at = from;
    while matches!(message.word(at), "train" | "trains" | "line" | "lines" | "service") {
        at += 1;
    }
    let before_verb = at;
    while VERBS.contains(&message.word(at)) || ADVERBS.contains(&message.word(at)) {
        at += 1;
    }
    let has_verb = at > before_verb;
    if NEGATED_VERBS.contains(&message.word(at)) {
        at += 1;
        while ADVERBS.contains(&message.word(at)) || message.word(at) == "be" {
            at += 1;
        }
        if message.word(at) == "in" && message.word(at + 1) == "service" {
            return Some(at + 2);
        }
        return ACTIVITIES.contains(&message.word(at)).then_some(at + 1);
    }
    let is_on_strike = message.word(at) == "on" && message.word(at + 1) == "strike";
    if is_on_strike {
        return Some(at + 2);
    }
    // Without a verb only a condition: "with the 7 out"; "the 7 out of Flushing" is a train.
    let is_state = STATES.contains(&message.word(at)) && (has_verb || is_condition_before(message, from));
    if !is_state {
        return None;
    }
    match (message.word(at), message.word(at + 1), message.word(at + 2)) {
        ("out", "of", "service" | "order" | "action" | "commission") => Some(at + 3),
        ("out" | "off", "of", _) => None,
        ("shut" | "closed", "down", _) => Some(at + 2),
        _ => Some(at + 1),
    }
}

fn is_condition_before(message: &Utterance, end_of_lines: usize) -> bool {
    (end_of_lines.saturating_sub(8)..end_of_lines).any(|at| message.word(at) == "with")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words about the line "7".
    fn found(text: &str) -> Option<String> {
        let message = Utterance::new(text);
        let at = message.words().iter().position(|word| word.folded == "7").unwrap();
        let run = LineRun { words: at..at + 1, lines: vec!["7".to_owned()], are_alternatives: false };
        words_of_outage(&message, &run).map(|words| message.said(words).to_owned())
    }

    #[test]
    fn outages_are_conditions_or_reasons_of_a_question() {
        for (text, words) in [
            ("can I get from Court Sq to Times Sq if the 7 is out", "if the 7 is out"),
            ("what if the 7 isn't running?", "if the 7 isn't running"),
            ("the 7 is down, how else can I get there", "the 7 is down"),
            ("with the 7 out of service how do I get to Flushing", "with the 7 out of service"),
            ("heard the 7 train is suspended so how do I get home", "heard the 7 train is suspended"),
            ("since the 7 doesn't run, what now", "since the 7 doesn't run"),
        ] {
            assert_eq!(found(text).as_deref(), Some(words), "{text}");
        }
        for text in [
            "is the 7 down?",
            "why is the 7 not running today",
            "the 7 is down?",
            "how late does the 7 run",
            "next 7 out of Flushing please",
            "the 7 downtown from 74 St please",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
