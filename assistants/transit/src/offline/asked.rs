//! What a message asks for, as far as its words show it: a departure board, access, a saved place, a part of a route, or whether
//! something is so.

use serde_json::json;
use threadkeep::dialogue::{Choice, Mention, Utterance};

use super::Speech;

/// Words that ask for something else than the next train.
const NOT_DUE: [&str; 22] = [
    "how", "long", "arrive", "reach", "leave", "should", "if", "first", "last", "stops", "many", "transfer", "change",
    "switch", "save", "home", "work", "set", "off", "get", "by", "faster",
];
/// Words for lifts and access without steps.
const ACCESS: [&str; 18] = [
    "elevator",
    "elevators",
    "lift",
    "lifts",
    "wheelchair",
    "wheelchairs",
    "wheels",
    "accessible",
    "ada",
    "stairs",
    "steps",
    "ramp",
    "ramps",
    "stroller",
    "pram",
    "buggy",
    "chair",
    "stepfree",
];
/// Words of questions in which access is a condition or a state: a route, or a lift that is out of order.
const NOT_ACCESS: [&str; 30] = [
    "from", "get", "route", "way", "broken", "working", "works", "out", "fixed", "order", "running", "avoid", "go",
    "then", "line", "stops", "stations", "which", "without", "no", "change", "transfer", "switch", "between",
    "avoiding", "how", "take", "when", "next", "need",
];
/// Words for saved places, and the keys of the preferences.
const PLACES: [(&str, &str); 7] = [
    ("home", "home station"),
    ("house", "home station"),
    ("live", "home station"),
    ("work", "work station"),
    ("office", "work station"),
    ("job", "work station"),
    ("workplace", "work station"),
];

/// Phrases that ask for an aspect of the last answer, by its class.
pub const ASPECT_PHRASES: &[(&str, &[&str])] = &[
    (
        "ask:duration",
        &[
            "travel time",
            "ride time",
            "journey time",
            "trip time",
            "total time",
            "commute time",
            "how long",
            "how many minutes",
            "how much time",
            "minutes",
            "time",
            "duration",
            "total minutes",
            "total ride",
        ],
    ),
    (
        "ask:stops",
        &[
            "stop count",
            "station count",
            "count of stops",
            "how many stops",
            "number of stops",
            "how many stations",
            "total stops",
            "stops",
            "stations",
        ],
    ),
    (
        "ask:changes",
        &["how many changes", "how many transfers", "changes", "change", "transfer", "transfers", "where to change"],
    ),
    (
        "ask:arrive",
        &["arrival time", "time of arrival", "when do i arrive", "when do i get there", "when would i arrive"],
    ),
    ("ask:later", &["after that", "the next one", "the one after", "following one"]),
    ("ask:faster", &["which is quicker", "which is faster", "whichever is faster"]),
];

fn has(message: &Utterance, known: &[&str]) -> bool {
    message.words().iter().any(|word| known.contains(&word.folded.as_str()))
}

fn one(message: &Utterance, at: usize, value: serde_json::Value) -> Vec<Mention> {
    vec![Mention::incidental(at..at + 1, vec![Choice::new(value, message.said(at..at + 1))])]
}

impl Speech {
    /// Finds "when" in a message that only names a line with it: "G at Greenpoint Av heading to Church Av, when?"
    #[must_use]
    pub fn find_due(&self, message: &Utterance) -> Vec<Mention> {
        let count = message.words().len();
        let is_named = || (self.line_runs)(message).len() == 1 || self.names_direct_ride(message);
        if has(message, &NOT_DUE) || !is_named() {
            return Vec::new();
        }
        let last = count.checked_sub(1).filter(|at| matches!(message.word(*at), "when" | "whens"));
        last.map(|at| one(message, at, json!(true))).unwrap_or_default()
    }

