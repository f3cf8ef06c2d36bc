//! Recognises stations in a message.
//!
//! The message is split into runs at the words that no station name needs: "how do i get from | penn | to | yankee
//! stadium". Within a run, the part that best matches a station name is the mention.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::{Value, json};
use threadkeep::dialogue::{Choice, Mention, Utterance};

use super::words::{
    COMMON_WORDS, CONTINUATION_WORDS, NON_PLACE_WORDS, PLACE_CUES, SAVED_PLACES, TRAVEL_WORDS, UNITS, is_ordinal,
    is_ordinary, is_ordinary_after_ordinal,
};
use super::{LineRun, Speech};
use crate::{Place, Resolution, wording};

/// Words that belong to a number before them.
const STREET_WORDS: [&str; 7] = ["av", "ave", "avenue", "avs", "rd", "pl", "place"];
/// More words that say what kind of place a name stands for.
const KIND_WORDS: [&str; 22] = [
    "st",
    "str",
    "street",
    "streets",
    "road",
    "sq",
    "square",
    "station",
    "stop",
    "stn",
    "pkwy",
    "parkway",
    "blvd",
    "boulevard",
    "center",
    "centre",
    "ctr",
    "heights",
    "hts",
    "terminal",
    "tube",
    "line",
];
/// Words before a name that replaces another, or that is replaced: "no, Dyckman", "not Nostrand".
const CORRECTION_WORDS: [&str; 12] =
    ["no", "not", "sorry", "oops", "wait", "actually", "want", "make", "skip", "forget", "need", "scratch"];
/// Words that may precede a name in a message that is only that name: "and Fulton?"
const CONNECTING_WORDS: [&str; 7] = ["and", "n", "or", "what", "about", "how", "then"];
/// Words that name a station only together with other words: "upper east side".
const SIDE_WORDS: [&str; 7] = ["north", "south", "east", "west", "upper", "lower", "side"];
/// Maximum number of words in a station name.
const MAX_NAME_WORDS: usize = 8;
/// Maximum number of words in an unknown name.
const MAX_UNKNOWN_WORDS: usize = 4;
/// Maximum number of words searched for names, which bounds the cost of long messages.
const MAX_WORDS: usize = 64;
/// Maximum number of cached resolutions.
const MAX_CACHED: usize = 4_096;

/// Cached resolutions of each system. Earlier messages are parsed again in each turn, and names always resolve the same way.
static RESOLUTIONS: LazyLock<Mutex<HashMap<&'static str, HashMap<String, Resolution>>>> = LazyLock::new(Mutex::default);

impl Speech {
    /// Finds stations, unknown names where a station is expected, and saved places ("home").
    #[must_use]
    pub fn find_stations(&self, message: &Utterance) -> Vec<Mention> {
        let lines = (self.line_runs)(message);
        let mut mentions = (self.exact_names)(message);
        let runs = runs_of(message, &lines, &mentions);
        // A name can continue in the next run.
        let mut taken_until = 0;
        for run in &runs {
            let mut at = run.start;
            while at < run.end {
                match (at >= taken_until).then(|| self.station_at(message, at, run, &runs, &lines)).flatten() {
                    Some(mention) => {
                        at = mention.words.end;
                        taken_until = at;
                        mentions.push(mention);
                    }
                    None => at += 1,
                }
            }
        }
        let saved = saved_places(message).into_iter().filter(|saved| !is_beside_the_ends(message, saved, &mentions));
        mentions.extend(saved.collect::<Vec<_>>());
        let is_about_travel = !mentions.is_empty()
            || !lines.is_empty()
            || message.words().iter().any(|word| TRAVEL_WORDS.contains(&word.folded.as_str()));
        if is_about_travel {
            let is_free = |run: &&Range<usize>| {
                !mentions.iter().any(|known| known.words.start < run.end && run.start < known.words.end)
            };
            let unknown: Vec<Mention> =
                runs.iter().filter(is_free).filter_map(|run| unknown_place(message, run)).collect();
            mentions.extend(unknown);
        }
        mentions.sort_by_key(|mention| mention.words.start);
        self.narrowed_by_places(message, mentions)
    }

    /// Resolves a station name, with a cache.
    fn resolve(&self, text: &str) -> Resolution {
        let mut caches = RESOLUTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        let cache = caches.entry(self.system.name).or_default();
        if let Some(known) = cache.get(text) {
            return known.clone();
        }
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        let resolution = (self.system.names)().resolve(&(self.whole_name)(text));
        cache.insert(text.to_owned(), resolution.clone());
        resolution
    }

