//! Finds words for the first and the last train of a day.

use serde_json::json;
use threadkeep::dialogue::{Choice, Mention, Utterance};

use crate::lines::line_runs;

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

/// Finds "first train", "last one tonight", "the first tomorrow morning". The value is `first` or `last`.
pub(super) fn find_edges(message: &Utterance) -> Vec<Mention> {
    let count = message.words().len();
    let has = |known: &[&str]| message.words().iter().any(|word| known.contains(&word.folded.as_str()));
    if has(&OTHER) || has(&FIRST) && has(&LAST) {
        return Vec::new();
    }
    let runs = line_runs(message);
    let found = (0..count).find_map(|at| {
        let edge = match message.word(at) {
            word if FIRST.contains(&word) => "first",
            word if LAST.contains(&word) => "last",
            _ => return None,
        };
        let next = message.word(at + 1);
        let is_line = runs.iter().any(|run| run.words.start == at + 1);
        // "The latest on the Victoria line" asks for news.
        let is_superlative = matches!(message.word(at), "latest" | "earliest" | "final");
        let is_train = TRAINS.contains(&next) || !is_superlative && (is_line || DAYS.contains(&next) && next != "day");
        // "The last one" can also be one of several answers.
        let is_one = matches!(next, "one" | "ones" | "" | "back" | "from" | "in" | "of") && has(&DAYS);
        (is_train || is_one).then_some((at, edge))
    });
    let mention = found.map(|(at, edge)| Mention::incidental(at..at + 1, vec![Choice::new(json!(edge), edge)]));
    mention.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_trains_are_found() {
        for (text, edge) in [
            ("and the first tmrw morning?", Some("first")),
            ("earliest train tomorrow from here?", Some("first")),
            ("and last tonight, any destination", Some("last")),
            ("last one back from Brixton tonight", Some("last")),
            ("the last victoria line from Brixton", Some("last")),
            ("what is the first stop", None),
            ("how long is the first leg", None),
            ("the last one", None),
            ("what is the latest on the victoria line", None),
            ("first and last train from Bank", None),
        ] {
            let found = find_edges(&Utterance::new(text));
            let value = found.first().and_then(|mention| mention.choices[0].value.as_str());
            assert_eq!(value, edge, "{text}");
        }
    }
}
