//! Finds what a message asks about the list of a line's stops: all of them, how many, those in a borough, the one after another.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use threadkeep::dialogue::{Choice, Mention, Utterance};

use super::Speech;
use super::ends::find_ends;

/// A part of the list of a line's stops.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Listing {
    /// Only the stops in this area, by its name for users.
    pub(super) area: Option<String>,
    /// Which of them.
    pub(super) pick: Pick,
    /// Whether the message only asks about the list of the last answer.
    pub(super) follows: bool,
    /// Whether it concerns the stops between two places, or between the ends of the last trip.
    pub(super) is_between: bool,
    /// Whether it asks for those that are step-free.
    pub(super) step_free: bool,
    /// Whether it is the stop before the last one: "just before the terminus".
    #[serde(default)]
    pub(super) of_end: bool,
    /// Whether it is the number of all stops of the line, whatever part of it was asked about before: "how many stations does it have".
    #[serde(default)]
    pub(super) is_whole: bool,
}

impl Listing {
    /// Whether it is only the number of all stops.
    pub(super) fn is_bare_count(&self) -> bool {
        self.pick == Pick::Count && self.area.is_none() && !self.step_free && !self.is_between && !self.is_whole
    }
}

/// Which stops of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Pick {
    /// All.
    #[default]
    All,
    /// Only their number.
    Count,
    /// Whether there are any.
    Whether,
    /// The first and the last one within an area.
    Border,
    /// The one after a place.
    After,
    /// The one before a place.
    Before,
    /// The nearest to a place.
    Nearest,
    /// Those of other lines between two places that the line passes without stopping.
    Skipped,
}

/// Words before "stops" that ask for a list.
const ALL: [&str; 12] = ["every", "all", "each", "list", "name", "the", "which", "what", "whats", "other", "of", "me"];
/// Words that start a list of stops, as in "all the stops".
const STARTS: [&str; 8] = ["every", "all", "each", "list", "name", "which", "what", "whats"];
/// Words after "stops" in a question for a list: "which stops does it make". "What stops at Canal" asks for lines.
const CONTINUE: [&str; 26] = [
    "are", "does", "do", "on", "of", "will", "did", "i", "we", "you", "it", "between", "in", "after", "before", "from",
    "along", "for", "have", "has", "please", "pls", "to", "left", "remain", "would",
];
/// Verbs for where a line goes.
const GOING: [&str; 18] = [
    "go", "goes", "going", "run", "runs", "running", "touch", "touches", "reach", "reaches", "serve", "serves",
    "enter", "enters", "stop", "stops", "get", "cross",
];
/// Words of questions about something else than a line's stops.
const OTHER: [&str; 20] = [
    "next",
    "when",
    "whens",
    "long",
    "minutes",
    "min",
    "how do i",
    "should",
    "faster",
    "quicker",
    "get off",
    "my",
    "change",
    "transfer",
    "switch",
    "transfers",
    "changes",
    "express",
    "avoid",
    "home",
];

impl Speech {
    /// Finds a question about the list of a line's stops.
    #[must_use]
    pub fn find_listings(&self, message: &Utterance) -> Vec<Mention> {
        let has = |phrase: &&str| find_phrase(message, phrase).is_some();
        // "Which stop is next after Oval"
        let is_other = |phrase: &&str| has(phrase) && (*phrase != "next" || neighbour(message).is_none());
        if OTHER.iter().any(is_other) || !find_ends(message).is_empty() {
            return Vec::new();
        }
        let area = self.area_in(message);
        let Some((words, listing)) = listing_of(message, area.as_ref()) else { return Vec::new() };
        let value = serde_json::to_value(&listing).unwrap_or_default();
        let mention = |words: Range<usize>| {
            Mention::incidental(words.clone(), vec![Choice::new(value.clone(), message.said(words))])
        };
        let rest = area.map(|(words, _)| words).filter(|area| area.start >= words.end || area.end <= words.start);
        [words].into_iter().chain(rest).map(mention).collect()
    }

    /// Returns the area that a message names, with its name for users.
    pub(super) fn area_in(&self, message: &Utterance) -> Option<(Range<usize>, String)> {
        let mut areas: Vec<String> = Vec::new();
        for station in (self.system.network)().stations() {
            let area = (self.system.area)(&station.area);
            if !areas.contains(&area) {
                areas.push(area);
            }
        }
        areas.into_iter().find_map(|area| {
            let name = area.strip_prefix("the ").unwrap_or(&area).to_lowercase();
            Some((find_phrase(message, &name)?, area))
        })
    }
}

/// Returns the position of consecutive words.
fn find_phrase(message: &Utterance, phrase: &str) -> Option<Range<usize>> {
    let length = phrase.split(' ').count();
    let is_at = |at: &usize| phrase.split(' ').enumerate().all(|(offset, word)| message.word(at + offset) == word);
    (0..message.words().len()).find(is_at).map(|at| at..at + length)
}

