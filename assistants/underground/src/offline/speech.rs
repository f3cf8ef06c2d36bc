//! How riders talk about London's network.

use std::borrow::Cow;

use serde_json::json;
use threadkeep::dialogue::{Choice, Extractor as _, Mention, Utterance};
use threadkeep_transit::offline::{self, BoardTool, Speech, away_from, is_train_to};

use crate::lines::line_runs;
use crate::network::{LONDON, gazetteer, place_choices};

/// The names of London.
pub(crate) const SPEECH: Speech = Speech {
    system: LONDON,
    line_runs,
    exact_names,
    whole_name: |text| Cow::Borrowed(text),
    line_words: &[
        "bakerloo",
        "jubilee",
        "piccadilly",
        "metropolitan",
        "victoria",
        "northern",
        "district",
        "circle",
        "central",
        "elizabeth",
        "hammersmith",
        "waterloo",
        "mildmay",
        "lioness",
        "suffragette",
        "windrush",
        "weaver",
    ],
    directions: find_directions,
    board: BoardTool { name: "get_next_trains", station: "station", direction: "towards" },
    example_station: "Brixton",
};

/// Corrects the spelling of a word.
pub(crate) fn correct(message: &Utterance, at: usize) -> Option<String> {
    SPEECH.correct(message, at)
}

/// Common words and other names that mean a station only where a place is expected.
const COMMON_NAMES: [&str; 16] = [
    "bank",
    "angel",
    "oval",
    "temple",
    "monument",
    "victoria",
    "arsenal",
    "upton",
    "elephant",
    "canary",
    "kew",
    "excel",
    "wapping",
    "reading",
    "the tower",
    "o2",
];
/// Words after which a place is expected.
const PLACE_CUES: [&str; 16] = [
    "from", "to", "at", "in", "near", "via", "for", "towards", "toward", "and", "leaving", "is", "does", "reach",
    "serve", "of",
];

/// Finds names and aliases of stations that are not part of a line's name.
fn exact_names(message: &Utterance) -> Vec<Mention> {
    let runs = line_runs(message);
    let found = gazetteer().find(message).into_iter().filter(|mention| {
        let overlaps =
            runs.iter().any(|run| run.words.start < mention.words.end && mention.words.start < run.words.end);
        !overlaps && is_plausible(message, mention)
    });
    let mentions = found.filter_map(|mention| {
        let text = mention.choices.first()?.value.as_str()?;
        // In "Bank station", the second word belongs to the name.
        let end = mention.words.end;
        let end = if matches!(message.word(end), "station" | "stn") { end + 1 } else { end };
        let choices = place_choices(text);
        (!choices.is_empty()).then(|| Mention::new(mention.words.start..end, choices))
    });
    mentions.collect()
}

/// Whether a name that is also a common word means the station here. In "bank holiday", it does not.
fn is_plausible(message: &Utterance, mention: &Mention) -> bool {
    let text = mention.choices.first().and_then(|choice| choice.value.as_str()).unwrap_or_default().to_lowercase();
    if !COMMON_NAMES.contains(&text.as_str()) {
        return true;
    }
    let before = mention.words.start.checked_sub(1).map_or("", |at| message.word(at));
    let next = message.word(mention.words.end);
    if matches!(next, "holiday" | "holidays" | "account" | "statement" | "manager" | "book" | "books") {
        return false;
    }
    let is_capital = message.said(mention.words.clone()).starts_with(|c: char| c.is_uppercase());
    is_capital || PLACE_CUES.contains(&before) || next == "station" || next == "to" || message.words().len() <= 3
}

/// Directions on platforms, each with its opposite.
const DIRECTIONS: [(&str, &str); 8] = [
    ("northbound", "southbound"),
    ("southbound", "northbound"),
    ("eastbound", "westbound"),
    ("westbound", "eastbound"),
    ("north bound", "south bound"),
    ("south bound", "north bound"),
    ("east bound", "west bound"),
    ("west bound", "east bound"),
];

/// Points of the compass, each with the direction on platforms and its opposite.
const COMPASS: [(&str, &str, &str); 4] = [
    ("north", "northbound", "southbound"),
    ("south", "southbound", "northbound"),
    ("east", "eastbound", "westbound"),
    ("west", "westbound", "eastbound"),
];

