//! Finds words for the first and the last train of a day.

use serde_json::json;
use threadkeep::dialogue::{Choice, Mention, Utterance};

use super::Speech;

const FIRST: [&str; 3] = ["first", "1st", "earliest"];
const LAST: [&str; 3] = ["last", "latest", "final"];
/// Words for trains.
const TRAINS: [&str; 8] = ["train", "trains", "tube", "tubes", "service", "services", "departure", "dlr"];
/// Words for a day or a part of it.
const DAYS: [&str; 16] = [
    "tomorrow",
    "tonight",
    "today",
    "morning",
    "night",
    "sunday",
    "sundays",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "saturdays",
    "weekdays",
    "day",
];
/// Words of questions about something else.
const OTHER: [&str; 16] = [
    "stop",
    "stops",
    "status",
    "delayed",
    "cancelled",
    "leg",
    "change",
    "class",
    "minute",
    "updates",
    "week",
    "answer",
    "asked",
    "said",
    "news",
    "update",
];

impl Speech {
    /// Finds "first train", "last one tonight", "the first tomorrow morning". The value is `first` or `last`.
    #[must_use]
    pub fn find_edges(&self, message: &Utterance) -> Vec<Mention> {
        let count = message.words().len();
        let has = |known: &[&str]| message.words().iter().any(|word| known.contains(&word.folded.as_str()));
        if has(&OTHER) || has(&FIRST) && has(&LAST) {
            return Vec::new();
        }
        let runs = (self.line_runs)(message);
        let found = (0..count).find_map(|at| {
            let edge = match message.word(at) {
                word if FIRST.contains(&word) => "first",
                word if LAST.contains(&word) => "last",
                _ => return None,
            };
            let next = message.word(at + 1);
            // "Last night" and "last Sunday" are in the past.
            if edge == "last" && matches!(next, "night" | "week" | "sunday" | "saturday" | "friday" | "monday") {
                return None;
            }
            let is_line = runs.iter().any(|run| run.words.start == at + 1);
            // "The latest on the Victoria line" asks for news.
            let is_superlative = matches!(message.word(at), "latest" | "earliest" | "final");
            let is_train =
                TRAINS.contains(&next) || !is_superlative && (is_line || DAYS.contains(&next) && next != "day");
            // "The last one" can also be one of several answers.
            let is_one = matches!(next, "one" | "ones" | "" | "back" | "from" | "in" | "of") && has(&DAYS);
            (is_train || is_one).then_some((at, edge))
        });
        let mention = found.map(|(at, edge)| Mention::incidental(at..at + 1, vec![Choice::new(json!(edge), edge)]));
        mention.into_iter().collect()
    }

    /// Finds the first and the last trains of a day, also "till when does the shuttle run tonight?", if the message names a day or a part of it.
    #[must_use]
    pub fn find_edges_of_day(&self, message: &Utterance) -> Vec<Mention> {
        let count = message.words().len();
        let has = |known: &[&str]| message.words().iter().any(|word| known.contains(&word.folded.as_str()));
        if !has(&DAYS) {
            return Vec::new();
        }
        let until = (0..count).find(|at| {
            matches!(message.word(*at), "till" | "til" | "until")
                && (message.word(at + 1) == "when" || message.word(at + 1) == "what" && message.word(at + 2) == "time")
        });
        let runs = until.filter(|_| has(&["run", "runs", "running", "go", "going"]));
        let mention = |at: usize| Mention::incidental(at..at + 1, vec![Choice::new(json!("last"), "last")]);
        let found = self.find_edges(message);
        if found.is_empty() { runs.map(mention).into_iter().collect() } else { found }
    }
}
