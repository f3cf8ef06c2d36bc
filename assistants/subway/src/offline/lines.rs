//! Recognises lines in a message: "the next 6", "N or W", "1 vs 2/3".

use std::ops::Range;

use serde_json::json;
use threadkeep::dialogue::{Choice, Mention, Utterance};

use super::words::UNITS;
use crate::system::network;

/// Lines mentioned together.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) words: Range<usize>,
    pub(super) signs: Vec<String>,
    /// Whether they are alternatives, joined by "or" or "vs".
    are_alternatives: bool,
}

/// Words that may join lines of one run.
const JOINING_WORDS: [&str; 9] = ["or", "vs", "versus", "against", "and", "the", "train", "trains", "line"];
/// Words before lines not to use.
const AVOIDING_WORDS: [&str; 10] =
    ["avoiding", "avoid", "without", "not", "no", "except", "skip", "skipping", "minus", "never"];
const ALTERNATIVE_WORDS: [&str; 4] = ["or", "vs", "versus", "against"];
/// Maximum number of words between two lines of one run, as in "the 1 train or the 2".
const MAX_GAP: usize = 4;

/// Finds runs of lines. The value of each mention lists all lines of the message, in order.
pub(super) fn find(message: &Utterance) -> Vec<Mention> {
    mentions(message, &runs(message))
}

/// Finds runs whose lines are alternatives.
pub(super) fn find_rivals(message: &Utterance) -> Vec<Mention> {
    let all = runs(message);
    let mut mentions = mentions(message, &all);
    mentions.retain(|mention| all.iter().any(|run| run.are_alternatives && run.words == mention.words));
    mentions
}

/// Finds runs of lines not to use, with the words that say so: "avoiding the E".
pub(super) fn find_avoided(message: &Utterance) -> Vec<Mention> {
    let found = runs(message).into_iter().filter_map(|run| {
        let mut start = run.words.start;
        while start > 0 && matches!(message.word(start - 1), "the" | "using" | "taking" | "any") {
            start -= 1;
        }
        let cue = start.checked_sub(1).filter(|at| AVOIDING_WORDS.contains(&message.word(*at)))?;
        // "not using" and "but not" are one cue, while "not the E" corrects something.
        let is_correction = message.word(cue) == "not"
            && message.word(cue + 1) != "using"
            && cue.checked_sub(1).map_or("", |at| message.word(at)) != "but";
        let words = cue..run.words.end;
        let label = message.said(words.clone());
        (!is_correction).then(|| Mention::new(words, vec![Choice::new(json!(run.signs), label)]))
    });
    found.collect()
}

fn mentions(message: &Utterance, runs: &[Run]) -> Vec<Mention> {
    let mut all: Vec<&String> = Vec::new();
    for sign in runs.iter().flat_map(|run| &run.signs) {
        if !all.contains(&sign) {
            all.push(sign);
        }
    }
    let mention =
        |run: &Run| Mention::new(run.words.clone(), vec![Choice::new(json!(all), message.said(run.words.clone()))]);
    runs.iter().map(mention).collect()
}

/// Finds all lines in the message, grouped into runs.
pub(super) fn runs(message: &Utterance) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut at = 0;
    while at < message.words().len() {
        let before = runs.last().filter(|run| is_joined(message, run.words.end..at));
        let Some((sign, length)) = line_at(message, at, before.is_some()) else {
            at += 1;
            continue;
        };
        match runs.last_mut().filter(|run| is_joined(message, run.words.end..at)) {
            Some(run) => {
                run.are_alternatives |= (run.words.end..at).any(|at| ALTERNATIVE_WORDS.contains(&message.word(at)));
                run.words.end = at + length;
                run.signs.push(sign);
            }
            None => runs.push(Run { words: at..at + length, signs: vec![sign], are_alternatives: false }),
        }
        at += length;
    }
    runs
}

fn is_joined(message: &Utterance, between: Range<usize>) -> bool {
    between.len() <= MAX_GAP && between.clone().all(|at| JOINING_WORDS.contains(&message.word(at)))
}