    /// Whether a message names no line but two stations with a direct train: "from Dongan Hills to St George, when?"
    fn names_direct_ride(&self, message: &Utterance) -> bool {
        let stations = self.find_stations(message);
        let [from, to] = &stations[..] else { return false };
        let ([from], [to]) = (&from.choices[..], &to.choices[..]) else { return false };
        (self.line_runs)(message).is_empty() && self.has_direct_ride(from, to, &json!(null))
    }

    /// Finds "to" in a message that only names a line and where it goes, "5 to Dyre?", which asks for the next train of that ride.
    #[must_use]
    pub fn find_line_to(&self, message: &Utterance) -> Vec<Mention> {
        const CONNECTING: [&str; 10] = ["and", "n", "ok", "okay", "then", "so", "from", "at", "the", "a"];
        let runs = (self.line_runs)(message);
        let [run] = &runs[..] else { return Vec::new() };
        let (to, count) = (run.words.end, message.words().len());
        let stations = self.find_stations(message);
        let is_station = |at: usize| stations.iter().any(|mention| mention.words.contains(&at));
        let goes = matches!(message.word(to), "to" | "towards" | "toward")
            && to + 1 < count
            && (to + 1..count).all(is_station);
        let is_bare = (0..run.words.start).all(|at| is_station(at) || CONNECTING.contains(&message.word(at)));
        if run.lines.len() == 1 && goes && is_bare { one(message, to, json!(true)) } else { Vec::new() }
    }

    /// Finds the words with which a message asks whether the line under discussion stops at a station: "is Halsey St on it?"
    #[must_use]
    pub fn find_serves(&self, message: &Utterance) -> Vec<Mention> {
        let count = message.words().len();
        let is_line_word = |at: usize| matches!(message.word(at), "it" | "that" | "this" | "they" | "the");
        let on_it = (0..count).rfind(|at| message.word(*at) == "on" && is_line_word(at + 1)).filter(|at| {
            let rest = at + 2..count;
            let is_line = message.word(at + 1) == "it" && rest.is_empty()
                || rest.len() <= 2 && rest.clone().any(|at| matches!(message.word(at), "line" | "train" | "one"));
            is_line && has(message, &["is", "are", "still", "also"]) && (self.line_runs)(message).is_empty()
        });
        let calls = || {
            let asks = |at: usize| matches!(message.word(at), "does" | "do" | "will");
            let is_train = |at: usize| matches!(message.word(at), "it" | "that" | "this" | "they");
            let stops = |at: usize| matches!(message.word(at), "stop" | "stops" | "call" | "calls" | "halt");
            (0..count).find(|at| asks(*at) && is_train(at + 1) && (at + 2..at + 5).any(stops))
        };
        if has(message, &["how", "when", "which", "what", "where", "next"]) || self.area_in(message).is_some() {
            return Vec::new();
        }
        // "So it doesn't go to Howard Beach?"
        let is_denied = |at: &usize| {
            let goes = |at: usize| matches!(message.word(at), "go" | "stop" | "reach" | "serve" | "run" | "call");
            matches!(message.word(*at), "it" | "that" | "this" | "they")
                && matches!(message.word(at + 1), "doesnt" | "dont" | "wont")
                && (at + 2..at + 4).any(goes)
        };
        let denied = (0..count).find(is_denied).filter(|_| message.text().contains('?'));
        if let Some(at) = denied.filter(|_| !self.find_stations(message).is_empty()) {
            return one(message, at, json!(true));
        }
        if has(message, &["go"]) {
            return Vec::new();
        }
        // "Is the Jubilee not there then?"
        let is_there = || {
            let runs = (self.line_runs)(message);
            let [run] = &runs[..] else { return None };
            let mut end = run.words.end;
            while matches!(message.word(end), "not" | "also" | "still" | "train" | "line" | "even") {
                end += 1;
            }
            let rest =
                (end + 1..count).all(|at| matches!(message.word(at), "then" | "too" | "as" | "well" | "at" | "all"));
            let opens = (0..run.words.start).any(|at| matches!(message.word(at), "is" | "isnt"));
            (opens && rest && matches!(message.word(end), "there" | "here")).then_some(end - 1)
        };
        on_it
            .or_else(calls)
            .or_else(is_there)
            .or_else(|| self.line_before_stop(message))
            .or_else(|| self.line_that_stops(message))
            .map(|at| one(message, at, json!(true)))
            .unwrap_or_default()
    }