    /// Returns text that resolves to exactly this place.
    #[must_use]
    pub fn text_of(&self, place: &Place) -> String {
        let text = wording::place(&self.system, &self.system.view_of(place));
        let is_clear =
            |text: &str| matches!(self.resolve(text), Resolution::Certain(found) if found.complex == place.complex);
        if is_clear(&text) { text } else { place.stations.first().cloned().unwrap_or_default() }
    }

    /// Finds the station name that starts at a word.
    fn station_at(
        &self,
        message: &Utterance,
        at: usize,
        run: &Range<usize>,
        runs: &[Range<usize>],
        lines: &[LineRun],
    ) -> Option<Mention> {
        let last = run.end.min(at + MAX_NAME_WORDS);
        let mut best: Option<(Rank, usize)> = None;
        for end in at + 1..=last {
            let resolution = self.resolve(&message.spelled(at..end));
            let rank = rank_of(&resolution)
                .filter(|rank| is_plausible(message, at..end, run, *rank))
                .filter(|_| !self.is_weak(message, at..end, run, &resolution));
            // A match with one station takes precedence; otherwise the longer name does.
            if let Some(rank) = rank
                && best.is_none_or(|(known, _)| known != Rank::One || rank == Rank::One)
            {
                best = Some((rank, end));
            }
        }
        let (_, mut end) = match best {
            Some(best) => best,
            // "86 and lex" is a name, although "86" alone would not be one.
            None => (Rank::One, self.crossing(message, at, runs)?),
        };
        // "times sqare" is the same place as "times", and includes the misspelt word in the name.
        let place = |end: usize| match self.resolve(&message.spelled(at..end)) {
            Resolution::Certain(place) | Resolution::Assumed { taken: place, .. } => Some(place),
            _ => None,
        };
        if let (Some(known), Some(longer)) = (place(end), (end < last).then(|| place(end + 1)).flatten())
            && known.complex == longer.complex
            && is_misspelt_word_of(&self.system.view_of(&known).name, message.word(end))
        {
            end += 1;
        }
        if let Some(longer) = self.joined(message, at..end, runs) {
            end = longer;
        }
        let words = at..end;
        Some(Mention::new(words.clone(), self.choices(message, words, &lines_after(message, end, lines))))
    }

    /// Whether of several words only one that is common in ordinary sentences occurs in the name of the station, and no name is
    /// expected: "ocean swim", "northern end".
    fn is_weak(&self, message: &Utterance, words: Range<usize>, run: &Range<usize>, resolution: &Resolution) -> bool {
        let places = match resolution {
            _ if words.len() < 2 => return false,
            Resolution::Certain(place) => vec![place],
            Resolution::Assumed { taken, others } => std::iter::once(taken).chain(others).collect(),
            _ => return false,
        };
        let before = words.start.checked_sub(1).map_or("", |at| message.word(at));
        if PLACE_CUES.contains(&before) || message.word(run.end) == "to" {
            return false;
        }
        let names: Vec<Utterance> =
            places.into_iter().map(|place| Utterance::new(self.system.view_of(place).name)).collect();
        let in_name = |at: usize| {
            let is_like = |known: &str| known == message.word(at) || is_misspelt_word_of(known, message.word(at));
            names.iter().any(|name| name.words().iter().any(|word| is_like(&word.folded)))
        };
        let is_kind = |word: &str| STREET_WORDS.contains(&word) || KIND_WORDS.contains(&word);
        let (matched, others): (Vec<usize>, Vec<usize>) = words.partition(|at| in_name(*at));
        let is_other =
            |at: &usize| !is_kind(message.word(*at)) && !message.word(*at).starts_with(|c: char| c.is_ascii_digit());
        matches!(&matched[..], [at] if COMMON_WORDS.contains(&message.word(*at))) && others.iter().any(is_other)
    }

