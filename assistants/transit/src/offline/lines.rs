//! Transit lines named in a message: runs of lines that are mentioned together, and lines to avoid.

use std::ops::Range;

use serde_json::json;
use threadkeep::dialogue::{Choice, Mention, Utterance};

use super::Speech;
use super::outage::words_of_outage;

/// Lines mentioned together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineRun {
    /// The words, from the first line to the last.
    pub words: Range<usize>,
    /// The lines, in order.
    pub lines: Vec<String>,
    /// Whether they are alternatives, joined by "or" or "vs".
    pub are_alternatives: bool,
}

/// Words that may join lines of one run.
const JOINING_WORDS: [&str; 9] = ["or", "vs", "versus", "against", "and", "the", "train", "trains", "line"];
/// Words that, with "or", may join two lines: "the 6 or wait for a 4", "the R that's coming or hold out for the Q".
const CHOOSING_WORDS: [&str; 52] = [
    "wait",
    "waiting",
    "for",
    "a",
    "an",
    "take",
    "taking",
    "just",
    "hop",
    "hopping",
    "jump",
    "get",
    "getting",
    "on",
    "onto",
    "catch",
    "hold",
    "out",
    "stay",
    "staying",
    "stick",
    "with",
    "thats",
    "that",
    "is",
    "coming",
    "next",
    "one",
    "go",
    "change",
    "changing",
    "switch",
    "switching",
    "transfer",
    "to",
    "over",
    "ride",
    "riding",
    "there",
    "here",
    "whole",
    "way",
    "all",
    "now",
    "until",
    "comes",
    "first",
    "rather",
    "should",
    "i",
    "better",
    "local",
];
/// Words before lines to avoid.
const AVOIDING_WORDS: [&str; 12] =
    ["avoiding", "avoid", "without", "not", "no", "except", "skip", "skipping", "minus", "never", "forget", "ditch"];
/// Phrases before lines to avoid.
const AVOIDING_PHRASES: [&str; 43] = [
    "dont want",
    "do not want",
    "dont like",
    "dont fancy",
    "rather not use",
    "rather not take",
    "prefer not to use",
    "prefer not to take",
    "dont want to use",
    "dont want to take",
    "not to use",
    "keep me off",
    "keeping me off",
    "keep us off",
    "keep away from",
    "stay away from",
    "staying away from",
    "that isnt",
    "that is not",
    "thats not",
    "which isnt",
    "which is not",
    "that arent",
    "that doesnt use",
    "that does not use",
    "that doesnt involve",
    "that doesnt need",
    "not involving",
    "without needing",
    "keeping off",
    "keep off",
    "staying off",
    "stay off",
    "dodge",
    "dodging",
    "bypass",
    "bypassing",
    "steer clear of",
    "steering clear of",
    "keep clear of",
    "other than",
    "rather than",
    "leaving out",
];
/// Phrases that say to avoid the line under discussion.
pub const AVOIDING_IT: &[&str] = &[
    "avoiding it",
    "avoid it",
    "without it",
    "not using it",
    "not on it",
    "dodge it",
    "dodging it",
    "skip it",
    "skipping it",
    "bypass it",
    "bypassing it",
    "keep off it",
    "keeping off it",
    "stay off it",
    "staying off it",
    "get around it",
    "get round it",
    "go round it",
    "avoid them",
    "without them",
    "without that line",
    "avoid that line",
    "avoiding that line",
    "avoid that one",
    "without that one",
    "how else",
    "another way",
    "some other way",
    "any other way",
    "different way",
    "another route",
    "any other route",
    "different route",
    "keep me off it",
    "keep me off that",
    "keep us off it",
    "stay off that",
    "not that one",
    "off that line",
    "anything but it",
    "anything but that",
];
const ALTERNATIVE_WORDS: [&str; 4] = ["or", "vs", "versus", "against"];
/// Maximum number of words between two lines of one run, as in "the 1 train or the 2".
const MAX_GAP: usize = 4;
/// The same for a choice between two lines.
const MAX_GAP_OF_CHOICE: usize = 10;

