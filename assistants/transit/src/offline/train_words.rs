//! Recognises references to a train of the last departure board: "the one in 2 minutes", "the second", "if I miss it", and how long
//! the user needs to the platform.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Mention, Utterance};

use super::Speech;

/// The reference to the train after the one that was reported last.
pub const AFTER: &str = "after";
/// The reference to the train that arrives first.
pub const FIRST_THERE: &str = "first there";

/// Verbs with which a user boards a train.
const BOARDING: [&str; 12] =
    ["catch", "catching", "take", "taking", "get", "getting", "make", "board", "grab", "on", "onto", "ride"];
const ORDINALS: [(&str, u64); 10] = [
    ("first", 1),
    ("1st", 1),
    ("second", 2),
    ("2nd", 2),
    ("third", 3),
    ("3rd", 3),
    ("fourth", 4),
    ("4th", 4),
    ("fifth", 5),
    ("5th", 5),
];
const NUMBERS: [(&str, u64); 14] = [
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("twelve", 12),
    ("fifteen", 15),
    ("twenty", 20),
    ("thirty", 30),
];

/// A reference to a train: where it ends, and its value if it is not the train that was reported last.
struct Reference {
    end: usize,
    /// The words and the value.
    train: Option<(std::ops::Range<usize>, Value)>,
}

fn has(message: &Utterance, known: &[&str]) -> bool {
    message.words().iter().any(|word| known.contains(&word.folded.as_str()))
}

fn mention(message: &Utterance, words: std::ops::Range<usize>, value: Value) -> Mention {
    Mention::incidental(words.clone(), vec![Choice::new(value, message.said(words))])
}

/// Returns the number of minutes that start at a word, and where they end: "8 minutes", "half an hour", "15".
fn duration_at(message: &Utterance, at: usize) -> Option<(u64, usize, bool)> {
    let word = |steps: usize| message.word(at + steps);
    match (word(0), word(1), word(2)) {
        ("half", "an", "hour") => return Some((30, at + 3, true)),
        ("quarter", "of", "an") => return Some((15, at + 4, true)),
        _ => {}
    }
    let named = NUMBERS.iter().find(|(name, _)| *name == word(0)).map(|(_, number)| *number);
    let number = named.or_else(|| word(0).parse().ok()).filter(|number| *number < 180)?;
    let has_unit = is_minutes(word(1));
    Some((number, if has_unit { at + 2 } else { at + 1 }, has_unit))
}

fn is_minutes(word: &str) -> bool {
    matches!(word, "min" | "mins" | "minute" | "minutes")
}

fn is_train_word(word: &str) -> bool {
    matches!(word, "one" | "train")
}

/// Parses a reference to a train of the last board at a word.
fn reference_at(speech: &Speech, message: &Utterance, at: usize) -> Option<Reference> {
    let word = |at: usize| message.word(at);
    let has_article = matches!(word(at), "the" | "that" | "this");
    let start = if has_article { at + 1 } else { at };
    let line = speech.find_lines(message).into_iter().find(|found| found.words.start == start);
    let noun = match &line {
        Some(line) => {
            let end = line.words.end;
            Some(if is_train_word(word(end)) { end + 1 } else { end })
        }
        None if is_train_word(word(start)) => Some(start + 1),
        None => None,
    };
    // "The one in 2 minutes", "the C in 3 minutes"
    if let Some(noun) = noun.filter(|noun| has_article && word(*noun) == "in")
        && let Some((minutes, end, true)) = duration_at(message, noun + 1)
    {
        return Some(Reference { end, train: Some((noun..end, json!({"in": minutes}))) });
    }
    if let Some(noun) = noun.filter(|noun| word(*noun) == "after") {
        let end = (noun + 1..noun + 3).rfind(|at| matches!(word(*at), "that" | "it" | "this" | "one"));
        let end = end.map_or(noun + 1, |end| end + 1);
        let is_end = end == message.words().len() || message.words()[end - 1].ends_a_sentence() || has_article;
        return is_end.then(|| Reference { end, train: Some((noun..end, json!(AFTER))) });
    }
    // "The 8 minute one"
    if let Some((minutes, end, true)) = duration_at(message, start)
        && is_train_word(word(end))
    {
        return Some(Reference { end: end + 1, train: Some((start..end, json!({"in": minutes}))) });
    }
    if let Some((_, number)) = ORDINALS.iter().find(|(name, _)| *name == word(start)) {
        let closes = start + 1 == message.words().len() || message.words()[start].ends_a_sentence();
        let line_follows = speech.find_lines(message).iter().any(|found| found.words.start == start + 1);
        let names_train = is_train_word(word(start + 1)) || line_follows;
        let end = if names_train { start + 2 } else { start + 1 };
        let follows = matches!(word(end), "then" | "instead" | "when" | "what" | "how" | "to" | "at");
        return (closes || names_train || follows)
            .then(|| Reference { end, train: Some((start..start + 1, json!({"nth": number}))) });
    }
    match word(start) {
        "next" if is_train_word(word(start + 1)) => {
            Some(Reference { end: start + 2, train: Some((start..start + 2, json!({"nth": 1}))) })
        }
        "following" | "later" if is_train_word(word(start + 1)) => {
            Some(Reference { end: start + 2, train: Some((start..start + 2, json!(AFTER))) })
        }
        _ if matches!(word(at), "that" | "this") && noun.is_some() => {
            Some(Reference { end: noun.unwrap_or(start + 1), train: None })
        }
        "it" => Some(Reference { end: start + 1, train: None }),
        _ => None,
    }
}

