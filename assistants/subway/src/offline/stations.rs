//! Stations in what someone says.
//!
//! What may be a name stands between words that are none: "how do i get from | penn | to | yankee stadium". Of such a run
//! the part counts that the names of stations explain best.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::{Value, json};
use threadkeep::models::{Choice, Mention, Utterance};
use threadkeep_transit::{Place, Resolution};

use super::lines;
use super::words::{AMOUNTS, COMMON, JOINS, PLACE_CUES, PLACELESS, SAVED_PLACES, TRAVEL, UNNAMED};
use crate::place::view_of;
use crate::system::{names, network};
use crate::wording;

/// Words of a name at most.
const NAME_WORDS: usize = 8;
/// Words of a name that nobody knows.
const UNKNOWN_WORDS: usize = 4;
/// Words of a message that are read for names: a question names its stations soon, and a long text must not cost more.
const READ_WORDS: usize = 64;
/// Texts whose meaning is remembered.
const REMEMBERED: usize = 4_096;

/// What texts mean. A message is read again with each question after it, and what its words mean never changes.
static MEANINGS: LazyLock<Mutex<HashMap<String, Resolution>>> = LazyLock::new(Mutex::default);

/// Finds stations, what is called so and is none, and the places that a user keeps ("home").
pub(super) fn find(said: &Utterance) -> Vec<Mention> {
    let lines = lines::runs(said);
    let runs = runs_of(said, &lines);
    let mut mentions: Vec<Mention> = Vec::new();
    for run in &runs {
        let mut at = run.start;
        while at < run.end {
            let is_taken = mentions.last().is_some_and(|last| last.words.end > at);
            match (!is_taken).then(|| station_at(said, at, run, &runs, &lines)).flatten() {
                Some(mention) => {
                    at = mention.words.end;
                    mentions.push(mention);
                }
                None => at += 1,
            }
        }
    }
    mentions.extend(find_saved(said));
    let is_about_travel = !mentions.is_empty()
        || !lines.is_empty()
        || said.words().iter().any(|word| TRAVEL.contains(&word.folded.as_str()));
    if is_about_travel {
        let is_free = |run: &&Range<usize>| {
            !mentions.iter().any(|known| known.words.start < run.end && run.start < known.words.end)
        };
        let unknown: Vec<Mention> = runs.iter().filter(is_free).filter_map(|run| unknown_place(said, run)).collect();
        mentions.extend(unknown);
    }
    mentions.sort_by_key(|mention| mention.words.start);
    mentions
}

/// Finds the places that a user keeps.
pub(super) fn find_saved(said: &Utterance) -> Vec<Mention> {
    (0..said.words().len()).filter_map(|at| saved_place(said, at)).collect()
}

/// What a text means.
fn resolve(text: &str) -> Resolution {
    let mut meanings = MEANINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = meanings.get(text) {
        return known.clone();
    }
    if meanings.len() >= REMEMBERED {
        meanings.clear();
    }
    let meaning = names().resolve(text);
    meanings.insert(text.to_owned(), meaning.clone());
    meaning
}

/// The key of the preference that a value stands for.
pub(super) fn saved_key(value: &Value) -> Option<&str> {
    value.get("saved").and_then(Value::as_str)
}

/// What a place is called so that a tool finds it and no other.
pub(super) fn text_of(place: &Place) -> String {
    let text = wording::place(&view_of(place));
    let is_clear = |text: &str| matches!(resolve(text), Resolution::Certain(found) if found.complex == place.complex);
    if is_clear(&text) { text } else { place.stations.first().cloned().unwrap_or_default() }
}

fn saved_place(said: &Utterance, at: usize) -> Option<Mention> {
    let (_, key) = SAVED_PLACES.iter().find(|(word, _)| *word == said.word(at))?;
    let is_its_name = matches!(said.word(at + 1), "station" | "stop" | "is");
    let before = at.checked_sub(1).map_or("", |before| said.word(before));
    // Everything may work, but only home is gone to without a word.
    let is_a_place = said.word(at) == "home" || PLACE_CUES.contains(&before);
    let choice = || Choice::new(json!({"saved": key}), said.word(at));
    (is_a_place && !is_its_name).then(|| Mention { words: at..at + 1, choices: vec![choice()] })
}