impl Speech {
    /// Finds runs of lines. The value of each mention lists all lines of the message, in order.
    #[must_use]
    pub fn find_lines(&self, message: &Utterance) -> Vec<Mention> {
        mentions(message, &(self.line_runs)(message))
    }

    /// Finds runs whose lines are alternatives.
    #[must_use]
    pub fn find_rivals(&self, message: &Utterance) -> Vec<Mention> {
        let all = (self.line_runs)(message);
        let mut mentions = mentions(message, &all);
        mentions.retain(|mention| all.iter().any(|run| run.are_alternatives && run.words == mention.words));
        mentions
    }

    /// Finds runs of lines to avoid, with the words that say so: "avoiding the E", "if the L is down".
    #[must_use]
    pub fn find_avoided(&self, message: &Utterance) -> Vec<Mention> {
        let runs = (self.line_runs)(message);
        let count = runs.len();
        let found = runs.into_iter().filter_map(|run| {
            let mut start = run.words.start;
            while start > 0 && matches!(message.word(start - 1), "the" | "using" | "taking" | "any") {
                start -= 1;
            }
            // "Not on the Central"
            let is_preposition = |at: usize| matches!(message.word(at), "on" | "via" | "by" | "through" | "with");
            let is_negated = |at: usize| matches!(message.word(at), "not" | "never" | "but" | "anything");
            if start > 1 && is_preposition(start - 1) && is_negated(start - 2) {
                start -= 1;
            }
            // "Anything but the N"
            let is_exception = |at: &usize| {
                message.word(*at) == "but"
                    && *at > 0
                    && matches!(message.word(*at - 1), "anything" | "any" | "all" | "everything" | "whatever")
            };
            let word =
                start.checked_sub(1).filter(|at| AVOIDING_WORDS.contains(&message.word(*at)) || is_exception(at));
            let cue = word.or_else(|| start_of_phrase(message, start))?;
            // "not using" and "but not" are one cue, while "the Q, not the E" corrects something.
            let is_correction = message.word(cue) == "not"
                && count > 1
                && !matches!(message.word(cue + 1), "using" | "taking" | "on" | "via" | "by" | "through" | "with")
                && cue.checked_sub(1).map_or("", |at| message.word(at)) != "but";
            let words = cue..run.words.end;
            let label = message.said(words.clone());
            (!is_correction).then(|| Mention::new(words, vec![Choice::new(json!(run.lines), label)]))
        });
        let all = (self.line_runs)(message);
        let not_running = all.iter().filter_map(|run| {
            let words = words_of_outage(message, run)?;
            let label = message.said(words.clone());
            Some(Mention::new(words, vec![Choice::new(json!(run.lines), label)]))
        });
        let allowed = any_line(message).into_iter().chain(allowed_again(message, &all)).chain(with_it(message));
        found.chain(not_running).chain(allowed).collect()
    }
}

/// Returns where a phrase begins that says to avoid what follows it: "steer clear of", up to a position.
fn start_of_phrase(message: &Utterance, end: usize) -> Option<usize> {
    let is_preposition = end > 0 && matches!(message.word(end - 1), "on" | "of");
    let ends = [end, end.saturating_sub(usize::from(is_preposition))];
    AVOIDING_PHRASES.iter().find_map(|phrase| {
        ends.iter().find_map(|end| {
            let start = end.checked_sub(phrase.split(' ').count())?;
            let is_here = phrase.split(' ').enumerate().all(|(offset, word)| message.word(start + offset) == word);
            is_here.then_some(start)
        })
    })
}

