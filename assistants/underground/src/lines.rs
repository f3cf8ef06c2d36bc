//! The lines of London's network: ids, names, agents, and how riders name them.

use std::sync::LazyLock;

use threadkeep::dialogue::{Choice, Extractor as _, Mention, Names, Utterance};
use threadkeep_transit::offline::{LineRun, group_lines};
use threadkeep_transit::{Line, QueryError};

use crate::network::{gazetteer, network, place_choices};

/// The agent that answers questions about the whole network.
pub const STATUS_AGENT: &str = "STATUS";
/// The agent that is stored with an answer to which several agents contributed.
pub const COLLABORATIVE_AGENT: &str = "COLLABORATIVE";
/// TfL's name of each mode, as requests list them.
pub const MODES: &str = "tube,dlr,overground,elizabeth-line";

/// A line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineInfo {
    /// TfL's id.
    pub id: &'static str,
    /// The name for users, such as "Victoria line".
    pub name: &'static str,
    /// The name of its agent: the id in capitals, with `_` instead of `-`.
    pub agent: &'static str,
    /// Whether timetables with running times are built in.
    pub has_timetable: bool,
    /// Names that always mean the line.
    names: &'static [&'static str],
    /// A name that can also mean something else, such as a station.
    shared_name: Option<&'static str>,
}

/// All lines, in the order in which lists show them.
pub const LINES: [LineInfo; 19] = [
    line("bakerloo", "Bakerloo line", "BAKERLOO", &["bakerloo", "bakerlo", "bakeloo", "bakerlow"], None),
    line("central", "Central line", "CENTRAL", &["central line", "central tube"], Some("central")),
    line("circle", "Circle line", "CIRCLE", &["circle line"], Some("circle")),
    line("district", "District line", "DISTRICT", &["district line"], Some("district")),
    line(
        "hammersmith-city",
        "Hammersmith & City line",
        "HAMMERSMITH_CITY",
        &[
            "hammersmith and city",
            "hammersmith city",
            "hammersmith n city",
            "h and c",
            "h c line",
            "h c",
            "h and city",
            "hc line",
            "ham and city",
        ],
        None,
    ),
    line("jubilee", "Jubilee line", "JUBILEE", &["jubilee", "jubillee", "jubilly", "jubliee"], None),
    line(
        "metropolitan",
        "Metropolitan line",
        "METROPOLITAN",
        &["metropolitan", "met line", "metropolitain"],
        Some("met"),
    ),
    line("northern", "Northern line", "NORTHERN", &["northern line", "nothern line", "misery line"], Some("northern")),
    line(
        "piccadilly",
        "Piccadilly line",
        "PICCADILLY",
        &["piccadilly line", "picadilly line", "piccadily line", "picc line", "picc", "the pic"],
        Some("piccadilly"),
    ),
    line(
        "victoria",
        "Victoria line",
        "VICTORIA",
        &["victoria line", "vic line", "victoria tube", "the vic", "vic"],
        Some("victoria"),
    ),
    line(
        "waterloo-city",
        "Waterloo & City line",
        "WATERLOO_CITY",
        &["waterloo and city", "waterloo city", "w and c", "w c line", "w c", "the drain", "drain"],
        None,
    ),
    LineInfo {
        has_timetable: false,
        ..line(
            "elizabeth",
            "Elizabeth line",
            "ELIZABETH",
            &[
                "elizabeth line",
                "lizzie line",
                "liz line",
                "lizzy line",
                "crossrail",
                "purple line",
                "elizabeth",
                "lizzie",
                "lizzy",
                "the liz",
            ],
            None,
        )
    },
    LineInfo {
        has_timetable: false,
        ..line("dlr", "DLR", "DLR", &["dlr", "docklands light railway", "docklands light rail"], None)
    },
    overground("liberty", "Liberty line", "LIBERTY", &["liberty line"]),
    overground("lioness", "Lioness line", "LIONESS", &["lioness line"]),
    overground("mildmay", "Mildmay line", "MILDMAY", &["mildmay line", "mildmay"]),
    overground("suffragette", "Suffragette line", "SUFFRAGETTE", &["suffragette line", "goblin line"]),
    overground("weaver", "Weaver line", "WEAVER", &["weaver line"]),
    overground(
        "windrush",
        "Windrush line",
        "WINDRUSH",
        &["windrush line", "windrush", "ginger line", "east london line"],
    ),
];

