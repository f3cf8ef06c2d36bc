//! Recognises conditions on a trip: without stairs, with few changes, now.

use std::ops::Range;

use threadkeep::dialogue::{Choice, Mention, Utterance};

use super::words::NOW_WORDS;

/// Phrases that require a trip or a station without stairs.
const STEP_FREE: &[&str] = &[
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
    "with lifts",
    "with a lift",
    "lifts only",
    "lifts all the way",
    "need lifts",
    "needs lifts",
    "elevators all the way",
    "elevators at both ends",
    "lifts at both ends",
    "with a pram",
    "with the pram",
    "with a buggy",
    "with the buggy",
    "with a pushchair",
    "with the stroller",
    "with my stroller",
    "with a walker",
    "use a walker",
    "using a walker",
    "in my wheelchair",
    "with my wheelchair",
    "mobility scooter",
    "got a stroller",
    "got a buggy",
    "got a pram",
    "have a buggy",
    "have a pram",
];

/// Phrases that require a trip with few changes.
const FEW_CHANGES: &[&str] = &[
    "without changing",
    "without having to change",
    "without a change",
    "without any changes",
    "without changes",
    "without any change",
    "without a transfer",
    "without transfers",
    "without any transfers",
    "without transferring",
    "without switching",
    "no changes",
    "no changing",
    "no change",
    "no transfer",
    "no transfers",
    "no transferring",
    "no switching",
    "zero transfers",
    "zero changes",
    "straight there",
    "straight through",
    "goes straight",
    "go straight",
    "going straight",
    "gets me straight",
    "direct",
    "directly",
    "one seat ride",
    "one seat",
    "one train ride",
    "single train",
    "just one train",
    "only one train",
    "through train",
    "non stop",
    "fewest changes",
    "fewest transfers",
    "fewer changes",
    "fewer transfers",
    "least changes",
    "least transfers",
    "least changing",
    "less changes",
    "less changing",
    "less transfers",
    "minimum changes",
    "minimal changes",
    "not change",
    "not to change",
    "not changing",
    "not transfer",
    "not have to change",
    "not have to transfer",
    "dont want to change",
    "dont want to transfer",
    "dont want to switch",
    "hate changing",
    "hate transferring",
    "avoid changing",
    "avoid changes",
    "avoid transfers",
];

/// Finds requests for a trip with few changes. A question about whether a change is needed is not such a request.
#[must_use]
pub fn find_direct(message: &Utterance) -> Vec<Mention> {
    let found = longest(message, FEW_CHANGES).into_iter();
    found.map(|words| Mention::incidental(words.clone(), vec![Choice::new(true, message.said(words))])).collect()
}

/// Finds requests for a trip without stairs.
#[must_use]
pub fn find_step_free(message: &Utterance) -> Vec<Mention> {
    let mut found = longest(message, STEP_FREE);
    let negated: Vec<Range<usize>> = (0..message.words().len()).filter_map(|at| negated_stairs(message, at)).collect();
    found.retain(|words| !negated.iter().any(|other| other.start < words.end && words.start < other.end));
    found.extend(negated);
    found.sort_by_key(|words| words.start);
    found.into_iter().map(|words| Mention::new(words.clone(), vec![Choice::new(true, message.said(words))])).collect()
}

/// Returns the words that rule out stairs, if the word at a position is "stairs": "can not manage any stairs".
fn negated_stairs(message: &Utterance, at: usize) -> Option<Range<usize>> {
    const NEGATIONS: [&str; 13] = [
        "not", "cant", "cannot", "dont", "no", "without", "avoid", "avoiding", "hate", "never", "zero", "wont",
        "couldnt",
    ];
    if !matches!(message.word(at), "stairs" | "stair" | "steps" | "staircases") {
        return None;
    }
    let negation = (at.saturating_sub(4)..at).rev().find(|at| NEGATIONS.contains(&message.word(*at)))?;
    let is_auxiliary = negation > 0 && matches!(message.word(negation - 1), "can" | "do" | "could" | "will");
    Some(negation - usize::from(is_auxiliary)..at + 1)
}

/// Finds words such as "now", which say that a question is about the present.
#[must_use]
pub fn find_now(message: &Utterance) -> Vec<Mention> {
    let is_now = |at: &usize| {
        let word = message.word(*at);
        if at.checked_sub(1).is_some_and(|before| message.word(before) == "not") {
            return false;
        }
        word == "right" && message.word(at + 1) == "now" || NOW_WORDS.contains(&word)
    };
    if let Some(words) = rules_out_live(message) {
        let said = message.said(words.clone());
        return vec![Mention::incidental(words, vec![Choice::new(false, said)])];
    }
    let matches = (0..message.words().len()).filter(is_now);
    matches.map(|at| Mention::incidental(at..at + 1, vec![Choice::new(true, message.word(at))])).collect()
}