/// Whether a point of the compass is the direction of a train: "going north", "next train west from there".
fn is_heading(message: &Utterance, at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |before| message.word(before));
    let is_last = matches!(message.word(at + 1), "" | "from" | "at" | "please" | "now" | "then");
    // "No, north I meant"
    let is_corrected = matches!(message.word(at + 1), "" | "i" | "sorry" | "please" | "instead")
        && matches!(before, "" | "no" | "sorry" | "actually" | "and" | "oops" | "meant" | "mean")
        && message.words().len() <= 5;
    is_corrected
        || is_last
            && matches!(
                before,
                "going" | "heading" | "train" | "trains" | "tube" | "travelling" | "line" | "next" | "headed"
            )
}

/// Finds directions: "northbound", "going south".
pub(super) fn find_directions(message: &Utterance) -> Vec<Mention> {
    let mut found: Vec<Mention> = towards_station(message).into_iter().collect();
    for at in 0..message.words().len() {
        let known = DIRECTIONS
            .iter()
            .find(|(words, _)| words.split(' ').enumerate().all(|(offset, word)| message.word(at + offset) == word));
        if let Some((words, opposite)) = known {
            let (value, other) = (words.replace(' ', ""), opposite.replace(' ', ""));
            let choice = Choice::new(value.as_str(), value.as_str()).opposite_of(other.as_str(), other.as_str());
            found.push(Mention::new(at..at + words.split(' ').count(), vec![choice]));
        } else if let Some((_, bound, opposite)) = COMPASS.iter().find(|(word, ..)| *word == message.word(at))
            && is_heading(message, at)
        {
            found.push(Mention::new(at..at + 1, vec![Choice::new(*bound, *bound).opposite_of(*opposite, *opposite)]));
        }
    }
    found
}

/// Finds "Cockfosters direction", "Morden bound".
fn towards_station(message: &Utterance) -> Option<Mention> {
    let is_direction =
        |at: &usize| matches!(message.word(*at), "direction" | "bound" | "way" | "side") || is_train_to(message, *at);
    let at = (1..message.words().len()).find(is_direction)?;
    let stations = exact_names(message);
    let station = stations.iter().find(|mention| mention.words.end == at)?;
    let choice = station.choices.first().filter(|_| station.choices.len() == 1)?;
    let towards = Choice { others: Vec::new(), ..choice.clone() };
    let towards = match away_from(&towards) {
        Some(away) => towards.opposite_of(away.value, away.label),
        None => towards,
    };
    Some(Mention::new(station.words.start..at + 1, vec![towards]))
}

fn has(message: &Utterance, known: &[&str]) -> bool {
    message.words().iter().any(|word| known.contains(&word.folded.as_str()))
}

/// Finds a question about access to one station, also "can I get out there in the chair?"
pub(super) fn find_access(message: &Utterance) -> Vec<Mention> {
    const AIDS: [&str; 9] =
        ["chair", "wheelchair", "wheels", "buggy", "pram", "pushchair", "scooter", "crutches", "walker"];
    let found = offline::find_access(message);
    if !found.is_empty() || !message.text().contains('?') && !has(message, &["can", "could", "is"]) {
        return found;
    }
    let is_way = |at: usize| {
        matches!(message.word(at), "get" | "getting" | "manage" | "come" | "go")
            && matches!(message.word(at + 1), "in" | "out" | "off" | "up" | "down" | "through" | "around" | "there")
    };
    let aid = (0..message.words().len()).find(|at| AIDS.contains(&message.word(*at)));
    let is_trip = has(message, &["from", "how", "which"]) || names_destination(message);
    let aid = aid.filter(|_| (0..message.words().len()).any(is_way) && !is_trip);
    let mention = |at: usize| Mention::incidental(at..at + 1, vec![Choice::new(true, message.said(at..at + 1))]);
    aid.map(mention).into_iter().collect()
}

/// Whether a message names the place where a trip ends.
fn names_destination(message: &Utterance) -> bool {
    let is_after_to = |found: &Mention| found.words.start > 0 && message.word(found.words.start - 1) == "to";
    gazetteer().find(message).iter().any(is_after_to)
}

