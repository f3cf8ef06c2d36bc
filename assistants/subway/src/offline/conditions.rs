//! Recognises directions in a message.

use std::ops::Range;

use threadkeep::dialogue::{Choice, Mention, Utterance};
use threadkeep_transit::offline::{away_from, is_train_to};

use super::lines::runs;
use super::speech::SPEECH;

/// Directions on signs, each with its opposite.
const DIRECTIONS: [(&str, &str); 8] = [
    ("inbound", "outbound"),
    ("outbound", "inbound"),
    ("uptown", "downtown"),
    ("downtown", "uptown"),
    ("northbound", "southbound"),
    ("southbound", "northbound"),
    ("eastbound", "westbound"),
    ("westbound", "eastbound"),
];

/// Areas that directions are named after.
const BOROUGHS: [&str; 7] = ["manhattan", "brooklyn", "bronx", "queens", "staten island", "city", "town"];

/// Finds directions: "uptown", "Queens-bound", "toward Manhattan".
pub(super) fn directions(message: &Utterance) -> Vec<Mention> {
    let mut found: Vec<Mention> = bound(message).into_iter().collect();
    for at in 0..message.words().len() {
        if found.last().is_none_or(|last| last.words.end <= at) {
            found.extend(direction_at(message, at));
        }
    }
    found
}

/// Finds "Canarsie bound".
fn bound(message: &Utterance) -> Option<Mention> {
    let lines = runs(message);
    // "A Coney Island F at Bergen"
    let is_line = |at: usize| {
        let is_named = |end: usize| matches!(message.word(end), "at" | "from");
        lines.iter().any(|run| run.words.start == at && is_named(run.words.end))
    };
    let is_direction =
        |at: &usize| matches!(message.word(*at), "bound" | "direction") || is_train_to(message, *at) || is_line(*at);
    let at = (1..message.words().len()).find(is_direction)?;
    // In "at Bowling Green direction uptown", "direction" belongs to the word after it.
    if DIRECTIONS.iter().any(|(word, _)| *word == message.word(at + 1)) {
        return None;
    }
    let stations = SPEECH.find_stations(message);
    let station = stations.iter().find(|mention| mention.words.end == at)?;
    let choice = station.choices.first().filter(|_| station.choices.len() == 1)?;
    let before = station.words.start.checked_sub(1).map_or("", |at| message.word(at));
    if is_line(at) && !matches!(before, "a" | "an" | "the" | "next" | "any") {
        return None;
    }
    let end = if is_line(at) { at } else { at + 1 };
    let towards = Choice { others: Vec::new(), ..choice.clone() };
    let towards = match away_from(&towards) {
        Some(away) => towards.opposite_of(away.value, away.label),
        None => towards,
    };
    Some(Mention::new(station.words.start..end, vec![towards]))
}

/// Finds "going up", if no place follows: "when is a 1 going up?", "the next one going down to my office".
fn up_or_down(message: &Utterance, at: usize) -> Option<Mention> {
    let (word, opposite) = match message.word(at) {
        "up" => ("uptown", "downtown"),
        "down" => ("downtown", "uptown"),
        _ => return None,
    };
    let goes = |at: usize| matches!(message.word(at), "going" | "goes" | "heading" | "headed" | "train" | "trains");
    let is_person =
        || message.word(at + 1) == "to" && matches!(message.word(at + 2), "my" | "her" | "his" | "our" | "their");
    let is_last = message.word(at + 1).is_empty() || message.words()[at].ends_a_sentence();
    // "Next 1 down from Columbia", "the next shuttle up?"
    let is_after_line = || runs(message).iter().any(|run| run.words.end == at);
    let starts = || matches!(message.word(at + 1), "from" | "at" | "there" | "here" | "please");
    let is_direction = at > 0 && (goes(at - 1) && (is_last || is_person()) || (is_last || starts()) && is_after_line());
    is_direction.then(|| Mention::new(at..at + 1, vec![Choice::new(word, word).opposite_of(opposite, opposite)]))
}

/// Finds "first" in "the first 2 up from there", which asks for the next train. The first train of a day is asked about otherwise.
pub(super) fn first_of_line(message: &Utterance) -> Vec<Mention> {
    const OF_DAYS: [&str; 14] = [
        "morning", "tomorrow", "last", "day", "sunday", "saturday", "weekend", "weekends", "night", "am", "stop",
        "does", "earliest", "run",
    ];
    let has = |known: &[&str]| message.words().iter().any(|word| known.contains(&word.folded.as_str()));
    let lines = runs(message);
    let is_first = |at: &usize| {
        message.word(*at) == "first"
            && lines.iter().any(|run| {
                run.words.start == at + 1
                    && matches!(message.word(run.words.end), "up" | "down" | "from" | "there" | "for")
            })
    };
    let at = (0..message.words().len()).find(is_first);
    let at = at.filter(|_| has(&["up", "down", "there", "here", "that"]) && !has(&OF_DAYS));
    let mention = |at: usize| Mention::incidental(at..at + 1, vec![Choice::new(true, "first")]);
    at.map(mention).into_iter().collect()
}

/// Whether a message names only a borough to change the last question: "and Brooklyn?", "Queens then".
fn is_all_that_changes(message: &Utterance, name: &Range<usize>) -> bool {
    const CHANGING: [&str; 7] = ["and", "n", "or", "about", "then", "instead", "rather"];
    const OTHER: [&str; 8] = ["ok", "okay", "so", "what", "how", "the", "please", "pls"];
    let mut rest = (0..message.words().len()).filter(|at| !name.contains(at)).map(|at| message.word(at)).peekable();
    let mut changes = false;
    let is_known = rest.all(|word| {
        changes |= CHANGING.contains(&word);
        CHANGING.contains(&word) || OTHER.contains(&word)
    });
    is_known && changes && !matches!(message.word(name.start), "city" | "town")
}