/// Returns the reference after a verb of boarding, and the position of the verb: "if I catch the one in 2 minutes".
fn boarded(speech: &Speech, message: &Utterance) -> Option<(usize, Reference)> {
    const OTHER: [&str; 14] = [
        "wait",
        "change",
        "changing",
        "transfer",
        "connection",
        "connect",
        "switch",
        "or",
        "vs",
        "should",
        "stay",
        "faster",
        "worth",
        "instead",
    ];
    let supposes = has(message, &["if", "suppose", "supposing", "assuming", "say", "when", "whens"])
        || message.text().contains('?') && has(message, &["time", "reach", "arrive", "can", "could", "would"]);
    if !supposes || has(message, &OTHER) {
        return None;
    }
    let verbs = (0..message.words().len()).filter(|at| BOARDING.contains(&message.word(*at)));
    verbs.filter_map(|at| Some((at, reference_at(speech, message, at + 1)?))).find(|(at, reference)| {
        // "When do I get it" names no train.
        reference.train.is_some() || !matches!(message.word(*at), "get" | "make" | "on")
    })
}

/// Whether a word says that a train is missed: "miss", "don't make", "can't catch".
fn is_missing(message: &Utterance, at: usize) -> bool {
    const NEGATIONS: [&str; 8] = ["dont", "cant", "cannot", "didnt", "not", "wont", "couldnt", "never"];
    match message.word(at) {
        "miss" | "missed" => true,
        "make" | "catch" | "get" => {
            let before = |steps: usize| at.checked_sub(steps).map_or("", |at| message.word(at));
            let is_own = (0..at).any(|at| matches!(message.word(at), "i" | "we"));
            NEGATIONS.contains(&before(1)) && is_own && has(message, &["if", "suppose", "say"])
        }
        _ => false,
    }
}

/// Returns the position of "miss" and which train is missed: "if I miss that G", "what if I miss the first one".
fn missed(speech: &Speech, message: &Utterance) -> Option<(usize, Value)> {
    let at = (0..message.words().len()).find(|at| is_missing(message, *at))?;
    let reference = reference_at(speech, message, at + 1);
    let names_line = || {
        let start = if matches!(message.word(at + 1), "the" | "that" | "this" | "my") { at + 2 } else { at + 1 };
        let start = if message.word(start) == "next" { start + 1 } else { start };
        speech.find_lines(message).iter().any(|found| found.words.start == start)
    };
    let nth = reference.as_ref().and_then(|found| found.train.as_ref()).and_then(|(_, train)| train["nth"].as_u64());
    match (nth, reference.is_some() || names_line()) {
        (Some(nth), _) => Some((at, json!({"nth": nth + 1}))),
        (None, true) => Some((at, json!(AFTER))),
        (None, false) => None,
    }
}

