//! Word lists with which the offline model interprets messages.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Words of ordinary questions, one topic per line. The search for station names skips them, unless a known name
/// contains them.
static ORDINARY_WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let lines = include_str!("ordinary-words.txt").lines().filter_map(|line| line.split_once(':'));
    lines.flat_map(|(_, words)| words.split_whitespace()).collect()
});

/// Whether a word is one of ordinary questions, so it is not part of an unknown name.
pub(super) fn is_ordinary(word: &str) -> bool {
    ORDINARY_WORDS.contains(word)
}

/// Words after which a place is expected.
pub(super) const PLACE_CUES: &[&str] =
    &["from", "to", "at", "near", "via", "in", "of", "for", "toward", "towards", "leaving"];

/// Words that follow an amount, as in "20 min": the number before them is not a street.
pub const UNITS: &[&str] =
    &["min", "mins", "minute", "minutes", "hour", "hours", "am", "pm", "stops", "changes", "people", "days", "blocks"];

/// Words that can join the parts of a name: "Myrtle and Wyckoff".
pub(super) const CONTINUATION_WORDS: &[&str] = &["and", "in", "at", "of", "on"];

/// Words that never name a station by themselves, even after "to" or "at".
pub(super) const NON_PLACE_WORDS: &[&str] = &[
    "hotel",
    "hostel",
    "airbnb",
    "bus",
    "terminal",
    "airport",
    "another",
    "anything",
    "city",
    "ferry",
    "latest",
    "least",
    "moment",
    "night",
    "nyc",
    "once",
    "place",
    "school",
    "station",
    "stop",
    "street",
    "town",
    "weekend",
    "weekends",
    "york",
    "new",
    "everything",
    "bed",
    "st",
    "ave",
    "av",
    "manhattan",
    "brooklyn",
    "queens",
    "bronx",
    "peak",
    "rush",
];

/// Words that occur both in station names and in ordinary sentences. Alone, they name a station only where a name is
/// expected, such as after "to".
pub(super) const COMMON_WORDS: &[&str] = &[
    "little",
    "times",
    "high",
    "grand",
    "park",
    "broad",
    "main",
    "church",
    "court",
    "union",
    "central",
    "wall",
    "bay",
    "beach",
    "hall",
    "city",
    "old",
    "east",
    "west",
    "north",
    "south",
    "great",
    "forest",
    "ocean",
    "avenue",
    "mets",
    "spring",
    "prince",
    "college",
    "museum",
    "island",
    "world",
    "trade",
    "center",
    "village",
    "middle",
    "garden",
    "gardens",
    "field",
    "market",
    "game",
    "stadium",
    "plaza",
    "square",
    "road",
    "lane",
    "point",
    "hills",
    "heights",
    "bridge",
    "canal",
    "water",
    "franklin",
    "washington",
    "clinton",
    "jefferson",
    "lafayette",
    "lincoln",
    "hunter",
    "fulton",
    "wilson",
    "graham",
    "morgan",
    "liberty",
    "rector",
    "president",
    "sterling",
    "nassau",
    "crescent",
    "cleveland",
    "alabama",
    "hewes",
    "bank",
    "angel",
    "oval",
    "temple",
    "monument",
    "arsenal",
    "reading",
    "northern",
    "southern",
    "eastern",
    "western",
];

/// Words for saved places, and the preference keys they refer to.
pub(super) const SAVED_PLACES: &[(&str, &str)] =
    &[("home", "home station"), ("work", "work station"), ("office", "work station")];

/// Words that indicate a question about travel or trains.
pub(super) const TRAVEL_WORDS: &[&str] = &[
    "get",
    "go",
    "going",
    "take",
    "travel",
    "ride",
    "train",
    "trains",
    "subway",
    "station",
    "stations",
    "route",
    "directions",
    "way",
    "arrivals",
    "departures",
    "fastest",
    "quickest",
    "stop",
    "stops",
    "head",
    "heading",
    "accessible",
    "elevator",
];

/// Words that indicate a question about the present.
pub(super) const NOW_WORDS: &[&str] = &["now", "asap", "currently", "immediately", "next", "leaving"];

/// Whether a word is an ordinal.
pub(super) fn is_ordinal(word: &str) -> bool {
    matches!(
        word,
        "first" | "second" | "third" | "fourth" | "fifth" | "sixth" | "seventh" | "1st" | "2nd" | "3rd" | "4th" | "5th"
    )
}

/// Whether an ordinal before this word counts: "the second one", "and the third".
pub(super) fn is_ordinary_after_ordinal(word: &str) -> bool {
    matches!(
        word,
        "" | "one"
            | "ones"
            | "train"
            | "trains"
            | "option"
            | "stop"
            | "time"
            | "thing"
            | "way"
            | "of"
            | "half"
            | "part"
            | "leg"
            | "bit"
            | "ride"
            | "portion"
            | "change"
            | "from"
            | "after"
    )
}