/// Words in a row that may name something.
fn runs_of(said: &Utterance, lines: &[lines::Run]) -> Vec<Range<usize>> {
    let is_line = |at: usize| lines.iter().any(|run| run.words.contains(&at));
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in 0..said.words().len().min(READ_WORDS) {
        if is_line(at) || UNNAMED.contains(&said.word(at)) || is_amount(said, at) {
            continue;
        }
        match runs.last_mut().filter(|run| run.end == at && !is_parted(said, at)) {
            Some(run) => run.end = at + 1,
            None => runs.push(at..at + 1),
        }
    }
    runs
}

/// Whether a word is the number in "20 min".
fn is_amount(said: &Utterance, at: usize) -> bool {
    let is_number = said.word(at).chars().all(|c| c.is_ascii_digit());
    is_number && AMOUNTS.contains(&said.word(at + 1))
}

/// Whether a comma or the end of a sentence stands before a word.
fn is_parted(said: &Utterance, at: usize) -> bool {
    let words = said.words();
    let between = &said.text()[words[at - 1].place.end..words[at].place.start];
    between.contains([',', ';', ':', '?', '!', '\n']) || between.contains(". ") && said.word(at - 1).len() > 3
}

/// How words are explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// With spelling mistakes, or with words that nothing explains.
    Loose,
    /// By several stations.
    Several,
    /// By one, or by one that is usually meant.
    One,
}

fn rank_of(resolution: &Resolution) -> Option<Rank> {
    match resolution {
        Resolution::Certain(_) => Some(Rank::One),
        Resolution::Assumed { others, .. } if !others.is_empty() => Some(Rank::One),
        Resolution::Assumed { .. } => Some(Rank::Loose),
        Resolution::Several(_) => Some(Rank::Several),
        Resolution::NotOnLine { .. } | Resolution::Unknown => None,
    }
}

/// The station that is named from a word on.
fn station_at(
    said: &Utterance,
    at: usize,
    run: &Range<usize>,
    runs: &[Range<usize>],
    lines: &[lines::Run],
) -> Option<Mention> {
    let last = run.end.min(at + NAME_WORDS);
    let mut best: Option<(Rank, usize)> = None;
    for end in at + 1..=last {
        let rank = rank_of(&resolve(said.said(at..end))).filter(|rank| is_believed(said, at..end, run, *rank));
        // One station is better than any other reading; between the others the longer name is.
        if let Some(rank) = rank
            && best.is_none_or(|(known, _)| known != Rank::One || rank == Rank::One)
        {
            best = Some((rank, end));
        }
    }
    let (_, mut end) = best?;
    if let Some(longer) = joined(said, at..end, runs) {
        end = longer;
    }
    let words = at..end;
    Some(Mention { choices: choices(said, words.clone(), &lines_behind(said, end, lines)), words })
}

/// Whether words name a station where they stand. What is misspelt must stand where a name is expected, and a word that
/// many sentences have is a name only there.
fn is_believed(said: &Utterance, words: Range<usize>, run: &Range<usize>, rank: Rank) -> bool {
    let before = words.start.checked_sub(1).map_or("", |at| said.word(at));
    let before = if before == "the" { words.start.checked_sub(2).map_or("", |at| said.word(at)) } else { before };
    let is_expected = PLACE_CUES.contains(&before) || matches!(said.word(run.end), "to" | "from");
    let is_common = words.len() == 1 && COMMON.contains(&said.word(words.start));
    let has_digit = said.said(words.clone()).chars().any(|c| c.is_ascii_digit());
    match rank {
        _ if words.clone().all(|at| PLACELESS.contains(&said.word(at))) => false,
        Rank::One => is_expected || !is_common,
        Rank::Several => is_expected || words.len() > 1 || has_digit && said.said(words.clone()).len() > 2,
        Rank::Loose => is_expected && !is_common && words.len() <= run.len() && letters(said.said(words)) >= 4,
    }
}

fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphabetic()).count()
}

/// The end of a name that goes on behind "and" or "in": "59th and lex", "86th st in bay ridge".
fn joined(said: &Utterance, words: Range<usize>, runs: &[Range<usize>]) -> Option<usize> {
    let is_open = !matches!(resolve(said.said(words.clone())), Resolution::Certain(_));
    if !is_open || !JOINS.contains(&said.word(words.end)) {
        return None;
    }
    let next = runs.iter().find(|run| run.start == words.end + 1)?;
    let ends = (next.start + 1..=next.end.min(next.start + 3)).rev();
    let is_one = |end: &usize| {
        let whole = resolve(said.said(words.start..*end));
        matches!(whole, Resolution::Certain(_))
    };
    ends.into_iter().find(is_one)
}