    /// Returns the position of "stop" in "does a Piccadilly train to Uxbridge stop at South Harrow?"
    fn line_that_stops(&self, message: &Utterance) -> Option<usize> {
        let runs = (self.line_runs)(message);
        let [run] = &runs[..] else { return None };
        let is_opening =
            |at: usize| matches!(message.word(at), "and" | "so" | "ok" | "right" | "but" | "the" | "a" | "an" | "any");
        let asks = (0..run.words.start).find(|at| matches!(message.word(*at), "does" | "do" | "will" | "would"))?;
        let opens = (0..run.words.start).all(|at| at == asks || is_opening(at));
        let at = (run.words.end..message.words().len())
            .find(|at| matches!(message.word(*at), "stop" | "call") && message.word(at + 1) == "at")?;
        let stations = self.find_stations(message);
        let is_between = |at: usize| {
            matches!(
                message.word(at),
                "train" | "trains" | "one" | "line" | "to" | "towards" | "also" | "even" | "still"
            ) || stations.iter().any(|mention| mention.words.contains(&at))
        };
        let is_place = stations.last().is_some_and(|mention| mention.words.start == at + 2);
        (opens && is_place && (run.words.end..at).all(is_between)).then_some(at)
    }

    /// Returns the position of "stop" in "2 stop Pelham Pkwy?": a line, the verb, and a station.
    fn line_before_stop(&self, message: &Utterance) -> Option<usize> {
        let runs = (self.line_runs)(message);
        let [run] = &runs[..] else { return None };
        let at = run.words.end;
        let opens =
            (0..run.words.start).all(|at| matches!(message.word(at), "and" | "n" | "so" | "ok" | "does" | "the"));
        let start = if message.word(at + 1) == "at" { at + 2 } else { at + 1 };
        let count = message.words().len();
        let stations = self.find_stations(message);
        let is_station = stations.iter().any(|mention| mention.words == (start..count));
        (opens && matches!(message.word(at), "stop" | "stops") && is_station).then_some(at)
    }

    /// Finds the words with which a message asks about all trains of a line, "does every A go there?", or about all stations with a
    /// name, "which 23rd St does?".
    #[must_use]
    pub fn find_every(&self, message: &Utterance) -> Vec<Mention> {
        if let Some(at) = self.which_of_same_name(message) {
            return one(message, at, json!(true));
        }
        let runs = (self.line_runs)(message);
        let is_every = |at: &usize| {
            let of = at + 1..at + 4;
            matches!(message.word(*at), "every" | "all" | "each")
                && (runs.iter().any(|run| of.contains(&run.words.start))
                    || matches!(message.word(at + 1), "trains" | "train"))
        };
        let asks = || message.text().contains('?') || has(message, &["do", "does", "is", "are"]);
        let at = (0..message.words().len()).find(is_every).filter(|_| asks());
        at.map(|at| one(message, at, json!(true))).unwrap_or_default()
    }

    /// Returns the position of "which" before a name that several stations share, if the rest only asks whether it "does" or "has one".
    fn which_of_same_name(&self, message: &Utterance) -> Option<usize> {
        const REST: [&str; 14] = [
            "does",
            "has",
            "have",
            "is",
            "one",
            "it",
            "an",
            "a",
            "elevator",
            "lift",
            "accessible",
            "the",
            "then",
            "are",
        ];
        let count = message.words().len();
        let at = (0..count).find(|at| matches!(message.word(*at), "which" | "what"))?;
        let is_article = matches!(message.word(at + 1), "of" | "the");
        let start = if is_article { at + 2 } else { at + 1 };
        let stations = self.find_stations(message);
        let named = stations.iter().find(|mention| mention.words.start == start)?;
        let is_shared = named.choices.len() > 1 || named.choices.iter().any(|choice| !choice.others.is_empty());
        let rest = named.words.end..count;
        let only_asks = !rest.is_empty() && rest.into_iter().all(|at| REST.contains(&message.word(at)));
        (is_shared && only_asks).then_some(at)
    }