fn listing_of(message: &Utterance, area: Option<&(Range<usize>, String)>) -> Option<(Range<usize>, Listing)> {
    let name = area.map(|(_, name)| name.clone());
    let is_between =
        ["between", "in between", "on the way"].iter().any(|phrase| find_phrase(message, phrase).is_some());
    let step_free = ["accessible", "step free", "elevator", "elevators", "lift", "lifts", "wheelchair"]
        .iter()
        .any(|phrase| find_phrase(message, phrase).is_some());
    let with = |pick: Pick, follows: bool| Listing {
        area: name.clone(),
        pick,
        follows,
        is_between,
        step_free,
        ..Listing::default()
    };
    if let Some(words) = skipped(message) {
        return Some((words, Listing { is_between: true, ..with(Pick::Skipped, false) }));
    }
    if let Some((words, pick)) = beside_it(message) {
        return Some((words, with(pick, true)));
    }
    if let Some(words) = neighbour(message) {
        let pick = if words.clone().any(|at| matches!(message.word(at), "before" | "previous")) {
            Pick::Before
        } else {
            Pick::After
        };
        let end = words.end;
        let of_end = pick == Pick::Before
            && (end..end + 2).any(|at| matches!(message.word(at), "terminus" | "end" | "terminal" | "last" | "final"));
        let follows = message.word(words.start) == "the";
        return Some((words, Listing { of_end, ..with(pick, follows) }));
    }
    if let Some(words) = nearest(message) {
        return Some((words, Listing { step_free: true, ..with(Pick::Nearest, false) }));
    }
    if let Some(words) = border(message, area) {
        return Some((words, with(Pick::Border, false)));
    }
    if let Some(words) = part_of_list(message) {
        let counts = find_phrase(message, "how many").is_some() || find_phrase(message, "how manys").is_some();
        return Some((words, with(if counts { Pick::Count } else { Pick::All }, true)));
    }
    if let Some(words) = counted(message) {
        let is_whole = counts_whole_line(message, words.end);
        return Some((words, Listing { is_whole, ..with(Pick::Count, false) }));
    }
    if let Some(words) = all_stops(message) {
        return Some((words, with(Pick::All, false)));
    }
    if let Some(words) = stops_between(message) {
        return Some((words, Listing { is_between: true, ..with(Pick::All, false) }));
    }
    let (words, _) = area?;
    goes_into(message, words).map(|words| (words, with(Pick::Whether, false)))
}

/// "which stops does the A skip", "what stations does it miss out on the way"
fn skipped(message: &Utterance) -> Option<Range<usize>> {
    let is_noun = |at: &usize| matches!(message.word(*at), "stop" | "stops" | "station" | "stations");
    let noun = (0..message.words().len()).find(is_noun)?;
    let asks = (0..noun).any(|at| matches!(message.word(at), "which" | "what" | "whats" | "list" | "name"));
    let is_skip = |at: &usize| {
        matches!(message.word(*at), "skip" | "skips" | "skipped" | "skipping")
            || matches!(message.word(*at), "miss" | "misses" | "leave" | "leaves") && message.word(at + 1) == "out"
    };
    let skip = (noun + 1..message.words().len()).find(is_skip)?;
    asks.then_some(noun..skip + 1)
}

/// "every stop", "list all the stations", "which stops does it make", "which R stops do I pass"
fn all_stops(message: &Utterance) -> Option<Range<usize>> {
    let is_noun = |at: usize| matches!(message.word(at), "stop" | "stops" | "station" | "stations");
    (0..message.words().len()).filter(|at| is_noun(*at)).find_map(|noun| {
        let mut start = noun;
        while start > 0 && (ALL.contains(&message.word(start - 1)) || message.word(start - 1).len() == 1) {
            start -= 1;
        }
        let first = (start..noun).find(|at| STARTS.contains(&message.word(*at)))?;
        let is_every = matches!(message.word(first), "every" | "all" | "each" | "list" | "name");
        let is_plural = message.word(noun).ends_with('s');
        let next = message.word(noun + 1);
        let continues = CONTINUE.contains(&next) || message.words().len() == noun + 1;
        let is_each = (first..noun).any(|at| matches!(message.word(at), "every" | "each"));
        // "What stop are you at"
        let is_list = if is_every { is_plural || is_each } else { is_plural && continues };
        is_list.then_some(first..noun + 1)
    })
}