/// Finds the first line in a message that names only lines with a direction, or to look them up again, which asks for the next trains
/// whatever was asked before: "the R or the W, same place, uptown", "try the N at Ditmars again", "is the L back?".
pub(super) fn only_a_board(message: &Utterance) -> Vec<Mention> {
    const OTHER: [&str; 40] = [
        "and", "n", "ok", "okay", "so", "then", "what", "about", "how", "the", "a", "an", "or", "from", "at", "there",
        "here", "this", "that", "same", "place", "station", "stop", "instead", "please", "pls", "now", "next", "any",
        "again", "try", "check", "retry", "once", "more", "line", "train", "trains", "back", "for",
    ];
    let (lines, count) = (runs(message), message.words().len());
    if lines.is_empty() {
        return Vec::new();
    }
    let (stations, directions) = (SPEECH.find_stations(message), directions(message));
    let is_named = |at: usize| {
        lines.iter().any(|run| run.words.contains(&at))
            || stations.iter().chain(&directions).any(|found| found.words.contains(&at))
    };
    let returns = |at: usize| at == 0 && message.word(at) == "is" && message.word(count - 1) == "back";
    let repeats = (0..count).any(|at| {
        matches!(message.word(at), "again" | "retry") || message.word(at) == "once" && message.word(at + 1) == "more"
    });
    let is_board = (!directions.is_empty() || repeats || returns(0))
        && stations.len() < 2
        && (0..count).all(|at| is_named(at) || OTHER.contains(&message.word(at)) || returns(at));
    let first = lines.first().filter(|_| is_board);
    first.map(|run| Mention::incidental(run.words.clone(), vec![Choice::new(true, "next")])).into_iter().collect()
}

fn direction_at(message: &Utterance, at: usize) -> Option<Mention> {
    if let Some((word, opposite)) = DIRECTIONS.iter().find(|(word, _)| *word == message.word(at)) {
        return Some(Mention::new(at..at + 1, vec![Choice::new(*word, *word).opposite_of(*opposite, *opposite)]));
    }
    if let Some(mention) = up_or_down(message, at) {
        return Some(mention);
    }
    let is_after_cue = matches!(message.word(at), "toward" | "towards" | "into" | "to" | "for");
    let start = if is_after_cue { at + 1 } else { at };
    let start = if message.word(start) == "the" { start + 1 } else { start };
    let length = BOROUGHS.iter().find_map(|borough| {
        let count = borough.split(' ').count();
        borough.split(' ').enumerate().all(|(i, word)| message.word(start + i) == word).then_some(count)
    })?;
    let name = start..start + length;
    // "The next Manhattan train" is a direction; "the Staten Island train" is a line.
    let is_train = matches!(message.word(name.end), "train" | "trains" | "side" | "platform" | "way" | "one" | "ones")
        && (length == 1 || message.word(name.end) == "way");
    let is_bound =
        message.word(name.end) == "bound" || is_train && !matches!(message.word(name.start), "city" | "town");
    // "Marcy, next Manhattan?"
    let is_last = || name.end == message.words().len() && at > 0 && message.word(at - 1) == "next";
    if !is_after_cue && !is_bound && !is_last() && !is_all_that_changes(message, &name) {
        return None;
    }
    // "To the Brooklyn Museum" names a station, not a direction.
    const PARTS: [&str; 14] = [
        "museum",
        "bridge",
        "heights",
        "college",
        "botanic",
        "botanical",
        "navy",
        "library",
        "academy",
        "plaza",
        "zoo",
        "blvd",
        "boulevard",
        "public",
    ];
    if PARTS.contains(&message.word(name.end)) {
        return None;
    }
    // "New York City" and "City Hall" are not directions.
    if message.word(name.start) == "city"
        && (message.word(name.start - 1) == "york" || message.word(name.end) == "hall")
    {
        return None;
    }
    let said = message.word(name.start);
    // "In town" is no direction.
    if said == "town" && !matches!(message.word(at), "into" | "to" | "toward" | "towards") {
        return None;
    }
    let said = if matches!(said, "city" | "town") {
        "manhattan"
    } else if length == 1 {
        said
    } else {
        message.said(name.clone())
    };
    let (name, end) = (said, if is_bound { name.end + 1 } else { name.end });
    let away = format!("away from {name}");
    Some(Mention::new(at..end, vec![Choice::new(name, name).opposite_of(away.as_str(), away.as_str())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_only_ask_for_a_board_are_found() {
        let asks = |text: &str| !only_a_board(&Utterance::new(text)).is_empty();
        for text in ["and the E or the M, same station, downtown?", "check the G at Nassau Av again", "is the Q back?"]
        {
            assert!(asks(text), "{text}");
        }
        for text in ["does the G go to Queens?", "the A or the C to 125th", "is the Q late", "how long on the 6 uptown"]
        {
            assert!(!asks(text), "{text}");
        }
    }

    #[test]
    fn a_borough_alone_is_a_direction_in_a_follow_up() {
        let found = |text: &str| directions(&Utterance::new(text)).len();
        assert_eq!(found("and queens?"), 1);
        assert_eq!(found("what about manhattan instead"), 1);
        assert_eq!(found("queens"), 0);
        assert_eq!(found("and in queens?"), 0);
    }
}