    /// Returns the end of a name that continues after "and" or "in": "59th and lex", "86th st in bay ridge".
    fn joined(&self, message: &Utterance, words: Range<usize>, runs: &[Range<usize>]) -> Option<usize> {
        let is_ambiguous = !matches!(self.resolve(&message.spelled(words.clone())), Resolution::Certain(_));
        if !is_ambiguous && message.word(words.end) != "of" || !CONTINUATION_WORDS.contains(&message.word(words.end)) {
            return None;
        }
        let next = runs.iter().find(|run| run.start == words.end + 1)?;
        // In "the 7 to Flushing at Court Sq" the words are two stations.
        let is_station = || matches!(self.resolve(&message.spelled(next.clone())), Resolution::Certain(_));
        if message.word(words.end) == "at" && is_station() {
            return None;
        }
        let ends = (next.start + 1..=next.end.min(next.start + 3)).rev();
        let is_one = |end: &usize| {
            let whole = self.resolve(&message.spelled(words.start..*end));
            matches!(whole, Resolution::Certain(_))
        };
        ends.into_iter().find(is_one)
    }

    /// Returns the end of a name that is a numbered street and the street that it crosses.
    fn crossing(&self, message: &Utterance, at: usize, runs: &[Range<usize>]) -> Option<usize> {
        let is_number = message.word(at).starts_with(|c: char| c.is_ascii_digit());
        let end = at + 1 + usize::from(matches!(message.word(at + 1), "st" | "street"));
        let is_crossing = is_number && message.word(end) == "and";
        is_crossing.then(|| self.joined(message, at..end, runs)).flatten()
    }

    /// Returns the places that words can refer to, as tool arguments with labels for the user.
    fn choices(&self, message: &Utterance, words: Range<usize>, lines: &[String]) -> Vec<Choice> {
        self.choices_of((self.whole_name)(&message.spelled(words)).as_ref(), lines)
    }

    /// Returns the places that a name can refer to, as tool arguments with labels for the user.
    #[must_use]
    pub fn choices_of(&self, text: &str, lines: &[String]) -> Vec<Choice> {
        let signs: Vec<&str> = lines.iter().map(String::as_str).collect();
        let certain =
            |place: &Place| Choice::new(self.text_of(place), self.system.view_of(place).name).hinted(self.hints(place));
        match (self.system.names)().resolve_on(text, &signs) {
            Resolution::Certain(place) => vec![certain(&place)],
            Resolution::Assumed { taken, .. } if !lines.is_empty() => vec![certain(&taken)],
            // The tool reports its assumption only if it receives the user's words.
            Resolution::Assumed { taken, others } => {
                let others = others.iter().map(|place| self.labelled(place));
                vec![
                    Choice::new(text, self.system.view_of(&taken).name).hinted(self.hints(&taken)).preferred_to(others),
                ]
            }
            Resolution::Several(places) => places.iter().map(|place| self.labelled(place)).collect(),
            Resolution::NotOnLine { .. } => vec![Choice::new(format!("{text} on the {}", lines.join("/")), text)],
            Resolution::Unknown => vec![Choice::new(text, text)],
        }
    }

    /// Returns a place as one of several with the same name.
    pub fn labelled(&self, place: &Place) -> Choice {
        let view = self.system.view_of(place);
        let label = format!("{} ({}, {})", view.name, (self.system.lines_text)(&view.lines), view.area);
        Choice::new(self.text_of(place), label).hinted(self.hints(place))
    }

    /// Returns the words by which a user picks one of several places: lines, borough and trunk line.
    pub fn hints(&self, place: &Place) -> Vec<String> {
        let stations = place.stations.iter().filter_map(|id| self.system.station(id));
        let trunks = stations.map(|station| station.trunk.clone());
        let view = self.system.view_of(place);
        view.lines.into_iter().chain([view.area]).chain(trunks).collect()
    }
}

/// Whether "home" only says why the trip is made, because the message names where it goes: "coming home, St George to Great Kills".
fn is_beside_the_ends(message: &Utterance, saved: &Mention, named: &[Mention]) -> bool {
    let before = |at: usize| at.checked_sub(1).map_or("", |before| message.word(before));
    let is_named = matches!(before(saved.words.start), "to" | "from" | "at" | "near" | "my" | "and");
    let is_destination = |mention: &Mention| matches!(before(mention.words.start), "to" | "towards" | "toward");
    let is_named = is_named || is_start_of_trip(message, saved.words.start);
    !is_named && named.iter().any(|mention| mention.words.start > saved.words.start && is_destination(mention))
}

/// Whether a saved place is where the trip starts: "home to Bank". In "coming home to Bank", the trip ends at Bank.
fn is_start_of_trip(message: &Utterance, at: usize) -> bool {
    const BEFORE: [&str; 14] =
        ["", "and", "ok", "okay", "so", "then", "now", "hi", "hey", "hello", "please", "about", "route", "directions"];
    message.word(at + 1) == "to" && BEFORE.contains(&at.checked_sub(1).map_or("", |before| message.word(before)))
}