/// Returns the reference in a question about when a train reaches a station: "when would that one be at 8 Av".
fn reaches(speech: &Speech, message: &Utterance) -> Option<(usize, Reference)> {
    let count = message.words().len();
    let word = |at: usize| message.word(at);
    let asks = (0..count).find(|at| {
        matches!(word(*at), "when" | "whens") || matches!(word(*at), "what" | "whats") && word(at + 1) == "time"
    })?;
    let is_auxiliary = |word: &str| matches!(word, "is" | "will" | "would" | "does" | "whens" | "should" | "s" | "can");
    let subject = (asks..count.min(asks + 4)).find(|at| is_auxiliary(word(*at)))? + 1;
    let reference = reference_at(speech, message, subject)?;
    let rest = reference.end..count;
    let arrives = |at: usize| matches!(word(at), "get" | "reach" | "arrive" | "be" | "hit" | "make");
    let verb = rest.clone().find(|at| arrives(*at));
    let leaves = ["leave", "leaves", "depart", "go", "from", "next"];
    let places = speech.find_stations(message);
    let names_place = places.iter().any(|found| found.words.start >= reference.end);
    let is_next = word(subject) == "the" && word(subject + 1) == "next" || word(subject) == "next";
    let is_meant = verb.is_some() || matches!(word(reference.end), "at" | "in" | "to") && !is_next;
    let other = rest.into_iter().any(|at| leaves.contains(&word(at)));
    (names_place && is_meant && !other).then_some((asks, reference))
}

/// Returns the position of "which" in a question about which of the next trains arrives first.
fn first_there(speech: &Speech, message: &Utterance) -> Option<usize> {
    const OTHER: [&str; 12] = [
        "route",
        "way",
        "change",
        "changes",
        "transfer",
        "next",
        "stop",
        "stops",
        "last",
        "direction",
        "leaves",
        "comes",
    ];
    let count = message.words().len();
    let at = (0..count).find(|at| matches!(message.word(*at), "which" | "what"))?;
    let arrives = ["get", "gets", "me", "there", "be", "reach", "reaches", "arrive", "arrives", "at"];
    let is_first = has(message, &["first", "sooner", "soonest", "earlier", "earliest"]) && has(message, &arrives);
    let names = !speech.find_stations(message).is_empty();
    (is_first && names && !has(message, &OTHER)).then_some(at)
}

/// Returns how long the user needs to the platform, its words, and whether the message clearly says so.
fn needed(speech: &Speech, message: &Utterance) -> Option<(std::ops::Range<usize>, u64, bool)> {
    const PLACES: [&str; 9] = ["platform", "walk", "station", "catch", "make", "away", "door", "there", "train"];
    let count = message.words().len();
    let word = |at: usize| message.word(at);
    let found = (0..count).filter_map(|at| Some((at, duration_at(message, at)?)));
    let found: Vec<(usize, (u64, usize, bool))> = found.collect();
    let says = |at: usize| {
        let before = |steps: usize| at.checked_sub(steps).map_or("", |at| word(at));
        let needs = matches!(before(1), "need" | "needs" | "takes" | "take" | "have" | "about" | "another");
        let takes_me = matches!((before(2), before(1)), ("takes" | "take" | "took" | "need" | "needs", "me" | "us"));
        let with = matches!((before(2), before(1)), ("with", "the" | "those" | "my" | "that"));
        needs && has(message, &["i", "it", "we", "me", "us"]) || takes_me || with || matches!(before(1), "im" | "am")
    };
    // "And if I hurry and do it in 6?"
    let is_done_in = |at: usize| {
        let before = |steps: usize| at.checked_sub(steps).map_or("", |at| word(at));
        (before(1), before(2)) == ("in", "it") && matches!(before(3), "do" | "make") && has(message, &["i", "we"])
    };
    let is_own = !has(message, &["how", "in", "when", "ride", "save", "late", "wait", "until"]);
    let stated = found.iter().find(|(at, (_, end, has_unit))| {
        (says(*at) && is_own || is_done_in(*at))
            && (*has_unit || *end == count || message.words()[end - 1].ends_a_sentence())
    });
    if let Some((at, (minutes, end, has_unit))) = stated {
        let is_clear = *has_unit && has(message, &PLACES) && speech.find_stations(message).is_empty();
        return Some((*at..*end, *minutes, is_clear));
    }
    // "Half an hour?"
    const LEADING: [&str; 9] = ["and", "ok", "with", "or", "what", "how", "about", "if", "so"];
    let bare = found
        .into_iter()
        .find(|(at, (_, end, has_unit))| *has_unit && *end == count && (0..*at).all(|at| LEADING.contains(&word(at))));
    bare.map(|(at, (minutes, end, _))| (at..end, minutes, false))
}