/// Returns the line named at a word, and the number of words in its name.
fn line_at(message: &Utterance, at: usize, follows_a_line: bool) -> Option<(String, usize)> {
    let word = message.word(at);
    if word == "staten"
        && message.word(at + 1) == "island"
        && matches!(message.word(at + 2), "rail" | "railway" | "train")
    {
        return Some(("SIR".to_owned(), 3));
    }
    if word == "shuttle" {
        return Some(("S".to_owned(), 1));
    }
    let (name, is_plural) = match word.strip_suffix('s').filter(|name| name.len() == 1) {
        Some(name) if name.chars().all(|c| c.is_ascii_digit()) => (name, true),
        _ => (word, false),
    };
    let sign = network().lines().iter().find(|line| line.name.eq_ignore_ascii_case(name)).map(|line| &line.name)?;
    let is_line = is_plural || follows_a_line && !is_street(message.word(at + 1)) || means_a_line(message, at);
    is_line.then(|| (sign.clone(), 1))
}

/// Whether a number followed by this word is a street or an amount.
fn is_street(next: &str) -> bool {
    matches!(next, "st" | "street" | "av" | "ave" | "avenue" | "avs" | "rd" | "nd" | "th") || UNITS.contains(&next)
}

/// Whether a line's name refers to the line in its context, rather than to a street, a time or an article.
fn means_a_line(message: &Utterance, at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |before| message.word(before));
    let (word, next) = (message.word(at), message.word(at + 1));
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    if is_street(next) || matches!(before, "avenue" | "ave" | "av" | "beach" | "ocean") {
        return false;
    }
    let is_introduced = matches!(
        before,
        "the" | "next" | "this" | "that" | "last" | "uptown" | "downtown" | "bound" | "local" | "express"
    );
    let is_named_train = matches!(next, "train" | "trains" | "line" | "local" | "express");
    match word {
        _ if is_introduced || is_named_train && word != "a" => true,
        "a" => {
            let is_capital = message.said(at..at + 1) == "A";
            let is_article =
                matches!(before, "there" | "take" | "get" | "catch" | "is" | "need" | "want" | "miss" | "as" | "such");
            is_capital && (at > 0 || matches!(next, "train" | "or" | "vs" | "at")) || is_named_train && !is_article
        }
        "s" | "e" | "w" | "n" if is_number(next) => false,
        "sir" => message.said(at..at + 1) == "SIR",
        // In chats, "n" and "r" also stand for "and" and "are".
        "n" | "r" if message.said(at..at + 1) == word => {
            matches!(before, "on" | "take" | "via" | "avoid" | "without") || matches!(next, "or" | "vs")
        }
        _ if is_number(word) => {
            matches!(next, "or" | "vs" | "versus" | "at" | "from" | "in" | "to") && !is_number(before)
                || matches!(before, "or" | "vs" | "versus" | "on" | "via")
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Vec<String>> {
        runs(&Utterance::new(text)).into_iter().map(|run| run.signs).collect()
    }

    #[test]
    fn runs_ignore_streets_times_and_articles() {
        for (text, lines) in [
            ("next uptown 6 at astor", &[&["6"][..]][..]),
            ("is there a train at 7 av", &[]),
            ("the A or the C", &[&["A", "C"]]),
            ("1 vs 2/3 from south ferry", &[&["1", "2", "3"]]),
            ("6 to 96 st or change to the 4", &[&["6"], &["4"]]),
            ("next M in 20 min, 5 minutes from 1 av", &[&["M"]]),
            ("any 4s? when is the SIR", &[&["4"], &["SIR"]]),
            ("the staten island railway", &[&["SIR"]]),
            ("what's 2+2", &[]),
            ("W 4 St to E 149 St", &[]),
            ("n how many stops r there", &[]),
            ("the n or the r", &[&["N", "R"]]),
        ] {
            assert_eq!(found(text), lines, "{text}");
        }
    }
}
