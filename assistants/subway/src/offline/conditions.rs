//! Recognises conditions on a trip: without stairs, in one direction.

use std::ops::Range;

use threadkeep::dialogue::{Choice, Mention, Utterance};

/// Phrases that require a trip or a station without stairs.
const STEP_FREE: [&str; 63] = [
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
    "no steps",
    "without steps",
    "cant do stairs",
    "cannot do stairs",
    "cant climb stairs",
    "cannot climb stairs",
    "cant use stairs",
    "cannot use stairs",
    "cant take stairs",
    "elevators needed",
    "elevator needed",
    "need elevators",
    "need an elevator",
    "needs elevators",
    "needs an elevator",
    "need a lift",
    "elevators please",
    "with an elevator",
    "with elevator",
    "w stroller",
    "pushing a stroller",
    "have a stroller",
    "has a stroller",
    "have a wheelchair",
    "uses a wheelchair",
    "in wheelchair",
    "no stair",
    "zero stairs",
    "avoiding the stairs",
    "avoid the stairs",
    "step free access",
    "without stair",
    "fully accessible",
    "handicapped accessible",
    "accessible route",
    "ada accessible",
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

/// Areas that directions are named after.
const BOROUGHS: [&str; 5] = ["manhattan", "brooklyn", "bronx", "queens", "staten island"];

/// Finds requests for a trip without stairs.
pub(super) fn step_free(message: &Utterance) -> Vec<Mention> {
    let found = longest(message, &STEP_FREE);
    found.into_iter().map(|words| Mention::new(words.clone(), vec![Choice::new(true, message.said(words))])).collect()
}

/// Finds directions: "uptown", "Queens-bound", "toward Manhattan".
pub(super) fn directions(message: &Utterance) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    for at in 0..message.words().len() {
        if found.last().is_none_or(|last| last.words.end <= at) {
            found.extend(direction_at(message, at));
        }
    }
    found
}

fn direction_at(message: &Utterance, at: usize) -> Option<Mention> {
    if let Some((word, opposite)) = DIRECTIONS.iter().find(|(word, _)| *word == message.word(at)) {
        return Some(Mention::new(at..at + 1, vec![Choice::new(*word, *word).opposite_of(*opposite, *opposite)]));
    }
    let is_after_cue = matches!(message.word(at), "toward" | "towards" | "into" | "to" | "for");
    let start = if is_after_cue { at + 1 } else { at };
    let start = if message.word(start) == "the" { start + 1 } else { start };
    let length = BOROUGHS.iter().find_map(|borough| {
        let count = borough.split(' ').count();
        borough.split(' ').enumerate().all(|(i, word)| message.word(start + i) == word).then_some(count)
    })?;
    let name = start..start + length;
    let is_bound = message.word(name.end) == "bound";
    if !is_after_cue && !is_bound {
        return None;
    }
    let (name, end) = (message.said(name.clone()), if is_bound { name.end + 1 } else { name.end });
    let away = format!("away from {name}");
    Some(Mention::new(at..end, vec![Choice::new(name, name).opposite_of(away.as_str(), away.as_str())]))
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
