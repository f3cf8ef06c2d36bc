//! Rewrites messages that go back to earlier departure boards and stations: "Court Sq once more", "which of those two leaves first?",
//! "and from the first station I named?"

use std::ops::Range;

use serde_json::json;
use threadkeep::dialogue::{Choice, Intent, Mention, Outcome, Slot, Utterance};
use threadkeep::{ChatMessage, Role, ToolCall, Value};

use super::Speech;

/// How a system lists the next trains.
#[derive(Clone, Copy, Debug)]
pub struct BoardTool {
    /// The name of the tool.
    pub name: &'static str,
    /// The names of its arguments.
    pub station: &'static str,
    /// The argument for where the trains go.
    pub direction: &'static str,
}

/// The words with which a rewritten comparison of boards starts.
const COMPARED: &str = "Boards to compare: ";
/// Maximum number of boards that are compared.
const MAX_BOARDS: usize = 4;
/// Words that ask for something once more.
const AGAIN: [&str; 6] = ["again", "retry", "recheck", "refresh", "more", "back"];
/// Words of a request for a board that add nothing.
const AROUND: [&str; 46] = [
    "ok",
    "okay",
    "and",
    "so",
    "then",
    "now",
    "please",
    "pls",
    "the",
    "a",
    "to",
    "at",
    "from",
    "for",
    "of",
    "try",
    "check",
    "show",
    "me",
    "give",
    "get",
    "look",
    "up",
    "times",
    "time",
    "live",
    "trains",
    "train",
    "board",
    "departures",
    "arrivals",
    "next",
    "towards",
    "toward",
    "in",
    "what",
    "about",
    "how",
    "once",
    "go",
    "line",
    "one",
    "can",
    "you",
    "s",
    "let",
];
const NUMBERS: [(&str, usize); 5] = [("two", 2), ("both", 2), ("pair", 2), ("three", 3), ("four", 4)];

fn has(message: &Utterance, known: &[&str]) -> bool {
    message.words().iter().any(|word| known.contains(&word.folded.as_str()))
}

fn bytes(message: &Utterance, words: Range<usize>) -> Range<usize> {
    let word = |at: usize| &message.words()[at].span;
    word(words.start).start..word(words.end - 1).end
}

fn arguments(call: &ToolCall) -> Value {
    call.arguments.read().unwrap_or_default()
}

impl Speech {
    /// Rewrites a message that goes back to earlier boards or stations.
    #[must_use]
    pub fn with_earlier_boards(&self, text: &str, earlier: &[ChatMessage]) -> Option<String> {
        const MAX_WORDS: usize = 16;
        let message = Utterance::new(text).corrected(|message, at| self.correct(message, at));
        if message.words().is_empty() || message.words().len() > MAX_WORDS {
            return None;
        }
        self.compared_boards(&message, earlier)
            .or_else(|| self.board_again(&message, earlier))
            .or_else(|| self.with_first_station(&message, earlier))
    }

    /// "Which of those two leaves first?", "so which comes first?", after departure boards
    fn compared_boards(&self, message: &Utterance, earlier: &[ChatMessage]) -> Option<String> {
        const FIRST: [&str; 5] = ["first", "sooner", "soonest", "earlier", "earliest"];
        const WORDS: [&str; 38] = [
            "ok",
            "okay",
            "and",
            "so",
            "then",
            "which",
            "whichever",
            "what",
            "of",
            "those",
            "these",
            "them",
            "the",
            "one",
            "ones",
            "train",
            "trains",
            "is",
            "comes",
            "come",
            "leaves",
            "leave",
            "goes",
            "departs",
            "arrives",
            "due",
            "here",
            "will",
            "would",
            "be",
            "does",
            "out",
            "now",
            "that",
            "there",
            "line",
            "or",
            "whats",
        ];
        let is_known = |at: usize| {
            let word = message.word(at);
            WORDS.contains(&word) || FIRST.contains(&word) || NUMBERS.iter().any(|(name, _)| *name == word)
        };
        let asks = has(message, &["which", "whichever", "whats"]) && has(message, &FIRST);
        if !asks || !(0..message.words().len()).all(is_known) {
            return None;
        }
        let number = NUMBERS.iter().find(|(name, _)| has(message, &[name])).map(|(_, number)| *number);
        let mut boards: Vec<Value> = Vec::new();
        let mut end = earlier.len();
        while let Some(start) = earlier[..end].iter().rposition(|message| message.role == Role::User) {
            let calls: Vec<&ToolCall> = earlier[start..end].iter().flat_map(ChatMessage::tool_calls).collect();
            let found: Vec<Value> =
                calls.iter().filter(|call| call.name == self.board.name).map(|call| arguments(call)).collect();
            // "Thanks" does not change the subject.
            if found.is_empty() && !calls.is_empty() {
                break;
            }
            for board in found.into_iter().rev().filter(|board| board[self.board.station].is_string()) {
                if !boards.contains(&board) {
                    boards.push(board);
                }
            }
            end = start;
        }
        boards.truncate(number.unwrap_or(MAX_BOARDS));
        boards.reverse();
        (boards.len() > 1 && number.is_none_or(|number| boards.len() == number))
            .then(|| format!("{COMPARED}{}", encoded(&json!(boards).to_string())))
    }