/// Lines that say which station of a name is meant: "14th st on the 1".
fn lines_behind(said: &Utterance, end: usize, lines: &[lines::Run]) -> Vec<String> {
    let mut at = end;
    while matches!(said.word(at), "on" | "by" | "via" | "the" | "station" | "stop") {
        at += 1;
    }
    let is_qualified = at > end || matches!(said.word(at + 1), "train" | "line" | "platform");
    let behind = lines.iter().find(|run| run.words.start == at && is_qualified);
    behind.map(|run| run.signs.clone()).unwrap_or_default()
}

/// What words may mean: what a tool finds by them, and what a person calls it.
fn choices(said: &Utterance, words: Range<usize>, lines: &[String]) -> Vec<Choice> {
    let text = said.said(words);
    let signs: Vec<&str> = lines.iter().map(String::as_str).collect();
    let certain = |place: &Place| Choice::new(text_of(place), view_of(place).name).hinted(hints(place));
    match names().resolve_on(text, &signs) {
        Resolution::Certain(place) => vec![certain(&place)],
        Resolution::Assumed { taken, .. } if !lines.is_empty() => vec![certain(&taken)],
        // The tool says what it assumed if it hears what was said.
        Resolution::Assumed { taken, .. } => vec![Choice::new(text, view_of(&taken).name).hinted(hints(&taken))],
        Resolution::Several(places) => {
            let labelled = |place: &Place| {
                let view = view_of(place);
                let label = format!("{} ({}, {})", view.name, view.lines.join(" "), view.borough);
                Choice::new(text_of(place), label).hinted(hints(place))
            };
            places.iter().map(labelled).collect()
        }
        Resolution::NotOnLine { .. } => vec![Choice::new(format!("{text} on the {}", lines.join("/")), text)],
        Resolution::Unknown => vec![Choice::new(text, text)],
    }
}

/// Words by which a person picks a place among others: its lines, borough and line of tracks.
fn hints(place: &Place) -> Vec<String> {
    let stations = place.stations.iter().filter_map(|id| network().find_station(id));
    let trunks = stations.map(|station| station.trunk.clone());
    let view = view_of(place);
    view.lines.into_iter().chain([view.borough.to_owned()]).chain(trunks).collect()
}

/// What stands where a station is expected and is none.
fn unknown_place(said: &Utterance, run: &Range<usize>) -> Option<Mention> {
    let mut before = run.start;
    while before > 0 && said.word(before - 1) == "the" {
        before -= 1;
    }
    let is_expected = before > 0 && matches!(said.word(before - 1), "from" | "to" | "at");
    let is_a_name =
        is_expected && run.len() <= UNKNOWN_WORDS && !run.clone().any(|at| PLACELESS.contains(&said.word(at)));
    let text = said.said(run.clone());
    is_a_name.then(|| Mention { words: run.clone(), choices: vec![Choice::new(text, text)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize)> {
        let said = Utterance::new(text);
        find(&said).into_iter().map(|mention| (said.said(mention.words).to_owned(), mention.choices.len())).collect()
    }

    #[test]
    fn stations_stand_between_words_that_are_none() {
        for (text, expected) in [
            ("how do i get from penn to yankee stadium", &[("penn", 1), ("yankee stadium", 1)][..]),
            (
                "Take me from 57th St and 7th Ave to Brighton Beach",
                &[("57th St and 7th Ave", 1), ("Brighton Beach", 1)],
            ),
            ("is it faster to get to hogwarts", &[("hogwarts", 1)]),
            ("what time is the next train", &[]),
            ("trains at 50th st", &[("50th st", 3)]),
            ("between penn and yankee stadium", &[("penn", 1), ("yankee stadium", 1)]),
            ("translate hello to spanish", &[]),
            ("get me home from astor pl", &[("home", 1), ("astor pl", 1)]),
        ] {
            let expected: Vec<(String, usize)> =
                expected.iter().map(|(name, choices)| ((*name).to_owned(), *choices)).collect();
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn every_place_has_a_text_that_finds_it() {
        for station in network().stations() {
            let ids = network().stations_of(&station.complex).map(|station| station.id.clone()).collect();
            let text = text_of(&Place { complex: station.complex.clone(), stations: ids });
            let resolved = names().resolve(&text);
            assert!(
                matches!(&resolved, Resolution::Certain(found) if found.complex == station.complex),
                "{text}: {resolved:?}"
            );
        }
    }
}