/// Finds saved places. If a question has a station slot, the slot takes the same words.
#[must_use]
pub fn find_saved(message: &Utterance) -> Vec<Mention> {
    let found = saved_places(message).into_iter();
    found.map(|mention| Mention::incidental(mention.words, mention.choices)).collect()
}

fn saved_places(message: &Utterance) -> Vec<Mention> {
    (0..message.words().len()).filter_map(|at| saved_place(message, at)).collect()
}

/// Returns the preference key if a slot value refers to a saved place.
#[must_use]
pub fn saved_key(value: &Value) -> Option<&str> {
    value.get("saved").and_then(Value::as_str)
}

/// Whether "home" or "work" names a preference, as in "home is Jay St" and "set work to 168 St".
fn names_a_key(message: &Utterance, at: usize) -> bool {
    let sets = |word: &str| {
        matches!(word, "set" | "save" | "make" | "change" | "switch" | "update" | "put" | "store" | "remember")
    };
    let before = at.checked_sub(1).map_or("", |before| message.word(before));
    let before = if before == "my" { at.checked_sub(2).map_or("", |before| message.word(before)) } else { before };
    let is_named = matches!(message.word(at + 1), "station" | "stop") && !is_saved_station(message, at);
    is_named || matches!(message.word(at + 1), "is" | "moved" | "changed") || sets(before)
}

/// Whether "home station" means the place, as in "is my home station accessible" and "from my home station".
fn is_saved_station(message: &Utterance, at: usize) -> bool {
    let Some(before) = at.checked_sub(2).filter(|_| message.word(at - 1) == "my") else { return false };
    let is_asked = before == 0 || matches!(message.word(before - 1), "and" | "ok" | "so" | "but");
    matches!(message.word(at + 1), "station" | "stop")
        && (matches!(message.word(before), "from" | "to" | "at" | "near")
            || is_asked && matches!(message.word(before), "is" | "does"))
}

/// Finds "home" and "work" where they name a preference.
#[must_use]
pub fn find_saved_keys(message: &Utterance) -> Vec<Mention> {
    let keys = (0..message.words().len()).filter_map(|at| {
        if let Some((words, key)) = stated_key(message, at) {
            return Some(Mention::new(words.clone(), vec![Choice::new(key, message.said(words))]));
        }
        let (word, key) = SAVED_PLACES.iter().find(|(word, _)| *word == message.word(at))?;
        let end = if matches!(message.word(at + 1), "station" | "stop") { at + 2 } else { at + 1 };
        names_a_key(message, at).then(|| Mention::new(at..end, vec![Choice::new(*key, *word)]))
    });
    keys.collect()
}

/// Finds "I live in", "I work at", "where do I live", which state or ask for a saved place.
fn stated_key(message: &Utterance, at: usize) -> Option<(Range<usize>, &'static str)> {
    let is_subject = matches!(message.word(at), "i" | "we");
    if !is_subject && at > 0 && message.word(at - 1) != "and" {
        return None;
    }
    let start = at;
    let verb = if !is_subject {
        at
    } else if matches!(message.word(at + 1), "now" | "also" | "actually") {
        at + 2
    } else {
        at + 1
    };
    let key = match message.word(verb) {
        "live" => "home station",
        "work" => "work station",
        _ => return None,
    };
    let is_asked = start > 1
        && matches!(message.word(start - 1), "do" | "did")
        && matches!(message.word(start - 2), "where" | "station");
    match message.word(verb + 1) {
        "at" | "in" | "near" | "by" | "on" | "off" | "around" => Some((start..verb + 2, key)),
        _ if is_asked => Some((start - 1..verb + 1, key)),
        // "Where did I say I live?"
        "" if is_subject && matches!(message.word(0), "where" | "wheres" | "which") => Some((start..verb + 1, key)),
        _ => None,
    }
}