    /// "Court Sq once more", "try the times at Wood Green again", "Manhattan again?"
    fn board_again(&self, message: &Utterance, earlier: &[ChatMessage]) -> Option<String> {
        let count = message.words().len();
        let again = (0..count).find(|at| {
            let before = at.checked_sub(1).map_or("", |before| message.word(before));
            match message.word(*at) {
                "more" => matches!(before, "once" | "time"),
                "back" => *at < 2 && matches!(message.word(at + 1), "to" | "at"),
                word => AGAIN.contains(&word),
            }
        })?;
        let (runs, places) = ((self.line_runs)(message), self.find_stations(message));
        let is_named = |at: usize| {
            runs.iter().any(|run| run.words.contains(&at)) || places.iter().any(|place| place.words.contains(&at))
        };
        let directions = (self.directions)(message);
        let is_direction = |at: usize| directions.iter().any(|found| found.words.contains(&at)) && !is_named(at);
        let is_around = |at: usize| AROUND.contains(&message.word(at)) || AGAIN.contains(&message.word(at));
        let rest: Vec<&str> = (0..count)
            .filter(|at| !is_named(*at) && !is_direction(*at) && !is_around(*at))
            .map(|at| message.word(at))
            .collect();
        let before = |place: &Mention| place.words.start.checked_sub(1).map_or("", |at| message.word(at));
        let (to, at): (Vec<&Mention>, Vec<&Mention>) =
            places.iter().partition(|place| matches!(before(place), "to" | "towards" | "toward") && places.len() > 1);
        let names_board =
            has(message, &["times", "trains", "train", "board", "departures", "arrivals", "live", "next"]);
        let is_plain = message.word(again) == "back" && !names_board;
        if at.len() > 1
            || to.len() > 1
            || runs.len() > 1
            || is_plain
            || places.is_empty() && runs.is_empty() && rest.is_empty() && !names_board
        {
            return None;
        }
        let complexes =
            |name: &str| self.system.places(name).into_iter().map(|place| place.complex).collect::<Vec<_>>();
        let is_meant = |board: &Value| {
            let here = board[self.board.station].as_str().unwrap_or_default();
            let is_there = at.iter().all(|place| {
                let named = place.choices.iter().filter_map(|choice| choice.value.as_str()).flat_map(complexes);
                let known = complexes(here);
                named.into_iter().any(|complex| known.contains(&complex))
            });
            let is_on_line = runs
                .iter()
                .all(|run| board["line"].as_str().is_some_and(|line| run.lines.iter().any(|known| known == line)));
            let way = board[self.board.direction].as_str().unwrap_or_default().to_lowercase();
            !here.is_empty()
                && is_there
                && is_on_line
                && rest.iter().all(|word| way.split(' ').any(|known| known == *word))
        };
        let mut calls = earlier.iter().rev().flat_map(ChatMessage::tool_calls).peekable();
        // "Try again" directly after a board repeats it anyway.
        if places.is_empty() && runs.is_empty() && rest.is_empty() && calls.peek()?.name == self.board.name {
            return None;
        }
        let board = calls.filter(|call| call.name == self.board.name).map(arguments).find(is_meant)?;
        let said = |mention: &Mention| message.said(mention.words.clone()).to_owned();
        let way = match (
            to.first(),
            directions.iter().find(|found| !places.iter().any(|place| place.words == found.words)),
        ) {
            (Some(to), _) => format!(" towards {}", said(to)),
            (None, Some(direction)) => format!(" {}", said(direction)),
            (None, None) => self.way_of(&board)?,
        };
        let line = board["line"].as_str().map(|line| format!("{} ", self.system.line_name(line))).unwrap_or_default();
        let train = if line.is_empty() { "train" } else { "" };
        let here = board[self.board.station].as_str()?;
        let train = if line.ends_with("line ") { "train" } else { train };
        Some(format!("when is the next {line}{train} at {here}{way}").replace("  ", " "))
    }

    /// Words the direction of a board as a message does; `None` if it cannot be said.
    fn way_of(&self, board: &Value) -> Option<String> {
        const SIGNS: [&str; 4] = ["uptown", "downtown", "inbound", "outbound"];
        match board[self.board.direction].as_str() {
            None => Some(String::new()),
            Some(way) if way.starts_with("away from") || way.contains(" via ") => None,
            Some(way) if way.ends_with("bound") || SIGNS.contains(&way) => Some(format!(" {way}")),
            Some(way) if way.starts_with("via ") => Some(format!(" {way}")),
            Some(way) => Some(format!(" towards {way}")),
        }
    }