/// Finds a question about saved places, also "what is my home station".
pub(super) fn find_recall(message: &Utterance) -> Vec<Mention> {
    const ASKING: [&str; 8] = ["whats", "what", "wheres", "where", "which", "remind", "check", "confirm"];
    let found = offline::find_recall(message);
    let count = message.words().len();
    if !found.is_empty()
        || has(
            message,
            &["to", "from", "get", "next", "train", "trains", "how", "save", "change", "about", "time", "line"],
        )
    {
        return found;
    }
    let place = (1..count).find_map(|at| {
        let key = match message.word(at) {
            "home" => "home station",
            "work" | "office" => "work station",
            _ => return None,
        };
        let is_station = matches!(message.word(at + 1), "" | "station" | "stop" | "stn" | "again" | "now");
        (message.word(at - 1) == "my" && is_station).then_some((at, key))
    });
    let place = place.filter(|(at, _)| (0..*at).any(|before| ASKING.contains(&message.word(before))));
    let mention = |(at, key): (usize, &str)| {
        Mention::incidental(at..at + 1, vec![Choice::new(json!([key]), message.said(at..at + 1))])
    };
    place.map(mention).into_iter().collect()
}

/// Finds a question about the list of a line's stops, also those between the ends of the last trip.
pub(super) fn find_listings(message: &Utterance) -> Vec<Mention> {
    let mut found = SPEECH.find_listings(message);
    if has(message, &["has", "have", "got"]) && has(message, &["it", "they", "line"]) {
        found = found.into_iter().map(of_line).collect();
    }
    let count = message.words().len();
    let is_stop = |at: &usize| matches!(message.word(*at), "stop" | "stops" | "station" | "stations");
    let stop = (0..count).find(is_stop).filter(|_| has(message, &["what", "whats", "which", "list", "name"]));
    let between = stop.and_then(|stop| (stop..count).find(|at| message.word(*at) == "between"));
    let is_pair = |at: usize| {
        matches!(message.word(at), "them" | "those" | "these" | "both")
            || message.word(at) == "the" && message.word(at + 1) == "two"
    };
    match between.filter(|at| found.is_empty() && is_pair(at + 1)) {
        Some(at) => {
            let listing =
                json!({"area": null, "pick": "All", "follows": false, "is_between": true, "step_free": false});
            vec![Mention::incidental(at..at + 1, vec![Choice::new(listing, message.said(at..at + 1))])]
        }
        None => found,
    }
}

/// Whether a question about a list of stops decides for the intent. "How many stations does it have" does, because it is about the
/// whole line, while "how many stops" can be about a ride.
pub(super) fn decides_for_listing(choice: &Choice, follows: bool) -> bool {
    let value = &choice.value;
    let is_bare_count = value["pick"] == "Count" && value["area"].is_null() && value["step_free"] == false;
    let is_of_line = choice.hints.iter().any(|hint| hint == OF_LINE);
    follows || value["follows"] == false && (!is_bare_count || is_of_line)
}

/// The hint of a question about a whole line.
const OF_LINE: &str = "of the whole line";

fn of_line(mut mention: Mention) -> Mention {
    mention.choices = mention.choices.into_iter().map(|choice| choice.hinted([OF_LINE])).collect();
    mention
}

/// Finds the words that ask where two lines meet, also "which of them could I get on the Jubilee at?"
pub(super) fn find_meetings(message: &Utterance) -> Vec<Mention> {
    let found = SPEECH.find_meetings(message);
    let runs = line_runs(message);
    let [run] = &runs[..] else { return found };
    if !found.is_empty() || run.lines.len() != 1 {
        return found;
    }
    let count = message.words().len();
    let is_of = |at: usize| message.word(at) == "of" && matches!(message.word(at + 1), "them" | "those" | "these");
    let boards = |at: usize| {
        matches!(message.word(at), "get" | "catch" | "join" | "board" | "pick" | "hop" | "reach" | "find")
            && at < run.words.start
    };
    let asks = has(message, &["which", "where", "at"]) && (0..count).any(is_of) && (0..count).any(boards);
    let is_only_line = (0..count).all(|at| {
        run.words.contains(&at) || matches!(message.word(at), "and" | "the" | "what" | "about" | "how" | "or" | "line")
    });
    let mention = |follows: bool| {
        let at = run.words.start;
        Mention::incidental(at..at + 1, vec![Choice::new(json!({ "follows": follows }), message.said(at..at + 1))])
    };
    match (asks, is_only_line) {
        (true, _) => vec![mention(false)],
        (_, true) => vec![mention(true)],
        _ => Vec::new(),
    }
}