fn saved_place(message: &Utterance, at: usize) -> Option<Mention> {
    let (_, key) = SAVED_PLACES.iter().find(|(word, _)| *word == message.word(at))?;
    let is_key = names_a_key(message, at);
    let before = at.checked_sub(1).map_or("", |before| message.word(before));
    let before = if before == "the" { at.checked_sub(2).map_or("", |at| message.word(at)) } else { before };
    // "get home" needs no preposition, whereas "work" is a place only after one.
    let is_a_place =
        message.word(at) == "home" || PLACE_CUES.contains(&before) || at == 0 && is_start_of_trip(message, at);
    let choice = || {
        let saved = Choice::new(json!({"saved": key}), message.word(at));
        if message.word(at) == "home" { saved.returning() } else { saved }
    };
    let end = if is_saved_station(message, at) { at + 2 } else { at + 1 };
    (is_a_place && !is_key || end > at + 1).then(|| Mention::new(at..end, vec![choice()]))
}

/// Splits the message into runs of consecutive words that may be names.
fn runs_of(message: &Utterance, lines: &[LineRun], known: &[Mention]) -> Vec<Range<usize>> {
    let is_line = |at: usize| {
        lines.iter().any(|run| run.words.contains(&at)) || known.iter().any(|mention| mention.words.contains(&at))
    };
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in 0..message.words().len().min(MAX_WORDS) {
        let is_other_word =
            is_ordinary(message.word(at)) && !is_far_of_a_name(message, at) && !is_letter_of_avenue(message, at);
        if is_line(at) || is_other_word || is_amount(message, at) {
            continue;
        }
        match runs.last_mut().filter(|run| run.end == at && !follows_a_break(message, at)) {
            Some(run) => run.end = at + 1,
            None => runs.push(at..at + 1),
        }
    }
    runs
}

/// Whether a word is the "far" in "Far Rockaway", rather than in "how far" or "too far".
fn is_far_of_a_name(message: &Utterance, at: usize) -> bool {
    let is_measure = at > 0 && matches!(message.word(at - 1), "how" | "too" | "so" | "as" | "that" | "very" | "not");
    let next = message.word(at + 1);
    message.word(at) == "far" && !is_measure && !next.is_empty() && !is_ordinary(next)
}

/// Whether a letter belongs to the name of an avenue: the "U" in "Avenue U", which otherwise stands for "you".
fn is_letter_of_avenue(message: &Utterance, at: usize) -> bool {
    message.said(at..at + 1).len() == 1 && at > 0 && matches!(message.word(at - 1), "avenue" | "ave" | "av")
}

/// Whether a word is the number in "20 min".
fn is_amount(message: &Utterance, at: usize) -> bool {
    let is_number = message.word(at).chars().all(|c| c.is_ascii_digit());
    is_number && UNITS.contains(&message.word(at + 1))
}

/// Whether a comma or the end of a sentence precedes a word.
pub(super) fn follows_a_break(message: &Utterance, at: usize) -> bool {
    let words = message.words();
    let between = &message.text()[words[at - 1].span.end..words[at].span.start];
    between.contains([',', ';', ':', '?', '!', '\n']) || between.contains(". ") && message.word(at - 1).len() > 3
}

/// How well words match station names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// With spelling mistakes or unmatched words.
    Loose,
    /// Several stations match.
    Several,
    /// One station matches, or one of the matches is the usual meaning.
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

/// Whether a word begins as a word of a station's name does: "sqare" as "Sq".
fn is_misspelt_word_of(name: &str, word: &str) -> bool {
    const SAME_CHARS: usize = 3;
    let words = Utterance::new(name);
    words.words().iter().any(|known| {
        let same = known.folded.chars().zip(word.chars()).take_while(|(one, other)| one == other).count();
        same >= SAME_CHARS.min(known.folded.chars().count()) && same > 1
    })
}