    /// Finds the words with which a message asks whether a line goes somewhere: "can the C take me there?"
    #[must_use]
    pub fn find_whether(&self, message: &Utterance) -> Vec<Mention> {
        const AUXILIARIES: [&str; 8] = ["can", "could", "does", "do", "will", "would", "is", "are"];
        const OPEN: [&str; 13] =
            ["how", "what", "whats", "which", "when", "where", "why", "who", "long", "faster", "quicker", "or", "many"];
        let is_question = message.text().contains('?');
        let names_line = || !(self.line_runs)(message).is_empty() || !super::find_direct(message).is_empty();
        if has(message, &OPEN) || !is_question || !names_line() {
            return Vec::new();
        }
        let auxiliary = (0..message.words().len()).find(|at| AUXILIARIES.contains(&message.word(*at)));
        auxiliary.map(|at| one(message, at, json!(true))).unwrap_or_default()
    }
}

/// Finds a question about the duration of a ride: "how long on the 3?", "minutes on the A to Howard Beach". A question about the
/// wait, such as "how long until the next 6", is not about a ride.
#[must_use]
pub fn find_ride_time(message: &Utterance) -> Vec<Mention> {
    const OF_RIDES: [&str; 16] = [
        "on", "with", "total", "ride", "rides", "take", "takes", "taking", "need", "needs", "to", "from", "trip",
        "journey", "between", "that",
    ];
    const NOT_OF_RIDES: [&str; 36] = [
        "until", "till", "til", "wait", "waiting", "before", "next", "away", "late", "since", "ago", "leave", "leaves",
        "due", "come", "comes", "coming", "arrive", "arrives", "arrival", "last", "open", "first", "delay", "delayed",
        "delays", "running", "when", "whens", "be", "for", "has", "at", "or", "vs", "faster",
    ];
    let count = message.words().len();
    let follows = |at: usize, words: &[&str]| words.iter().enumerate().all(|(i, word)| message.word(at + i) == *word);
    let asked = (0..count).find(|at| {
        let asks = follows(*at, &["how", "long"])
            || follows(*at, &["how", "many", "minutes"])
            || follows(*at, &["how", "many", "mins"])
            || follows(*at, &["how", "much", "time"]);
        let is_first = *at == 0 && matches!(message.word(0), "minutes" | "mins") && message.word(1) != "to";
        let of_ride = [
            "ride time",
            "travel time",
            "total ride",
            "journey time",
            "trip time",
            "time on board",
            "how much minutes",
        ];
        let names_time = of_ride.iter().any(|phrase| follows(*at, &phrase.split(' ').collect::<Vec<_>>()));
        asks || is_first || names_time
    });
    let is_of_ride = |at: &usize| {
        let ends = |at: &usize| message.words()[*at].ends_a_sentence();
        let start = (0..*at).rfind(ends).map_or(0, |end| end + 1);
        let end = (*at..count).find(ends).map_or(count, |end| end + 1);
        let within = |known: &[&str]| (start..end).any(|at| known.contains(&message.word(at)));
        // "How many minutes until Grand Central with the 7" is about the ride.
        let is_until_place = |at: usize| {
            const TRAINS: [&str; 12] =
                ["the", "next", "it", "a", "an", "my", "i", "we", "another", "this", "that", "then"];
            matches!(message.word(at), "until" | "till" | "til")
                && !message.word(at + 1).is_empty()
                && !TRAINS.contains(&message.word(at + 1))
                && within(&["with", "on", "by"])
        };
        let is_other = |at: usize| NOT_OF_RIDES.contains(&message.word(at)) && !is_until_place(at);
        within(&OF_RIDES) && !(start..end).any(is_other)
    };
    asked.filter(is_of_ride).map(|at| one(message, at, json!(true))).unwrap_or_default()
}

