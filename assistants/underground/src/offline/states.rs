//! Questions about how a line or a station is now, whatever else they mention: "is the District running properly down to Wimbledon?"

use threadkeep::dialogue::{Choice, Mention, Utterance};

use super::SPEECH;
use super::speech::find_usual_line;
use crate::lines::line_runs;

/// Words and phrases about the state of a line.
const STATES: &[&str] = &[
    "delay",
    "delays",
    "delayed",
    "problem",
    "problems",
    "trouble",
    "issue",
    "issues",
    "hassle",
    "reason",
    "status",
    "disruption",
    "disruptions",
    "suspended",
    "whats wrong",
    "what is wrong",
    "what went wrong",
    "whats up with",
    "what caused",
    "running properly",
    "running ok",
    "running okay",
    "running fine",
    "running normally",
    "running well",
    "running smoothly",
    "running alright",
    "running all right",
    "running on time",
    "on time",
    "good service",
    "all right",
    "alright",
    "still going",
    "still running",
    "back to normal",
    "holding up",
    "playing up",
    "messed up",
];
/// Phrases about the state of a line in a question.
const ASKED_STATES: &[&str] = &["is ok", "is okay", "is fine", "ok today"];
/// Words of questions about trains, trips, other days and other matters.
const OTHER: &[&str] = &[
    "next",
    "when",
    "whens",
    "long",
    "stop",
    "stops",
    "first",
    "last",
    "route",
    "get",
    "change",
    "free",
    "lift",
    "lifts",
    "avoid",
    "avoiding",
    "without",
    "usually",
    "often",
    "faster",
    "quicker",
    "ticket",
    "card",
    "refund",
    "lost",
    "take",
    "tomorrow",
    "weekend",
    "saturday",
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "week",
    "planned",
    "strike",
    "works",
    "later",
    "tonight",
    "night",
    "many",
    "accessible",
    "instead",
    "which",
    "escalator",
    "through",
];
/// Words about trouble at a station.
const TROUBLE: &[&str] =
    &["trouble", "problem", "problems", "issue", "issues", "wrong", "disruption", "disruptions", "hassle"];

/// Finds the words that ask about the state of a line that the message names.
pub(super) fn find_states(message: &Utterance) -> Vec<Mention> {
    let runs = line_runs(message);
    if !find_weekend(message).is_empty() {
        return vec![mention(message, 1)];
    }
    if has(message, OTHER) || runs.is_empty() && find_usual_line(message).is_empty() {
        return Vec::new();
    }
    // "Ok, the Central is fine" allows the line again.
    let asked: &[&str] = if message.text().contains('?') { ASKED_STATES } else { &[] };
    let named = STATES.iter().chain(asked).filter_map(|phrase| position(message, phrase)).min();
    let found = named.or_else(|| how_is(message)).or_else(|| is_good(message)).or_else(|| today(message));
    found.map(|at| mention(message, at)).into_iter().collect()
}

/// Returns the position of the adjective in "is the DLR fine", "is the Central any good".
fn is_good(message: &Utterance) -> Option<usize> {
    const ADJECTIVES: [&str; 14] = [
        "ok",
        "okay",
        "fine",
        "good",
        "bad",
        "alright",
        "running",
        "working",
        "down",
        "up",
        "normal",
        "clear",
        "shut",
        "disrupted",
    ];
    line_runs(message).iter().find_map(|run| {
        let article = run.words.start.checked_sub(1).filter(|at| message.word(*at) == "the");
        let verb = article.unwrap_or(run.words.start).checked_sub(1)?;
        let mut at = run.words.end;
        while matches!(message.word(at), "all" | "any" | "still" | "even" | "trains" | "running" | "working") {
            at += 1;
        }
        let at = if ADJECTIVES.contains(&message.word(at)) { at } else { at.checked_sub(1)? };
        let ends = matches!(
            message.word(at + 1),
            "" | "now" | "today" | "atm" | "then" | "right" | "please" | "or" | "at" | "this"
        );
        (matches!(message.word(verb), "is" | "are") && ADJECTIVES.contains(&message.word(at)) && ends).then_some(at)
    })
}

/// Returns the position of "today" in "District line today?"
fn today(message: &Utterance) -> Option<usize> {
    let runs = line_runs(message);
    let is_before =
        |at: usize| matches!(message.word(at), "the" | "and" | "ok" | "so" | "what" | "about" | "how" | "hi" | "hey");
    let run = runs.first().filter(|run| runs.len() == 1 && (0..run.words.start).all(is_before))?;
    let at = run.words.end;
    let ends = matches!(message.word(at + 1), "" | "please" | "then") && message.word(at) == "today";
    ends.then_some(at)
}