const fn line(
    id: &'static str,
    name: &'static str,
    agent: &'static str,
    names: &'static [&'static str],
    shared_name: Option<&'static str>,
) -> LineInfo {
    LineInfo { id, name, agent, has_timetable: true, names, shared_name }
}

const fn overground(
    id: &'static str,
    name: &'static str,
    agent: &'static str,
    names: &'static [&'static str],
) -> LineInfo {
    LineInfo { id, name, agent, has_timetable: false, names, shared_name: Some(id) }
}

/// Returns the line with the given id, name or agent name.
#[must_use]
pub fn find_line(text: &str) -> Option<&'static LineInfo> {
    let text = text.trim();
    let is_named = |line: &&LineInfo| {
        line.id.eq_ignore_ascii_case(text)
            || line.name.eq_ignore_ascii_case(text)
            || line.agent.eq_ignore_ascii_case(text)
            || line.name.trim_end_matches(" line").eq_ignore_ascii_case(text)
            || line.names.iter().any(|name| name.eq_ignore_ascii_case(text))
            || line.shared_name.is_some_and(|name| name.eq_ignore_ascii_case(text))
    };
    LINES.iter().find(is_named)
}

/// Finds the line that a name refers to.
///
/// # Errors
/// [`QueryError::UnknownLine`].
pub fn find_network_lines(name: &str) -> Result<Vec<&'static Line>, QueryError> {
    let name = name.trim();
    let bare = name.strip_prefix("the ").unwrap_or(name);
    let known = find_line(bare).or_else(|| {
        let runs = line_runs(&Utterance::new(format!("the {bare} line")));
        runs.first().and_then(|run| find_line(run.lines.first()?))
    });
    let unknown = || QueryError::UnknownLine { line: bare.to_owned() };
    let known = known.ok_or_else(unknown)?;
    Ok(network().lines().iter().filter(|line| line.id == known.id).collect())
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    LINES.iter().fold(Names::new(), |names, line| names.with(Choice::new(line.id, line.names[0]), line.names))
});

/// Words that, after a shared name, show that it means the line.
const AFTER_LINE: [&str; 8] = ["line", "lines", "train", "trains", "tube", "branch", "service", "services"];
/// Words that, before a shared name, show that it means the line.
const BEFORE_LINE: [&str; 17] = [
    "hows",
    "just",
    "last",
    "first",
    "southbound",
    "next",
    "on",
    "via",
    "by",
    "avoid",
    "avoiding",
    "without",
    "not",
    "take",
    "taking",
    "usual",
    "northbound",
];
/// Words that, after "circle", "central", …, show that no line is meant.
const NOT_AFTER: [&str; 24] = [
    "back",
    "around",
    "round",
    "of",
    "london",
    "station",
    "park",
    "perk",
    "heating",
    "rail",
    "ireland",
    "lights",
    "coach",
    "court",
    "council",
    "nurse",
    "bank",
    "government",
    "and",
    "albert",
    "sponge",
    "embankment",
    "circus",
    "road",
];