/// Finds the word of a message that asks for a train on the way back: "for my way home, the next G at Hoyt", "going back from there,
/// next 2".
#[must_use]
pub fn find_back(message: &Utterance) -> Vec<Mention> {
    let is_back = |at: &usize| {
        let before = at.checked_sub(1).map_or("", |before| message.word(before));
        match message.word(*at) {
            "back" => !matches!(before, "get" | "gets" | "the" | "come" | "to"),
            "home" => matches!(before, "way" | "trip" | "ride" | "journey"),
            "return" => matches!(before, "the" | "my" | "for" | "on"),
            _ => false,
        }
    };
    // "Back to the ferry" names the direction.
    let names_end = |at: &usize| matches!(message.word(at + 1), "to" | "towards" | "toward" | "into" | "at" | "in");
    let names_start = has(message, &["at", "from", "off"]);
    let at = (0..message.words().len()).find(is_back).filter(|at| names_start && !names_end(at));
    at.map(|at| one(message, at, json!(true))).unwrap_or_default()
}

/// Finds a question about access to one station: "is 135 ok for wheels", "any elevator there?"
#[must_use]
pub fn find_access(message: &Utterance) -> Vec<Mention> {
    // "Can I use Classon Av" asks about the station, "use stairs" is a condition.
    let is_condition = has(message, &["use"]) && !uses_station(message);
    if has(message, &NOT_ACCESS) || is_condition {
        return Vec::new();
    }
    let at = (0..message.words().len()).find(|at| ACCESS.contains(&message.word(*at)));
    let asks = has(message, &["is", "does", "has", "have", "any", "would", "can", "could", "are"])
        || message.text().contains('?');
    at.filter(|_| asks).map(|at| one(message, at, json!(true))).unwrap_or_default()
}

/// Whether a message asks if the user can use something, such as a station.
fn uses_station(message: &Utterance) -> bool {
    let is_asked = |at: usize| {
        matches!(message.word(at), "can" | "could")
            && matches!(message.word(at + 1), "i" | "we" | "she" | "he" | "they")
    };
    (0..message.words().len())
        .any(|at| is_asked(at) && message.word(at + 2) == "use" && !ACCESS.contains(&message.word(at + 3)))
}

/// Finds a question about saved places: "read me back what you saved for home and work", "where do I live?"
#[must_use]
pub fn find_recall(message: &Utterance) -> Vec<Mention> {
    const ASKING: [&str; 9] = ["where", "wheres", "what", "whats", "which", "read", "remind", "repeat", "tell"];
    const SAVED: [&str; 10] =
        ["saved", "stored", "told", "tell", "said", "remember", "remembered", "noted", "save", "according"];
    let count = message.words().len();
    let first = (0..count.min(3)).find(|at| ASKING.contains(&message.word(*at)));
    let named = (0..count).filter_map(|at| {
        let (_, key) = PLACES.iter().find(|(word, _)| *word == message.word(at))?;
        Some((at, *key))
    });
    let named: Vec<(usize, &str)> = named.collect();
    let lives = (0..count).any(|at| {
        let says = |at: usize| message.word(at) == "do" || message.word(at) == "say" || message.word(at) == "said";
        says(at) && message.word(at + 1) == "i" && matches!(message.word(at + 2), "live" | "work")
    });
    // "Is home still what it was?" must not save anything.
    let is_subject = |at: usize| {
        at == 0 || matches!(message.word(at - 1), "my" | "is" | "are" | "and" | "so" | "ok" | "okay" | "but")
    };
    let is_still = has(message, &["still"])
        && message.text().trim_end().ends_with('?')
        && named.first().is_some_and(|(at, _)| is_subject(*at));
    let asks = is_still || first.is_some() && (has(message, &SAVED) || lives);
    let is_of_trip = has(message, &["get", "train", "trains", "line", "route", "from", "next", "long"]);
    match named.first() {
        Some((at, _)) if asks && !is_of_trip => {
            let mut keys: Vec<&str> = named.iter().map(|(_, key)| *key).collect();
            keys.dedup();
            // "I live" is one phrase.
            let start = if *at > 0 && message.word(at - 1) == "i" { at - 1 } else { *at };
            let words = start..named.last().map_or(*at, |(last, _)| *last) + 1;
            vec![Mention::incidental(words.clone(), vec![Choice::new(json!(keys), message.said(words))])]
        }
        _ => Vec::new(),
    }
}