/// Finds phrases that allow all lines again: "any line is fine".
fn any_line(message: &Utterance) -> Option<Mention> {
    let words = message.words();
    let at = (0..words.len()).find(|at| {
        matches!(message.word(*at), "any" | "all")
            && matches!(message.word(at + 1), "line" | "lines" | "train" | "trains")
    })?;
    let end = (at + 2..words.len().min(at + 5))
        .find(|end| matches!(message.word(*end), "fine" | "ok" | "okay" | "good" | "works"))?;
    Some(Mention::new(at..end + 1, vec![Choice::new(json!([]), message.said(at..end + 1))]))
}

/// Finds the follow-up "and with it", which allows the avoided lines again.
fn with_it(message: &Utterance) -> Option<Mention> {
    let count = message.words().len();
    let is_match = (2..=4).contains(&count) && message.word(count - 2) == "with" && message.word(count - 1) == "it";
    let words = count.saturating_sub(2)..count;
    is_match.then(|| Mention::new(words.clone(), vec![Choice::new(json!([]), message.said(words))]))
}

/// Finds a line that may be used again: "ok the L is fine".
fn allowed_again(message: &Utterance, runs: &[LineRun]) -> Option<Mention> {
    runs.iter().find_map(|run| {
        let mut verb = run.words.end;
        while matches!(message.word(verb), "train" | "line" | "trains") {
            verb += 1;
        }
        let is_allowed = matches!(message.word(verb), "is" | "are" | "s")
            && matches!(message.word(verb + 1), "fine" | "ok" | "okay" | "allowed" | "alright" | "good");
        // "Is the L ok?" asks about the line.
        let is_asked = matches!(message.word(0), "is" | "are" | "if")
            || message.words().iter().any(|word| matches!(word.folded.as_str(), "sure" | "whether"))
            || message.text().contains('?');
        let words = run.words.start..verb + 2;
        (is_allowed && !is_asked)
            .then(|| Mention::new(words.clone(), vec![Choice::new(json!([]), message.said(words))]))
    })
}

fn mentions(message: &Utterance, runs: &[LineRun]) -> Vec<Mention> {
    let mut all: Vec<&String> = Vec::new();
    for line in runs.iter().flat_map(|run| &run.lines) {
        if !all.contains(&line) {
            all.push(line);
        }
    }
    let mention =
        |run: &LineRun| Mention::new(run.words.clone(), vec![Choice::new(json!(all), message.said(run.words.clone()))]);
    runs.iter().map(mention).collect()
}

/// Groups the lines of a message into runs. `line_at` returns the line named at a word, and the number of words in its
/// name. Its last argument says whether the word may continue a run.
#[must_use]
pub fn group_lines(
    message: &Utterance,
    line_at: impl Fn(&Utterance, usize, bool) -> Option<(String, usize)>,
) -> Vec<LineRun> {
    let mut runs: Vec<LineRun> = Vec::new();
    let mut at = 0;
    while at < message.words().len() {
        let before = runs.last().filter(|run| is_joined(message, run.words.end..at));
        let Some((line, length)) = line_at(message, at, before.is_some()) else {
            at += 1;
            continue;
        };
        match runs.last_mut().filter(|run| is_joined(message, run.words.end..at)) {
            Some(run) => {
                run.are_alternatives |= (run.words.end..at).any(|at| ALTERNATIVE_WORDS.contains(&message.word(at)));
                run.words.end = at + length;
                run.lines.push(line);
            }
            None => runs.push(LineRun { words: at..at + length, lines: vec![line], are_alternatives: false }),
        }
        at += length;
    }
    runs
}

fn is_joined(message: &Utterance, between: Range<usize>) -> bool {
    let joins = |at: usize| JOINING_WORDS.contains(&message.word(at));
    let is_choice = between.clone().any(|at| message.word(at) == "or");
    let chooses = |at: usize| is_choice && CHOOSING_WORDS.contains(&message.word(at));
    let most = if is_choice { MAX_GAP_OF_CHOICE } else { MAX_GAP };
    between.len() <= most && between.clone().all(|at| joins(at) || chooses(at))
}