/// Finds "no live data needed", "I don't need live times".
fn rules_out_live(message: &Utterance) -> Option<Range<usize>> {
    const NEGATIONS: [&str; 7] = ["no", "without", "not", "dont", "skip", "never", "forget"];
    const BETWEEN: [&str; 7] = ["need", "want", "any", "the", "i", "care", "about"];
    const AFTER: [&str; 14] = [
        "data",
        "times",
        "time",
        "trains",
        "info",
        "arrivals",
        "board",
        "stuff",
        "needed",
        "required",
        "necessary",
        "please",
        "now",
        "updates",
    ];
    let live = (1..message.words().len()).find(|at| matches!(message.word(*at), "live" | "realtime"))?;
    let mut start = live;
    while start > 0 && BETWEEN.contains(&message.word(start - 1)) {
        start -= 1;
    }
    let negation = start.checked_sub(1).filter(|at| NEGATIONS.contains(&message.word(*at)))?;
    let start = if negation > 0 && message.word(negation - 1) == "i" { negation - 1 } else { negation };
    let mut end = live + 1;
    while AFTER.contains(&message.word(end)) {
        end += 1;
    }
    Some(start..end)
}

/// Whether a message asks when the next train leaves: "when is it", "when does the 1 go". "When do I get there" asks for something else.
#[must_use]
pub fn asks_when(message: &Utterance) -> bool {
    const VERBS: [&str; 9] = ["is", "does", "will", "would", "could", "comes", "leaves", "departs", "goes"];
    const OTHER: [&str; 15] = [
        "arrive", "arrives", "arriving", "arrival", "reach", "get", "be", "first", "last", "open", "opens", "close",
        "closes", "must", "should",
    ];
    let is_when =
        |at: usize| message.word(at) == "whens" || message.word(at) == "when" && VERBS.contains(&message.word(at + 1));
    let count = message.words().len();
    (0..count).any(is_when) && !(0..count).any(|at| OTHER.contains(&message.word(at)))
}

/// Whether a message asks for the time of arrival: "what time do I get there", "when would that put me at Barclays".
#[must_use]
pub fn asks_arrival(message: &Utterance) -> bool {
    const OTHER: [&str; 12] =
        ["leave", "leaving", "need", "needs", "should", "must", "have", "next", "first", "last", "train", "by"];
    let count = message.words().len();
    let word = |at: usize| message.word(at);
    let asks = (0..count).any(|at| word(at) == "when" || word(at) == "what" && word(at + 1) == "time");
    let arrives = |at: usize| match word(at) {
        "put" | "puts" | "gets" => word(at + 1) == "me" || word(at + 1) == "us",
        "get" | "be" if matches!(word(at + 1), "there" | "in" | "me" | "us") => true,
        "arrive" => matches!(word(at.saturating_sub(1)), "i" | "we"),
        _ if is_arrival_of_user(message, at) => true,
        _ => false,
    };
    asks && (0..count).any(arrives) && !(0..count).any(|at| OTHER.contains(&word(at)))
}

/// Whether a verb says that the user arrives at a place: "when would I be at Bedford Av".
fn is_arrival_of_user(message: &Utterance, at: usize) -> bool {
    // "What time am I at W 4 St?"
    if matches!(message.word(at), "am" | "are") && matches!(message.word(at + 1), "i" | "we") {
        return matches!(message.word(at + 2), "at" | "in" | "there");
    }
    let follows = match message.word(at) {
        "be" | "arrive" => matches!(message.word(at + 1), "at" | "in"),
        "get" => message.word(at + 1) == "to",
        "reach" => true,
        _ => false,
    };
    let is_user = at > 0 && matches!(message.word(at - 1), "i" | "we");
    let auxiliary = at.checked_sub(2).map_or("", |at| message.word(at));
    follows && is_user && matches!(auxiliary, "would" | "will" | "do" | "could" | "can" | "id" | "ill")
}

/// Finds a question about when the user arrives at a place, which no departure board answers: "so when would I be at Bedford Av?"
#[must_use]
pub fn find_own_arrival(message: &Utterance) -> Vec<Mention> {
    let count = message.words().len();
    let asks =
        (0..count).any(|at| message.word(at) == "when" || message.word(at) == "what" && message.word(at + 1) == "time");
    let at = (0..count).find(|at| is_arrival_of_user(message, *at)).filter(|_| asks && asks_arrival(message));
    at.map(|at| Mention::incidental(at..at + 1, vec![Choice::new(true, message.word(at))])).into_iter().collect()
}

/// Finds phrases, preferring the longest one at each word.
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
