//! Corrects misspelt and abbreviated words that are not names.

use threadkeep::dialogue::Utterance;

use super::Speech;
use super::words::{NON_PLACE_WORDS, SAVED_PLACES, is_ordinary};

/// Abbreviations in chats, and the words that they stand for.
const ABBREVIATIONS: [(&str, &str); 152] = [
    ("ment", "meant"),
    ("dos", "does"),
    ("duz", "does"),
    ("norf", "north"),
    ("souf", "south"),
    ("wich", "which"),
    ("skool", "school"),
    ("wenz", "whens"),
    ("wots", "whats"),
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
    ("fr", "from"),
    ("abt", "about"),
    ("insted", "instead"),
    ("insead", "instead"),
    ("sry", "sorry"),
    ("srry", "sorry"),
    ("soz", "sorry"),
    ("k", "ok"),
    ("kk", "ok"),
    ("okey", "ok"),
    ("nite", "night"),
    ("nites", "nights"),
    ("overnite", "overnight"),
    ("tonite", "tonight"),
    ("2nite", "tonight"),
    ("2moro", "tomorrow"),
    ("tmrw", "tomorrow"),
    ("tmr", "tomorrow"),
    ("tomoz", "tomorrow"),
    ("tmw", "tomorrow"),
    ("dt", "downtown"),
    ("dwntwn", "downtown"),
    ("dwntn", "downtown"),
    ("dntn", "downtown"),
    ("dntwn", "downtown"),
    ("dtown", "downtown"),
    ("downtwn", "downtown"),
    ("uptwn", "uptown"),
    ("uptn", "uptown"),
    ("tht", "that"),
    ("dat", "that"),
    ("wat", "what"),
    ("wut", "what"),
    ("wot", "what"),
    ("wots", "whats"),
    ("whr", "where"),
    ("wher", "where"),
    ("manh", "manhattan"),
    ("manhtn", "manhattan"),
    ("mnhtn", "manhattan"),
    ("manhatan", "manhattan"),
    ("manhattn", "manhattan"),
    ("bklyn", "brooklyn"),
    ("bkln", "brooklyn"),
    ("brklyn", "brooklyn"),
    ("elvtr", "elevator"),
    ("elev", "elevator"),
    ("elevs", "elevators"),
    ("elevater", "elevator"),
    ("elavator", "elevator"),
    ("whlchr", "wheelchair"),
    ("u", "you"),
    ("ur", "your"),
    ("pls", "please"),
    ("plz", "please"),
    ("ty", "thanks"),
    ("thx", "thanks"),
    ("thnx", "thanks"),
    ("tks", "thanks"),
    ("cya", "bye"),
    ("b4", "before"),
    ("trian", "train"),
    ("trians", "trains"),
    ("trane", "train"),
    ("dir", "direction"),
    ("tix", "tickets"),
    ("xfer", "transfer"),
    ("xfr", "transfer"),
    ("trnsfr", "transfer"),
    ("arr", "arrive"),
    ("dep", "depart"),
    ("platf", "platform"),
    ("svc", "service"),
    ("sched", "schedule"),
    ("hrs", "hours"),
    ("svd", "saved"),
    ("goin", "going"),
    ("comin", "coming"),
    ("runnin", "running"),
    ("gettin", "getting"),
    ("takin", "taking"),
    ("leavin", "leaving"),
    ("stoppin", "stopping"),
    ("changin", "changing"),
    ("cuz", "because"),
    ("cos", "because"),
    ("coz", "because"),
    ("bc", "because"),
    ("gonna", "going"),
    ("gotta", "must"),
    ("lemme", "let"),
    ("dunno", "know"),
    ("yrs", "years"),
    ("mny", "many"),
    ("lng", "long"),
    ("fst", "fast"),
    ("qck", "quick"),
    ("quikest", "quickest"),
    ("fastst", "fastest"),
    ("bttr", "better"),
    ("stil", "still"),
    ("tru", "through"),
    ("wknd", "weekend"),
    ("wknds", "weekends"),
    ("wkend", "weekend"),
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
        if message.said(at..at + 1) == "2" && self.is_preposition(message, at) {
            return Some("to".to_owned());
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

    /// Whether the "2" of a text message stands for "to": "jay st 2 bway jct", "2 grand central how long".
    fn is_preposition(&self, message: &Utterance, at: usize) -> bool {
        let before = at.checked_sub(1).map_or("", |before| message.word(before));
        let (next, after) = (message.word(at + 1), message.word(at + 2));
        let is_joined = at > 0 && {
            let words = message.words();
            let between = &message.text()[words[at - 1].span.end..words[at].span.start];
            between.trim().is_empty()
        };
        // In "1 2 3" and "the 2 or 3", it is a line; "2 Av" is a station.
        let is_listed = next.len() == 1 || before.len() == 1 && before.bytes().all(|byte| byte.is_ascii_digit());
        let is_name = |word: &str| {
            let is_street = word.len() > 1 && word.starts_with(|c: char| c.is_ascii_digit());
            let is_short = ABBREVIATIONS.iter().any(|(short, _)| *short == word);
            let is_spelled = || word.len() > 2 && (self.is_in_a_name(word) || !is_ordinary(word));
            is_street || !is_short && is_spelled()
        };
        let starts_name =
            is_name(next) || next == "the" && is_name(after) || SAVED_PLACES.iter().any(|(word, _)| *word == next);
        let is_street = matches!(
            next,
            "av" | "ave" | "avenue" | "train" | "trains" | "line" | "bound" | "stop" | "stops" | "from" | "at"
        );
        let is_line =
            BEFORE_LINE.contains(&before) && !matches!(before, "that" | "this") || matches!(before, "does" | "do");
        starts_name && !is_street && !is_listed && !is_line && (at == 0 || is_joined)
    }

    /// Whether a station's name contains a word.
    fn is_in_a_name(&self, word: &str) -> bool {
        let mut stations = (self.system.network)().stations().iter();
        stations.any(|station| Utterance::new(station.name.as_str()).words().iter().any(|known| known.folded == word))
    }
}

/// Whether "2" between these words means "to": "court sq 2 church ave", rather than the line.
fn is_between_places(before: &str, next: &str) -> bool {
    const BEFORE_LINE: [&str; 16] = [
        "the", "next", "a", "this", "that", "or", "and", "on", "last", "first", "which", "another", "with", "n", "vs",
        "nxt",
    ];
    let has_letter = |word: &str| word.chars().any(char::is_alphabetic);
    !before.is_empty() && !BEFORE_LINE.contains(&before) && has_letter(next) && !is_ordinary(next)
}

/// Returns what "2" and "n" stand for in their context: "how 2 get", "72 n broadway".
fn in_context(message: &Utterance, at: usize) -> Option<&'static str> {
    let before = at.checked_sub(1).map_or("", |before| message.word(before));
    let next = message.word(at + 1);
    match message.said(at..at + 1) {
        "2" if matches!(before, "how" | "go" | "get" | "want" | "need" | "back") => Some("to"),
        "2" if matches!(next, "manhattan" | "manhatan" | "brooklyn" | "queens" | "bronx") => Some("to"),
        "2" if is_between_places(before, next) => Some("to"),
        "hm" if matches!(
            next,
            "stops" | "stop" | "stations" | "station" | "stn" | "mins" | "min" | "minutes" | "changes"
        ) =>
        {
            Some("many")
        }
        "hm" if next.is_empty() && at > 1 => Some("long"),
        "bk" if matches!(next, "bound" | "side" | "way") || matches!(before, "to" | "into" | "in" | "2") => {
            Some("brooklyn")
        }
        "bx" if next == "bound" || matches!(before, "to" | "into" | "in" | "2") => Some("bronx"),
        "gr" if next.starts_with("cent") => Some("grand"),
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
