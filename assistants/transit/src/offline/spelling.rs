//! Corrects misspelt and abbreviated words that are not names.

use threadkeep::dialogue::Utterance;

use super::Speech;
use super::words::{NON_PLACE_WORDS, is_ordinary};

/// Abbreviations in chats, and the words that they stand for.
const ABBREVIATIONS: [(&str, &str); 40] = [
    ("rn", "now"),
    ("atm", "now"),
    ("frm", "from"),
    ("fom", "from"),
    ("form", "from"),
    ("nxt", "next"),
    ("nex", "next"),
    ("agn", "again"),
    ("trn", "train"),
    ("trns", "trains"),
    ("trains", "trains"),
    ("stn", "station"),
    ("sta", "station"),
    ("whn", "when"),
    ("wen", "when"),
    ("wht", "what"),
    ("wats", "whats"),
    ("wuts", "whats"),
    ("hw", "how"),
    ("gt", "get"),
    ("ther", "there"),
    ("thru", "through"),
    ("btwn", "between"),
    ("btw", "btw"),
    ("mins", "minutes"),
    ("nb", "northbound"),
    ("sb", "southbound"),
    ("northbnd", "northbound"),
    ("southbnd", "southbound"),
    ("eastbnd", "eastbound"),
    ("westbnd", "westbound"),
    ("shud", "should"),
    ("shld", "should"),
    ("wud", "would"),
    ("cud", "could"),
    ("wanna", "want"),
    ("prob", "problem"),
    ("probs", "problems"),
    ("info", "information"),
    ("acessible", "accessible"),
];

/// Words that are often misspelt.
const WORDS: [&str; 104] = [
    "train",
    "trains",
    "station",
    "stations",
    "status",
    "northbound",
    "southbound",
    "eastbound",
    "westbound",
    "uptown",
    "downtown",
    "between",
    "arrive",
    "arrives",
    "arriving",
    "arrival",
    "arrivals",
    "leave",
    "leaving",
    "accessible",
    "elevator",
    "elevators",
    "escalator",
    "wheelchair",
    "stairs",
    "delays",
    "delay",
    "delayed",
    "problem",
    "problems",
    "issues",
    "running",
    "instead",
    "transfer",
    "transfers",
    "change",
    "changes",
    "express",
    "local",
    "minutes",
    "tomorrow",
    "tonight",
    "without",
    "avoid",
    "avoiding",
    "faster",
    "fastest",
    "quicker",
    "quickest",
    "reverse",
    "direction",
    "directions",
    "opposite",
    "again",
    "other",
    "another",
    "after",
    "before",
    "should",
    "which",
    "where",
    "there",
    "platform",
    "service",
    "closed",
    "closure",
    "suspended",
    "disruption",
    "disruptions",
    "subway",
    "underground",
    "overground",
    "timetable",
    "weekend",
    "morning",
    "evening",
    "nearest",
    "please",
    "thanks",
    "meant",
    "actually",
    "sorry",
    "remember",
    "favorite",
    "favourite",
    "usual",
    "about",
    "going",
    "manhattan",
    "brooklyn",
    "queens",
    "schedule",
    "often",
    "first",
    "stops",
    "lines",
    "branch",
    "towards",
    "toward",
    "starting",
    "stopping",
    "heading",
    "coming",
    "travel",
];

/// Words that look like misspellings but are not.
const OTHER_WORDS: [&str; 24] = [
    "drain", "drains", "brain", "brains", "grain", "trail", "trails", "charge", "charges", "chance", "states", "stars",
    "relay", "their", "mother", "brother", "father", "alter", "linen", "limes", "tunnel", "shops", "steps", "witch",
];

/// Words after which "n" is the line N.
const BEFORE_LINE: [&str; 22] = [
    "the", "next", "a", "on", "take", "via", "avoid", "without", "no", "not", "uptown", "downtown", "any", "this",
    "that", "last", "or", "vs", "if", "is", "and", "with",
];
const AFTER_LINE: [&str; 14] = [
    "train", "trains", "line", "or", "vs", "local", "express", "runs", "running", "delayed", "stop", "stops", "at",
    "uptown",
];

impl Speech {
    /// Returns the intended word for a misspelt or abbreviated word; `None` if the word needs no correction or is part
    /// of a name.
    #[must_use]
    pub fn correct(&self, message: &Utterance, at: usize) -> Option<String> {
        let word = message.word(at);
        if let Some(meant) = in_context(message, at) {
            return Some(meant.to_owned());
        }
        if let Some((_, meant)) = ABBREVIATIONS.iter().find(|(short, _)| *short == word) {
            return Some((*meant).to_owned());
        }
        let is_known = |word: &str| {
            WORDS.contains(&word)
                || self.line_words.contains(&word)
                || is_ordinary(word)
                || NON_PLACE_WORDS.contains(&word)
                || OTHER_WORDS.contains(&word)
        };
        if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) || is_known(word) {
            return None;
        }
        let words = || WORDS.iter().chain(self.line_words);
        let is_close = |known: &&&str| {
            known.len() >= 5 && known.len().abs_diff(word.len()) <= 1 && strsim::osa_distance(known, word) == 1
        };
        let mut close = words().filter(is_close);
        let meant = close.next().filter(|_| close.next().is_none())?;
        (!self.is_in_a_name(word)).then(|| (*meant).to_owned())
    }

    /// Whether a station's name contains a word.
    fn is_in_a_name(&self, word: &str) -> bool {
        let mut stations = (self.system.network)().stations().iter();
        stations.any(|station| Utterance::new(station.name.as_str()).words().iter().any(|known| known.folded == word))
    }
}

/// Returns what "2" and "n" stand for in their context: "how 2 get", "72 n broadway".
fn in_context(message: &Utterance, at: usize) -> Option<&'static str> {
    let before = at.checked_sub(1).map_or("", |before| message.word(before));
    let next = message.word(at + 1);
    match message.said(at..at + 1) {
        "2" if matches!(before, "how" | "go" | "get" | "want" | "need" | "back") => Some("to"),
        "2" if matches!(next, "manhattan" | "manhatan" | "brooklyn" | "queens" | "bronx") => Some("to"),
        "their" if matches!(before, "from" | "at") || before == "to" && next.is_empty() => Some("there"),
        "nd" if !before.ends_with(|c: char| c.is_ascii_digit()) => Some("and"),
        "n" => {
            let is_listed = before.len() == 1 && before.bytes().all(|byte| byte.is_ascii_alphabetic());
            let is_line = BEFORE_LINE.contains(&before) || AFTER_LINE.contains(&next) || next.is_empty() || is_listed;
            (!is_line).then_some("and")
        }
        _ => None,
    }
}