/// Finds "weekend status" before a line, to which the question about a line at the weekend is rewritten.
pub(super) fn find_weekend(message: &Utterance) -> Vec<Mention> {
    let is_asked = message.word(0) == "weekend" && message.word(1) == "status";
    if is_asked && !line_runs(message).is_empty() { vec![mention(message, 0)] } else { Vec::new() }
}

/// Finds the words that ask whether the lines of a trip run as usual: "am I all right from Upminster to Tower Hill?"
pub(super) fn find_trouble(message: &Utterance) -> Vec<Mention> {
    const ASKED: [&str; 19] = [
        "should i be ok",
        "should be ok",
        "am i all right",
        "am i alright",
        "am i ok",
        "are we ok",
        "any trouble",
        "any problems",
        "any delays",
        "affected",
        "bit hit",
        "part hit",
        "disrupted",
        "is it running ok",
        "is that running",
        "is that clear",
        "is that still ok",
        "will i get there",
        "is that ok",
    ];
    let is_trip = SPEECH.find_stations(message).len() > 1 && line_runs(message).is_empty();
    let named = ASKED.iter().filter_map(|phrase| position(message, phrase)).min().filter(|_| is_trip);
    named.map(|at| mention(message, at)).into_iter().collect()
}

/// Returns the position of "how" in "how is the Victoria meanwhile".
fn how_is(message: &Utterance) -> Option<usize> {
    let runs = line_runs(message);
    let (at, mut end) = (0..message.words().len()).find_map(|at| match (message.word(at), message.word(at + 1)) {
        ("hows", _) => Some((at, at + 1)),
        ("how", "is" | "s" | "are") => Some((at, at + 2)),
        _ => None,
    })?;
    while matches!(message.word(end), "the" | "my") {
        end += 1;
    }
    runs.iter().any(|run| run.words.start == end).then_some(at)
}

/// Finds the words that ask about trouble at a station: "and Holborn, any trouble?"
pub(super) fn find_at_station(message: &Utterance) -> Vec<Mention> {
    const OF_TRIPS: &[&str] = &["from", "to", "on", "line", "lines", "train", "trains", "it", "them"];
    if has(message, OTHER) || has(message, OF_TRIPS) || !line_runs(message).is_empty() {
        return Vec::new();
    }
    let named = TROUBLE.iter().filter_map(|word| position(message, word)).min();
    let named = named.filter(|_| {
        SPEECH.find_stations(message).iter().any(|found| found.choices.iter().all(|choice| !choice.hints.is_empty()))
    });
    named.map(|at| mention(message, at)).into_iter().collect()
}

fn has(message: &Utterance, known: &[&str]) -> bool {
    message.words().iter().any(|word| known.contains(&word.folded.as_str()))
}

fn position(message: &Utterance, phrase: &str) -> Option<usize> {
    (0..message.words().len())
        .find(|at| phrase.split(' ').enumerate().all(|(offset, word)| message.word(at + offset) == word))
}

fn mention(message: &Utterance, at: usize) -> Mention {
    Mention::incidental(at..at + 1, vec![Choice::new(true, message.said(at..at + 1))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_the_state_of_a_line_are_found() {
        for (text, expected) in [
            ("is the district running properly down to wimbledon from earls court", true),
            ("and the windrush reason?", true),
            ("hows the victoria meanwhile, my sister is asking", true),
            ("what is wrong with mine", true),
            ("is the jubilee still going", true),
            ("and the windrush is ok?", true),
            ("i need city airport, is the dlr fine", true),
            ("ok Holborn it is. Is the Central good?", true),
            ("District line today?", true),
            ("is the northern line at Bank", false),
            ("ok the windrush is fine", false),
            ("any problems on the central on sunday", false),
            ("next jubilee from Waterloo, is it delayed", false),
            ("how do I get to Bank without the delayed central", false),
            ("any trouble at Holborn", false),
        ] {
            assert_eq!(!find_states(&Utterance::new(text)).is_empty(), expected, "{text}");
        }
        assert_eq!(find_at_station(&Utterance::new("and Holborn, any trouble?")).len(), 1);
        assert!(find_at_station(&Utterance::new("any trouble from Holborn to Bank?")).is_empty());
    }
}
