//! Recognises conditions on a trip: without stairs, in one direction.

use std::ops::Range;

use threadkeep::dialogue::{Choice, Mention, Utterance};

/// Phrases that require a trip or a station without stairs.
const STEP_FREE: [&str; 27] = [
    "no stairs",
    "without stairs",
    "without any stairs",
    "without the stairs",
    "avoiding stairs",
    "avoid stairs",
    "not use stairs",
    "step free",
    "stepfree",
    "wheelchair accessible",
    "wheelchair friendly",
    "in a wheelchair",
    "with a wheelchair",
    "using a wheelchair",
    "by wheelchair",
    "wheelchair",
    "accessible",
    "accessibly",
    "ada",
    "handicap accessible",
    "with a stroller",
    "with stroller",
    "with elevators",
    "elevators only",
    "elevator only",
    "on crutches",
    "stair free",
];

/// Directions on signs, with the word for the opposite.
const DIRECTIONS: [(&str, &str); 6] = [
    ("uptown", "downtown"),
    ("downtown", "uptown"),
    ("northbound", "southbound"),
    ("southbound", "northbound"),
    ("eastbound", "westbound"),
    ("westbound", "eastbound"),
];

/// Finds requests for a trip without stairs.
pub(super) fn step_free(message: &Utterance) -> Vec<Mention> {
    let found = longest(message, &STEP_FREE);
    found.into_iter().map(|words| Mention::new(words.clone(), vec![Choice::new(true, message.said(words))])).collect()
}

/// Finds directions.
pub(super) fn directions(message: &Utterance) -> Vec<Mention> {
    let words = 0..message.words().len();
    let found = words.filter_map(|at| Some((at, DIRECTIONS.iter().find(|(word, _)| *word == message.word(at))?)));
    let mention = |(at, (word, opposite)): (usize, &(&str, &str))| {
        Mention::new(at..at + 1, vec![Choice::new(*word, *word).opposite_of(*opposite, *opposite)])
    };
    found.map(mention).collect()
}

/// Finds phrases, at each word the longest.
fn longest(message: &Utterance, phrases: &[&str]) -> Vec<Range<usize>> {
    let length_at = |at: usize| {
        let lengths = phrases.iter().filter_map(|phrase| {
            let count = phrase.split(' ').count();
            phrase.split(' ').enumerate().all(|(i, word)| message.word(at + i) == word).then_some(count)
        });
        lengths.max()
    };
    let mut found: Vec<Range<usize>> = Vec::new();
    for at in 0..message.words().len() {
        if found.last().is_some_and(|last| last.end > at) {
            continue;
        }
        found.extend(length_at(at).map(|length| at..at + length));
    }
    found
}