/// Finds the lines of a message, grouped into runs.
#[must_use]
pub fn line_runs(message: &Utterance) -> Vec<LineRun> {
    let exact = NAMES.find(message);
    // "Finchley Central" is a station.
    let stations = gazetteer().find(message);
    let is_in_station = |at: usize, end: usize| {
        stations.iter().any(|found| found.words.len() > end - at && found.words.start <= at && end <= found.words.end)
    };
    group_lines(message, |message, at, follows_a_line| {
        if let Some(found) = exact.iter().find(|found| found.words.start == at)
            && !is_in_station(at, found.words.end)
        {
            let mut length = found.words.len();
            let word = message.word(at + length);
            if matches!(word, "line" | "lines") {
                length += 1;
            }
            let id = found.choices.first()?.value.as_str()?.to_owned();
            return Some((id, length));
        }
        if let Some((id, length)) = line_of_colour(message, at) {
            return Some((id.to_owned(), length));
        }
        let line = LINES.iter().find(|line| line.shared_name == Some(message.word(at)))?;
        if is_in_station(at, at + 1) || !means_a_line(message, at, follows_a_line) {
            return None;
        }
        let length = if matches!(message.word(at + 1), "line" | "lines") { 2 } else { 1 };
        Some((line.id.to_owned(), length))
    })
}

/// Returns the line that a rider names by its colour on the map ("the pink one"), and the number of words.
fn line_of_colour(message: &Utterance, at: usize) -> Option<(&'static str, usize)> {
    const COLOURS: [(&str, &str); 16] = [
        ("dark blue", "piccadilly"),
        ("navy blue", "piccadilly"),
        ("light blue", "victoria"),
        ("pale blue", "victoria"),
        ("sky blue", "victoria"),
        ("red", "central"),
        ("brown", "bakerloo"),
        ("yellow", "circle"),
        ("green", "district"),
        ("pink", "hammersmith-city"),
        ("grey", "jubilee"),
        ("silver", "jubilee"),
        ("maroon", "metropolitan"),
        ("magenta", "metropolitan"),
        ("black", "northern"),
        ("purple", "elizabeth"),
    ];
    const MAX_WORDS: usize = 5;
    COLOURS.iter().find_map(|(colour, id)| {
        let count = colour.split(' ').count();
        let is_here = colour.split(' ').enumerate().all(|(offset, word)| message.word(at + offset) == word);
        let is_line = matches!(message.word(at + count), "line" | "one");
        // "And the green?"
        let is_last = || {
            at > 0
                && message.word(at - 1) == "the"
                && message.word(at + count).is_empty()
                && message.words().len() <= MAX_WORDS
        };
        match is_here {
            true if is_line => Some((*id, count + 1)),
            true if is_last() => Some((*id, count)),
            _ => None,
        }
    })
}

/// Whether "victoria", in a question about trains, means the line at another station: "next train warren st northbound
/// victoria".
fn is_line_of_other_station(message: &Utterance, at: usize, before: &str) -> bool {
    const TRAIN_WORDS: [&str; 13] = [
        "next",
        "train",
        "trains",
        "first",
        "last",
        "northbound",
        "southbound",
        "arrivals",
        "departures",
        "due",
        "nb",
        "sb",
        "times",
    ];
    let asks_for_trains = message.words().iter().any(|word| TRAIN_WORDS.contains(&word.folded.as_str()));
    let is_an_end = matches!(before, "to" | "from" | "at" | "and" | "via" | "near" | "in" | "towards" | "for" | "of")
        || matches!(message.word(at + 1), "to" | "station" | "street" | "coach" | "park");
    let is_on_line = |found: &Mention| {
        let id = found.choices.first().and_then(|choice| choice.value.as_str()).unwrap_or_default();
        let is_victoria = |choice: &Choice| choice.hints.iter().any(|hint| hint == "victoria");
        !found.words.contains(&at) && place_choices(id).iter().any(is_victoria)
    };
    asks_for_trains && !is_an_end && gazetteer().find(message).iter().any(is_on_line)
}