/// Whether words can be a station name in their context. Misspelt names and common words count only where a name is expected,
/// such as after "from" or "to".
fn is_plausible(message: &Utterance, words: Range<usize>, run: &Range<usize>, rank: Rank) -> bool {
    let before = words.start.checked_sub(1).map_or("", |at| message.word(at));
    let before = if before == "the" { words.start.checked_sub(2).map_or("", |at| message.word(at)) } else { before };
    let sets_key = || words.start > 0 && names_a_key(message, words.start - 1);
    let is_named = matches!(before, "meant" | "mean" | "said")
        || before == "is" && follows_a_key(message, words.start - 1)
        || SAVED_PLACES.iter().any(|(word, _)| *word == before) && sets_key();
    // "Between Grand Central and 125"
    let ends_range =
        before == "and" && (0..words.start).any(|at| message.word(at) == "between") && words.end == run.end;
    let is_expected = PLACE_CUES.contains(&before)
        || is_named
        || ends_range
        || matches!(message.word(run.end), "to" | "from" | "instead");
    let is_corrected = CORRECTION_WORDS.contains(&before);
    let is_common = words.len() == 1 && COMMON_WORDS.contains(&message.word(words.start));
    let has_digit = message.said(words.clone()).chars().any(|c| c.is_ascii_digit());
    // "79?" as a whole message names a street.
    // So does "and fulton?".
    let is_other = |at: usize| !words.contains(&at) && !CONNECTING_WORDS.contains(&message.word(at));
    let is_whole = !(0..message.words().len()).any(is_other) && message.said(words.clone()).len() > 1;
    // "N" alone is a line, or "and"; the avenue has its word.
    let is_letter = words.len() == 1 && message.word(words.start).len() == 1 && letters(message.word(words.start)) == 1;
    match rank {
        _ if is_letter => false,
        // A point of the compass alone is a direction.
        _ if words.len() == 1 && matches!(message.word(words.start), "north" | "south" | "east" | "west") => false,
        // "Central London" is not a station, while "London Bridge" is one.
        _ if message.word(words.end - 1) == "london" || message.word(words.end) == "london" && words.len() == 1 => {
            false
        }
        // "The east side" is part of a city.
        _ if words.clone().all(|at| SIDE_WORDS.contains(&message.word(at))) => false,
        // "The 8th Av side" is a part of another station.
        _ if (words.start + 1..=words.end).any(|at| message.word(at) == "side") => false,
        // "The second one" is a train.
        _ if words.len() == 1
            && is_ordinal(message.word(words.start))
            && is_ordinary_after_ordinal(message.word(words.end)) =>
        {
            false
        }
        // "For 7" is a time, and "he is 7" an age.
        _ if words.len() == 1 && message.word(words.start).len() == 1 => false,
        // In "8 av", "8" is not a name.
        _ if words.len() == 1 && has_digit && STREET_WORDS.contains(&message.word(words.end)) => false,
        // "York St" is a station, and "New York" is not.
        _ if words.clone().all(|at| NON_PLACE_WORDS.contains(&message.word(at)))
            && !(rank == Rank::One && words.len() == 2 && matches!(message.word(words.start + 1), "st" | "street")) =>
        {
            false
        }
        // "2+2" is not an avenue.
        _ if !is_expected && !is_whole && letters(message.said(words.clone())) == 0 => false,
        Rank::One => is_expected || is_corrected || !is_common || is_whole,
        Rank::Several => {
            is_expected
                || is_corrected && !is_common
                || words.len() > 1
                || is_whole
                || has_digit && message.said(words.clone()).len() > 2
        }
        // "oxfrd circuss bakerloo trains": two words that look like a name are one.
        Rank::Loose if words.start == 0 && words.len() > 1 && words.len() == run.len() => {
            letters(message.said(words)) >= 9
        }
        Rank::Loose => is_expected && !is_common && words.len() <= run.len() && letters(message.said(words)) >= 5,
    }
}

/// Whether the word before a position names a place of the user: "work is", "my hotel is".
fn follows_a_key(message: &Utterance, at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |before| message.word(before));
    matches!(before, "home" | "work" | "office" | "hotel" | "station" | "stop" | "job" | "gym" | "school")
}

fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphabetic()).count()
}

/// Returns the lines after a name that disambiguate it: "14th st on the 1".
fn lines_after(message: &Utterance, end: usize, lines: &[LineRun]) -> Vec<String> {
    let mut at = end;
    while matches!(message.word(at), "on" | "by" | "via" | "the" | "station" | "stop") {
        at += 1;
    }
    let is_qualified = at > end || matches!(message.word(at + 1), "train" | "line" | "platform");
    let run = lines.iter().find(|run| run.words.start == at && is_qualified);
    run.map(|run| run.lines.clone()).unwrap_or_default()
}

/// Returns a mention for an unknown name where a station is expected.
fn unknown_place(message: &Utterance, run: &Range<usize>) -> Option<Mention> {
    let mut before = run.start;
    while before > 0 && message.word(before - 1) == "the" {
        before -= 1;
    }
    let is_expected = before > 0 && matches!(message.word(before - 1), "from" | "to" | "at");
    let is_a_name = is_expected
        && run.len() <= MAX_UNKNOWN_WORDS
        && !run.clone().any(|at| NON_PLACE_WORDS.contains(&message.word(at)));
    let text = message.said(run.clone());
    is_a_name.then(|| Mention::new(run.clone(), vec![Choice::new(text, text)]))
}