/// "stops between?", "the stations in between", "which stations do I pass between Wimbledon and East Putney"
fn stops_between(message: &Utterance) -> Option<Range<usize>> {
    const MAX_GAP: usize = 6;
    let is_noun = |at: usize| {
        let is_any = at > 0 && message.word(at - 1) == "any" && matches!(message.word(at), "stop" | "station");
        is_any || matches!(message.word(at), "stops" | "stations")
    };
    if find_phrase(message, "how many").is_some() || find_phrase(message, "number of").is_some() {
        return None;
    }
    let noun = (0..message.words().len()).find(|at| is_noun(*at))?;
    let between = (noun + 1..noun + 2 + MAX_GAP).find(|at| message.word(*at) == "between")?;
    let is_asked = (0..noun).any(|at| STARTS.contains(&message.word(at)));
    // "Does the 3 make any stops between 96 and Times Sq?"
    let is_asked = is_asked || noun > 0 && matches!(message.word(noun - 1), "any" | "other" | "more");
    (is_asked || between + 1 == message.words().len()).then_some(noun..between + 1)
}

/// "how many stops are on the G", "how many stations does the L have"
fn counted(message: &Utterance) -> Option<Range<usize>> {
    let words = find_phrase(message, "how many")?;
    let is_noun = matches!(message.word(words.end), "stops" | "stations");
    let rest = words.end + 1..message.words().len();
    let is_whole = rest.clone().any(|at| {
        matches!(message.word(at), "have" | "has" | "make" | "makes")
            || matches!(message.word(at), "on" | "in")
                && !rest.clone().any(|at| matches!(message.word(at), "from" | "to"))
    });
    (is_noun && is_whole).then_some(words.start..words.end + 1)
}

/// Whether a question for a number of stations is about a whole line: "does the L have", "are there on the railway".
fn counts_whole_line(message: &Utterance, start: usize) -> bool {
    let rest = start..message.words().len();
    let names_part = rest.clone().any(|at| {
        matches!(message.word(at), "after" | "before" | "from" | "to" | "past" | "until" | "between" | "left")
    });
    let names_line = |at: usize| {
        (at + 1..at + 4)
            .any(|at| matches!(message.word(at), "railway" | "shuttle" | "line") || message.word(at) == "whole")
    };
    !names_part
        && rest.clone().any(|at| {
            matches!(message.word(at), "have" | "has") && message.word(start.saturating_sub(1)) == "stations"
                || message.word(at) == "on" && names_line(at)
        })
}

/// "which of them", "any of those", "how many is that in total"
fn part_of_list(message: &Utterance) -> Option<Range<usize>> {
    let of = ["of them", "of those", "of these", "of the stops", "of the stations"];
    let part = of.iter().find_map(|phrase| find_phrase(message, phrase));
    if let Some(words) = part {
        let start = words.start.checked_sub(1)?;
        return matches!(message.word(start), "which" | "any" | "many" | "some" | "all" | "one" | "what")
            .then_some(start..words.end);
    }
    let counts = find_phrase(message, "how many").or_else(|| find_phrase(message, "how manys"))?;
    let is_total = ["total", "altogether", "overall", "all"].iter().find_map(|word| find_phrase(message, word));
    let total = is_total.filter(|total| total.end == message.words().len() && message.words().len() <= 8)?;
    Some(counts.start..total.end)
}

/// "the one before it", after a question about another stop
fn beside_it(message: &Utterance) -> Option<(Range<usize>, Pick)> {
    let words =
        ["one before it", "one before that", "one before this", "one after it", "one after that", "one after this"];
    let found = words.iter().find_map(|phrase| find_phrase(message, phrase))?;
    let pick = if message.word(found.start + 1) == "before" { Pick::Before } else { Pick::After };
    (message.words().len() <= 6).then_some((found, pick))
}

/// "stops at right after", "the stop before", "the next stop after"
fn neighbour(message: &Utterance) -> Option<Range<usize>> {
    (0..message.words().len()).find_map(|at| {
        if !matches!(message.word(at), "after" | "before" | "past") || at + 1 >= message.words().len() {
            return None;
        }
        let mut start = at;
        while start > 0
            && matches!(
                message.word(start - 1),
                "right"
                    | "just"
                    | "directly"
                    | "immediately"
                    | "straight"
                    | "comes"
                    | "come"
                    | "coming"
                    | "at"
                    | "is"
                    | "one"
                    | "next"
            )
        {
            start -= 1;
        }
        let noun = start.checked_sub(1)?;
        let is_stop = matches!(message.word(noun), "stop" | "stops" | "station");
        // "What is after Monument?"
        let asks = || {
            let refers =
                matches!(message.word(at + 1), "that" | "this" | "it" | "the" | "then" | "i" | "we" | "my" | "work");
            matches!(message.word(noun), "what" | "whats" | "which") && noun < 2 && !refers
        };
        // "And the one before Myrtle?" follows a question about another stop.
        let is_one = || {
            let leads = |at: usize| matches!(message.word(at), "and" | "n" | "ok" | "what" | "whats" | "about" | "is");
            message.word(start) == "one" && message.word(noun) == "the" && (0..noun).all(leads)
        };
        let is_asked = is_stop || is_one() || asks() && (start < at || message.word(noun) == "whats");
        is_asked.then_some(noun..at + 1)
    })
}