/// Finds a position, given as latitude and longitude in decimal degrees: "51.5138, -0.0984".
pub(super) fn find_position(message: &Utterance) -> Vec<Mention> {
    let text = message.text();
    let is_number =
        |part: &&str| part.contains('.') && part.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let numbers: Vec<&str> = text
        .split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-')))
        .map(|part| part.trim_end_matches('.'))
        .filter(is_number)
        .collect();
    let parsed: Vec<f64> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    let [latitude, longitude] = parsed[..] else { return Vec::new() };
    let is_near_london = (51.0..52.2).contains(&latitude) && (-1.2..0.7).contains(&longitude);
    let start = text.find(numbers[0]).unwrap_or_default();
    let end = text.rfind(numbers[1]).unwrap_or_default() + numbers[1].len();
    let is_within = |at: &usize| {
        let span = &message.words()[*at].span;
        start <= span.start && span.end <= end
    };
    let words: Vec<usize> = (0..message.words().len()).filter(is_within).collect();
    match (words.first(), words.last()) {
        (Some(first), Some(last)) if is_near_london => {
            let choice = Choice::new(json!([latitude, longitude]), &text[start..end]);
            vec![Mention::new(*first..last + 1, vec![choice])]
        }
        _ => Vec::new(),
    }
}

/// Finds references to the user's usual line.
pub(super) fn find_usual_line(message: &Utterance) -> Vec<Mention> {
    let mut found = Vec::new();
    for at in 0..message.words().len() {
        let word = |offset: usize| message.word(at + offset);
        // "And mine?", "what is wrong with mine"
        let is_mine = word(0) == "mine"
            && (message.words().len() <= 3
                || matches!(message.word(at.wrapping_sub(1)), "with" | "about" | "on" | "is" | "hows"))
            && !has(message, &["stop", "station", "before"]);
        if is_mine {
            let choice = Choice::new(json!({"saved": "usual line"}), message.said(at..at + 1));
            found.push(Mention::new(at..at + 1, vec![choice]));
            continue;
        }
        let is_usual = matches!(word(1), "usual" | "regular" | "normal" | "favourite" | "favorite" | "own");
        let length = match (word(0), is_usual) {
            ("my", true) if matches!(word(2), "line" | "tube" | "train") => 3,
            ("my", false) if matches!(word(1), "line" | "tube") => 2,
            // "My favourite" at the end, as in "How is my favourite?"
            ("my", true) if word(1) != "own" && word(2).is_empty() => 2,
            _ => continue,
        };
        // "My usual line is the Northern" saves it.
        if matches!(message.word(at + length), "is" | "s") && at == 0 {
            continue;
        }
        let words = at..at + length;
        found.push(Mention::new(words.clone(), vec![Choice::new(json!({"saved": "usual line"}), message.said(words))]));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let message = Utterance::new(text);
        SPEECH.find_stations(&message).into_iter().map(|mention| message.said(mention.words).to_owned()).collect()
    }

    // S0.45
    #[test]
    fn stations_are_found_by_the_longest_name() {
        for (text, expected) in [
            ("from Edgware Road to Edgware", &["Edgware Road", "Edgware"][..]),
            ("how do I get from Elephant & Castle to Bank?", &["Elephant & Castle", "Bank"]),
            ("is there a service on bank holiday", &[]),
            ("Hammersmith & City line", &[]),
            ("next Victoria line at Victoria", &["Victoria"]),
            ("Shepherd's Bush Market to Shepherds Bush", &["Shepherd's Bush Market", "Shepherds Bush"]),
            ("from Seven Sisters to Mile End", &["Seven Sisters", "Mile End"]),
            ("heathrow terminal 5 to kings cross st pancras", &["heathrow terminal 5", "kings cross st pancras"]),
            ("is central London busy", &[]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn misspelt_names_are_found_after_cues() {
        assert_eq!(found("next bakerloo from elefant and castle?"), ["elefant and castle"]);
        assert_eq!(found("how do I get from padington to wimbeldon"), ["padington", "wimbeldon"]);
    }

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
            let found = SPEECH.find_edges(&Utterance::new(text));
            let value = found.first().and_then(|mention| mention.choices[0].value.as_str());
            assert_eq!(value, edge, "{text}");
        }
    }
}