/// Finds the words for a part of a route: "the L bit", "the first leg".
#[must_use]
pub fn find_legs(message: &Utterance) -> Vec<Mention> {
    let is_noun = |at: &usize| {
        matches!(message.word(*at), "bit" | "part" | "leg" | "portion" | "stretch" | "section" | "segment")
    };
    if let Some(at) = until_change(message) {
        return one(message, at, json!("first"));
    }
    let Some(at) = (1..message.words().len()).find(is_noun) else { return Vec::new() };
    let which = match message.word(at - 1) {
        "first" | "1st" => "first",
        "second" | "2nd" => "second",
        "last" | "final" => "last",
        "the" | "a" | "that" | "this" | "my" | "any" | "good" | "little" | "other" | "which" | "what" => {
            return Vec::new();
        }
        _ => "line",
    };
    one(message, at, json!(which))
}

/// Returns the position of "before" in "how long before I switch": that is the first ride.
fn until_change(message: &Utterance) -> Option<usize> {
    const MAX_GAP: usize = 4;
    let is_change = |at: usize| {
        matches!(message.word(at), "switch" | "change" | "transfer" | "changing" | "switching" | "transferring")
    };
    let is_bound = |at: &usize| matches!(message.word(*at), "before" | "until" | "till" | "til");
    let asks = has(message, &["how", "long", "many", "stops", "minutes"]);
    let found = (0..message.words().len()).filter(is_bound).find(|at| (at + 1..at + 1 + MAX_GAP).any(is_change));
    found.filter(|_| asks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_found() {
        let values = |find: fn(&Utterance) -> Vec<Mention>, text: &str| {
            find(&Utterance::new(text)).first().map(|mention| mention.choices[0].value.to_string())
        };
        assert_eq!(values(find_access, "is 135 ok for wheels").as_deref(), Some("true"));
        assert_eq!(values(find_access, "are the elevators at 135 working"), None);
        let both = "read me back what you saved for home & work";
        assert_eq!(values(find_recall, both).as_deref(), Some(r#"["home station","work station"]"#));
        let home = values(find_recall, "where do I live, according to you?");
        assert_eq!(home.as_deref(), Some(r#"["home station"]"#));
        let said = find_recall(&Utterance::new("where did i say i live"));
        assert_eq!(said.first().map(|mention| mention.words.clone()), Some(4..6));
        let still = values(find_recall, "and home is still what it was?");
        assert_eq!(still.as_deref(), Some(r#"["home station"]"#));
        assert_eq!(values(find_recall, "how do I get home"), None);
        for text in ["do I still get home by 7?", "does the L still work?", "are you still at work?"] {
            assert_eq!(values(find_recall, text), None, "{text}");
        }
        for text in [
            "ride time to GC?",
            "how much minutes until Grand Central with the 7",
            "how long on the 3?",
            "Minutes on the A to Howard Beach?",
            "J to marcy is how many minutes",
        ] {
            assert!(values(find_ride_time, text).is_some(), "{text}");
        }
        for text in ["how long until the next 6", "how long for the 6", "how many minutes", "when is the 6 to Astor"] {
            assert_eq!(values(find_ride_time, text), None, "{text}");
        }
        assert!(values(find_back, "for my way home, the next G at Hoyt?").is_some());
        assert_eq!(values(find_back, "next back to the ferry"), None);
        assert_eq!(values(find_legs, "the L bit, how many minutes is that").as_deref(), Some(r#""line""#));
        assert_eq!(values(find_legs, "how soon is the first leg").as_deref(), Some(r#""first""#));
    }
}