/// "the closest stop on the 1 that does", "nearest station with an elevator"
fn nearest(message: &Utterance) -> Option<Range<usize>> {
    let at = (0..message.words().len()).find(|at| {
        matches!(message.word(*at), "closest" | "nearest")
            && matches!(message.word(at + 1), "stop" | "station" | "one" | "accessible")
    })?;
    let has_access = [
        "that does",
        "that has",
        "which does",
        "which has",
        "with an",
        "with a",
        "that is",
        "accessible",
        "elevator",
        "lift",
    ];
    has_access.iter().any(|phrase| find_phrase(message, phrase).is_some()).then_some(at..at + 2)
}

/// "the first stop in Manhattan", "last one in Brooklyn"
fn border(message: &Utterance, area: Option<&(Range<usize>, String)>) -> Option<Range<usize>> {
    let (area, _) = area?;
    let first = (0..area.start).find(|at| matches!(message.word(*at), "first" | "last" | "1st" | "final"))?;
    let is_noun = matches!(message.word(first + 1), "stop" | "station" | "one");
    let gap = first + 2..area.start;
    let joins =
        gap.len() <= 3 && gap.clone().all(|at| matches!(message.word(at), "in" | "within" | "on" | "the" | "inside"));
    (is_noun && joins).then_some(first..first + 2)
}

/// "does it ever go into Manhattan", "does the G touch Manhattan"
fn goes_into(message: &Utterance, area: &Range<usize>) -> Option<Range<usize>> {
    const MAX_GAP: usize = 4;
    // "A stop in Manhattan" has no verb.
    let is_noun = |at: usize| at > 0 && matches!(message.word(at - 1), "a" | "any" | "the" | "one" | "no");
    let is_verb = |at: &usize| GOING.contains(&message.word(*at)) && !is_noun(*at);
    let verb = (area.start.saturating_sub(MAX_GAP)..area.start).rfind(is_verb)?;
    let gap = verb + 1..area.start;
    let joins = gap.clone().all(|at| {
        matches!(
            message.word(at),
            "in" | "into" | "to" | "through" | "thru" | "the" | "via" | "at" | "all" | "way" | "over" | "within"
        )
    });
    let asks = (0..verb).any(|at| matches!(message.word(at), "does" | "do" | "will" | "is" | "can" | "did"));
    let names_more = matches!(
        message.word(area.end),
        "bridge" | "museum" | "heights" | "plaza" | "college" | "bound" | "train" | "trains"
    );
    (joins && asks && !names_more).then_some(verb..area.end)
}

/// Returns the listing of a slot's value.
pub(super) fn listing(value: &serde_json::Value) -> Option<Listing> {
    serde_json::from_value(value.clone()).ok()
}

/// Whether a listing decides for the intent of a line's stops. "How many stops on the A" does not: after a trip, it asks about the
/// ride.
pub(super) fn decides(choice: &Choice, follows: bool) -> bool {
    listing(&choice.value).is_some_and(|listing| follows || !listing.follows && !listing.is_bare_count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(String, Pick, bool)> {
        let message = Utterance::new(text);
        let area = find_phrase(&message, "manhattan").map(|words| (words, "Manhattan".to_owned()));
        let (words, listing) = listing_of(&message, area.as_ref())?;
        Some((message.said(words).to_owned(), listing.pick, listing.follows))
    }

    #[test]
    fn questions_about_a_list_of_stops_are_found() {
        for (text, expected) in [
            ("could you list every stop on the L for me", Some(("list every stop", Pick::All, false))),
            ("how many's that in total", Some(("how many's that in total", Pick::Count, true))),
            ("which of them are in manhattan", Some(("which of them", Pick::All, true))),
            ("first stop in manhattan", Some(("first stop", Pick::Border, false))),
            ("which R stops do i pass between the two", Some(("which R stops", Pick::All, false))),
            ("yo wats the 3 stop at right after 96", Some(("stop at right after", Pick::After, false))),
            ("does this thing go into manhattan at all", Some(("go into manhattan", Pick::Whether, false))),
            ("how many stations does it have", Some(("how many stations", Pick::Count, false))),
            ("and the one before Oval?", Some(("the one before", Pick::Before, true))),
            ("what stops at canal", None),
            ("how many stops is it", None),
            ("is there a stop in manhattan", None),
            ("what stop do i get off", None),
        ] {
            let expected = expected.map(|(words, pick, follows)| (words.to_owned(), pick, follows));
            assert_eq!(found(text), expected, "{text}");
        }
    }
}