/// Whether a name that can mean something else refers to a line in its context.
fn means_a_line(message: &Utterance, at: usize, follows_a_line: bool) -> bool {
    let before = at.checked_sub(1).map_or("", |before| message.word(before));
    let next = message.word(at + 1);
    // "Set northern as my usual line" saves the line.
    let is_saved =
        || next == "as" && message.word(at + 2) == "my" && matches!(message.word(at + 4), "line" | "tube" | "train");
    if AFTER_LINE.contains(&next) || is_saved() {
        return true;
    }
    let joins_a_line = || {
        matches!(next, "and" | "or" | "vs" | "versus")
            && (at + 2..at + 4).any(|at| {
                let is_first_word = |name: &str| name.split(' ').next() == Some(message.word(at));
                LINES.iter().any(|line| {
                    line.names.iter().any(|name| is_first_word(name)) || line.shared_name.is_some_and(is_first_word)
                })
            })
    };
    let is_end = matches!(before, "to" | "from" | "at" | "in" | "near" | "for" | "towards" | "via");
    if !is_end && matches!(next, "has" | "have" | "having" | "got" | "suffering") && message.word(at) != "victoria" {
        return true;
    }
    match message.word(at) {
        // "Victoria" means the station more often.
        "victoria" => {
            is_line_of_other_station(message, at, before)
                || follows_a_line && !matches!(before, "to" | "from" | "at")
                || before == "the" && !NOT_AFTER.contains(&next)
        }
        _ if follows_a_line && next == "and" => true,
        _ if NOT_AFTER.contains(&next) && !joins_a_line() => false,
        "met" => {
            follows_a_line
                || message.words().len() <= 2
                || before == "the"
                    && !NOT_AFTER.contains(&next)
                    && !matches!(next, "museum" | "office" | "police" | "game" | "life" | "bar")
                || before == "the" && matches!(next, "" | "ok" | "running" | "down" | "today" | "doing" | "or" | "good")
        }
        "lioness" | "suffragette" => true,
        "liberty" | "weaver" => before == "the" || message.words().len() <= 3,
        "circle" | "central" | "district" | "northern" | "piccadilly" => {
            before == "the"
                || !is_end && matches!(next, "eastbound" | "westbound" | "northbound" | "southbound")
                || follows_a_line
                || joins_a_line()
                || BEFORE_LINE.contains(&before)
                || message.words().len() <= 4
                || matches!(
                    next,
                    "ok" | "okay"
                        | "running"
                        | "delayed"
                        | "delays"
                        | "delay"
                        | "status"
                        | "down"
                        | "closed"
                        | "suspended"
                        | "up"
                        | "working"
                        | "good"
                        | "fine"
                        | "from"
                        | "at"
                        | "today"
                        | "doing"
                )
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        line_runs(&Utterance::new(text)).into_iter().flat_map(|run| run.lines).collect()
    }

    // S0.45
    #[test]
    fn lines_are_distinguished_from_stations_and_other_words() {
        for (text, lines) in [
            ("What is Circle line status?", &["circle"][..]),
            ("let's circle back to this", &[]),
            ("how do I get to Oxford Circus", &[]),
            ("is the Hammersmith & City ok", &["hammersmith-city"]),
            ("from Hammersmith to Victoria", &[]),
            ("the Victoria line at Victoria", &["victoria"]),
            ("is the Waterloo and City line running", &["waterloo-city"]),
            ("Waterloo to Bank", &[]),
            ("Finchley Central to Walthamstow Central", &[]),
            ("Piccadilly Circus on the Piccadilly", &["piccadilly"]),
            ("central London hotels", &[]),
            ("any delays on the central, jubilee or northern?", &["central", "jubilee", "northern"]),
            ("DLR?", &["dlr"]),
            ("Circle?", &["circle"]),
            ("is the lizzie line delayed", &["elizabeth"]),
            ("bank holiday service", &[]),
        ] {
            assert_eq!(found(text), lines, "{text}");
        }
    }

    #[test]
    fn every_line_is_found_by_its_names() {
        for line in &LINES {
            assert_eq!(found(&format!("any delays on the {}?", line.name)), [line.id]);
            assert_eq!(find_line(line.agent), Some(line));
            assert_eq!(line.agent, line.id.to_uppercase().replace('-', "_"));
            assert_eq!(find_network_lines(line.name).map(|lines| lines.len()), Ok(1), "{}", line.name);
        }
    }
}