    /// Names the station in "and from the first station I named?"
    fn with_first_station(&self, message: &Utterance, earlier: &[ChatMessage]) -> Option<String> {
        const NAMED: [&str; 10] =
            ["named", "mentioned", "said", "asked", "started", "gave", "typed", "checked", "used", "wrote"];
        let count = message.words().len();
        let first = (1..count).find(|at| {
            matches!(message.word(*at), "first" | "original")
                && message.word(at - 1) == "the"
                && matches!(message.word(at + 1), "station" | "stop" | "one" | "place")
        })?;
        let mut end = first + 2;
        if matches!(message.word(end), "that" | "which") && matches!(message.word(end + 1), "i" | "we") {
            end += 1;
        }
        let says =
            matches!(message.word(end), "i" | "we") && (end + 1..end + 3).any(|at| NAMED.contains(&message.word(at)));
        if says {
            end = (end + 1..end + 3).find(|at| NAMED.contains(&message.word(*at)))? + 1;
            while matches!(message.word(end), "you" | "about" | "for" | "with" | "from" | "at" | "earlier") {
                end += 1;
            }
        }
        // "Back to the first one" is about a station if a question for its lines or trains follows.
        let returns = first > 2 && message.word(first - 2) == "to" && message.word(first - 3) == "back";
        let is_station = matches!(message.word(first + 1), "station" | "stop" | "place")
            || matches!(first.checked_sub(2).map_or("", |at| message.word(at)), "from" | "at")
            || returns && has(message, &["there", "lines", "stop", "stops", "elevator", "lift", "trains"]);
        let asks = has(message, &["which", "what", "whats", "was"]) && says && !has(message, &["from", "at"]);
        let is_known = says || returns || message.word(first) == "original";
        if !is_station || !is_known || asks || !(self.line_runs)(message).is_empty() && returns {
            return None;
        }
        let station = earlier.iter().flat_map(ChatMessage::tool_calls).find_map(|call| {
            let arguments = arguments(call);
            let names = [self.board.station, "station", "from_station"];
            names.iter().find_map(|name| arguments[*name].as_str().map(str::to_owned))
        })?;
        let text = message.text();
        let words = bytes(message, first - 1..end);
        let start = if returns { bytes(message, first - 3..first).start } else { words.start };
        let named = if returns && !message.word(end).is_empty() { format!("at {station},") } else { station };
        let rest = text[words.end..].trim_start_matches([':', ',', ';']);
        Some(format!("{}{named}{rest}", &text[..start]))
    }
}

/// Encodes a value of a rewritten message, in which nothing else is to be recognised.
#[must_use]
pub fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes what [`encoded`] returned.
#[must_use]
pub fn decoded(text: &str) -> Option<String> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

/// Finds a rewritten comparison of boards.
#[must_use]
pub fn find_compared_boards(message: &Utterance) -> Vec<Mention> {
    let boards = message.text().strip_prefix(COMPARED).and_then(decoded);
    let boards = boards.and_then(|boards| serde_json::from_str::<Value>(&boards).ok());
    let mention = |boards: Value| Mention::new(0..message.words().len(), vec![Choice::new(boards, "the boards")]);
    boards.map(mention).into_iter().collect()
}

/// Compares the next trains of departure boards.
#[must_use]
pub fn compared_boards(speech: &'static Speech) -> Intent {
    let intent = Intent::new("compared_boards")
        .decided_by("boards", |_, _| true)
        .slot(Slot::required("boards", "boards").fresh());
    let intent = (0..MAX_BOARDS).fold(intent, |intent, number| {
        intent.then_calls(speech.board.name, move |outcome| outcome.slots().value("boards").get(number).cloned())
    });
    intent.says(soonest)
}

/// Says which train leaves first, and the first train of each board.
fn soonest(outcome: &Outcome<'_>) -> String {
    let mut firsts: Vec<(i64, String)> = Vec::new();
    let mut without: Vec<String> = Vec::new();
    for exchange in outcome.exchanges() {
        let value = exchange.value();
        let text = value.as_str().unwrap_or_default();
        let rows = text.lines().filter_map(|line| {
            let row = line.strip_prefix("- ")?;
            let (_, time) = row.rsplit_once(" in ")?;
            // A time that is no number is "less than a minute".
            Some((time.split(' ').next()?.parse().unwrap_or(0), row.to_owned()))
        });
        match rows.min_by_key(|(wait, _)| *wait) {
            Some(first) if !firsts.contains(&first) => firsts.push(first),
            Some(_) => {}
            None => without.push(text.to_owned()),
        }
    }
    firsts.sort();
    let [(_, first), later @ ..] = &firsts[..] else { return without.join("\n") };
    let later = later.iter().map(|(_, row)| format!("- {row}"));
    [format!("First: the {first}.")].into_iter().chain(later).chain(without).collect::<Vec<_>>().join("\n")
}