/// Returns the reference of a message that says nothing else: "and the second one?"
fn bare(speech: &Speech, message: &Utterance) -> Option<Reference> {
    const LEADING: [&str; 12] = ["and", "ok", "so", "what", "whats", "how", "about", "then", "if", "n", "okay", "with"];
    let start = (0..message.words().len()).find(|at| !LEADING.contains(&message.word(*at)))?;
    let reference = reference_at(speech, message, start)?;
    let is_ordinal =
        reference.train.as_ref().is_some_and(|(_, train)| train["nth"].as_u64().is_some_and(|nth| nth > 1));
    (is_ordinal && reference.end == message.words().len()).then_some(reference)
}

/// Joins how long the user needs and which train they can catch then: "I need 6 minutes to walk over there. Which A can I make?"
#[must_use]
pub fn with_minutes_to_platform(speech: &Speech, text: &str) -> Option<String> {
    const ASKING: [&str; 14] =
        ["which", "what", "one", "train", "can", "could", "do", "will", "would", "i", "we", "then", "so", "the"];
    const CATCHING: [&str; 6] = ["make", "catch", "get", "take", "reach", "board"];
    let message = Utterance::new(text);
    let (_, minutes, _) = needed(speech, &message)?;
    let count = message.words().len();
    let which = (1..count).rfind(|at| matches!(message.word(*at), "which" | "what"))?;
    let lines = speech.find_lines(&message);
    let line = lines.iter().find(|line| line.words.start > which);
    let is_line = |at: usize| line.is_some_and(|line| line.words.contains(&at));
    let is_known = |at: usize| {
        let word = message.word(at);
        is_line(at) || ASKING.contains(&word) || CATCHING.contains(&word)
    };
    let catches = (which..count).any(|at| CATCHING.contains(&message.word(at)));
    let starts =
        message.words()[which - 1].ends_a_sentence() || matches!(message.word(which - 1), "so" | "then" | "and");
    let is_alone = speech.find_stations(&message).is_empty() && lines.len() == usize::from(line.is_some());
    (starts && catches && is_alone && (which..count).all(is_known)).then(|| {
        let line = line.map(|line| format!(" for the {}", message.said(line.words.clone()))).unwrap_or_default();
        format!("I need {minutes} minutes to the platform{line}")
    })
}

impl Speech {
    /// Parses a reference to a train of the last board at a word: where it ends, and its value if it is not the train that was reported
    /// last.
    #[must_use]
    pub fn train_reference_at(&self, message: &Utterance, at: usize) -> Option<(usize, Option<Value>)> {
        let reference = reference_at(self, message, at)?;
        Some((reference.end, reference.train.map(|(_, train)| train)))
    }

    /// Finds the train of the last board that a message refers to.
    #[must_use]
    pub fn find_train(&self, message: &Utterance) -> Vec<Mention> {
        if let Some((at, train)) = missed(self, message) {
            return vec![mention(message, at..at + 1, train)];
        }
        if let Some(at) = first_there(self, message) {
            return vec![mention(message, at..at + 1, json!(FIRST_THERE))];
        }
        let found = boarded(self, message).or_else(|| reaches(self, message)).map(|(_, reference)| reference);
        let train = found.or_else(|| bare(self, message)).and_then(|reference| reference.train);
        train.map(|(words, train)| mention(message, words, train)).into_iter().collect()
    }

    /// Finds the minutes that the user needs to the platform.
    #[must_use]
    pub fn find_needed(&self, message: &Utterance) -> Vec<Mention> {
        needed(self, message).map(|(words, minutes, _)| mention(message, words, json!(minutes))).into_iter().collect()
    }

    /// Finds the word with which a message asks about one train of the last board. The value is true if the message clearly does, and false if
    /// it does only after such a question.
    #[must_use]
    pub fn find_train_question(&self, message: &Utterance) -> Vec<Mention> {
        let clear = missed(self, message)
            .map(|(at, _)| at)
            .or_else(|| first_there(self, message))
            .or_else(|| boarded(self, message).map(|(at, _)| at))
            .or_else(|| reaches(self, message).map(|(at, _)| at));
        let minutes = needed(self, message);
        let clear =
            clear.or_else(|| minutes.as_ref().filter(|(.., is_clear)| *is_clear).map(|(words, ..)| words.start));
        let unclear = minutes.map(|(words, ..)| words.start).or_else(|| bare(self, message).map(|found| found.end - 1));
        match (clear, unclear) {
            (Some(at), _) => vec![mention(message, at..at + 1, json!(true))],
            (None, Some(at)) => vec![mention(message, at..at + 1, json!(false))],
            (None, None) => Vec::new(),
        }
    }
}
