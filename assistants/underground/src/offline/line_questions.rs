//! Rewrites follow-ups about the line under discussion: whether it stops at a place, whether a station of it is affected, how long it
//! lasts, how it is at the weekend.

use threadkeep::dialogue::{Extractor as _, Mention, Utterance};
use threadkeep::{ChatMessage, Role, Value};

use super::SPEECH;
use crate::lines::{LineInfo, find_line, line_runs};
use crate::network::gazetteer;
use crate::spoken_lines::SpokenLines;

const STATUS: &str = "get_line_status";
const BOARD: &str = "get_next_trains";
const ROUTE: &str = "get_route";
/// Words that add nothing to a question.
const AROUND: [&str; 22] = [
    "ok", "okay", "and", "so", "but", "then", "oh", "hmm", "well", "right", "please", "what", "about", "how", "the",
    "or", "also", "too", "as", "station", "now", "is",
];
/// Words of the states of a line.
const STATES: [&str; 20] = [
    "ok", "okay", "fine", "affected", "hit", "open", "closed", "running", "working", "good", "all", "right", "alright",
    "served", "included", "shut", "part", "of", "it", "that",
];

fn has(message: &Utterance, words: &[&str]) -> bool {
    message.words().iter().any(|word| words.contains(&word.folded.as_str()))
}

fn is_all(message: &Utterance, known: impl Fn(usize) -> bool) -> bool {
    (0..message.words().len()).all(known)
}

/// The last turn.
struct LastTurn {
    question: String,
    /// The names of the tools that it called.
    tools: Vec<String>,
    /// The lines of its calls.
    lines: Vec<&'static LineInfo>,
}

impl LastTurn {
    fn of(earlier: &[ChatMessage]) -> Option<Self> {
        let start = earlier.iter().rposition(|message| message.role == Role::User)?;
        let calls: Vec<_> = earlier[start..].iter().flat_map(ChatMessage::tool_calls).collect();
        let mut lines: Vec<&'static LineInfo> = Vec::new();
        for arguments in calls.iter().filter_map(|call| call.arguments.read::<Value>().ok()) {
            let named = ["line", "lines"].iter().filter_map(|name| arguments[*name].as_str());
            lines.extend(named.flat_map(|names| names.split(',')).filter_map(find_line));
        }
        let tools = calls.iter().map(|call| call.name.clone()).collect();
        Some(Self { question: earlier[start].plain_text(), tools, lines })
    }

    /// Returns the line whose state the last answer says, if it is one.
    fn line_of_status(&self) -> Option<&'static LineInfo> {
        let is_status = self.tools.iter().any(|tool| tool == STATUS)
            && self.tools.iter().all(|tool| tool == STATUS || tool == "get_preference");
        match self.lines[..] {
            [line] if is_status => Some(line),
            _ => None,
        }
    }
}

/// Rewrites a follow-up about the line under discussion.
pub(super) fn with_line(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const MAX_WORDS: usize = 16;
    let message = Utterance::new(text).corrected(|message, at| SPEECH.correct(message, at));
    if message.words().is_empty() || message.words().len() > MAX_WORDS {
        return None;
    }
    if let Some(line) = line_at_weekend(&message) {
        return Some(format!("weekend status of the {}", line.name));
    }
    let last = LastTurn::of(earlier)?;
    if !line_runs(&message).is_empty() {
        return None;
    }
    let places = SPEECH.find_stations(&message);
    stops_at(&message, &places, earlier, &last)
        .or_else(|| also_stops_at(&message, &places, &last))
        .or_else(|| station_of_line(&message, &places, earlier, &last))
        .or_else(|| how_long_it_lasts(&message, &last))
        .or_else(|| ruled_out(&message, &last))
        .or_else(|| next_of_line(&message, &places, text, &last))
        .or_else(|| board_again(&message, earlier, &last))
}

/// "The Jubilee line this weekend?"
fn line_at_weekend(message: &Utterance) -> Option<&'static LineInfo> {
    const DAYS: [&str; 5] = ["weekend", "weekends", "saturday", "sunday", "this"];
    const PLAIN: [&str; 16] = [
        "line", "on", "at", "for", "running", "ok", "okay", "open", "status", "are", "be", "working", "going", "fine",
        "hows", "service",
    ];
    let runs = line_runs(message);
    let [run] = &runs[..] else { return None };
    let [line] = &run.lines[..] else { return None };
    let is_plain = |at: usize| {
        let word = message.word(at);
        run.words.contains(&at) || DAYS.contains(&word) || PLAIN.contains(&word) || AROUND.contains(&word)
    };
    (has(message, &DAYS[..4]) && is_all(message, is_plain)).then(|| find_line(line))?
}

/// Returns the only place that a message names, as it says it.
fn only_place<'a>(message: &'a Utterance, places: &[Mention]) -> Option<&'a str> {
    let [place] = places else { return None };
    Some(message.said(place.words.clone()))
}

/// "Does it go to Reading?", "is Woolwich on it?"
fn stops_at(message: &Utterance, places: &[Mention], earlier: &[ChatMessage], last: &LastTurn) -> Option<String> {
    const SUBJECTS: [&str; 4] = ["it", "that", "this", "they"];
    const VERBS: [&str; 17] = [
        "go", "run", "get", "reach", "serve", "stop", "call", "going", "running", "extend", "to", "at", "as", "far",
        "all", "the", "way",
    ];
    let place = only_place(message, places)?;
    let words = &places[0].words;
    let is_board = last.tools.iter().any(|tool| tool == BOARD || tool == ROUTE);
    let asks = (0..words.start).find(|at| matches!(message.word(*at), "does" | "do" | "will" | "would" | "can"))?;
    let noun = matches!(message.word(asks + 2), "line" | "one");
    let verb = asks + 2 + usize::from(noun);
    let is_question = (0..asks).all(|at| AROUND.contains(&message.word(at)))
        && SUBJECTS.contains(&message.word(asks + 1))
        && verb < words.start
        && (verb..words.start)
            .all(|at| VERBS.contains(&message.word(at)) || matches!(message.word(at), "also" | "even" | "still"))
        && (words.end..message.words().len())
            .all(|at| AROUND.contains(&message.word(at)) || message.word(at) == "well");
    if !is_question || is_board {
        return None;
    }
    let spoken = SpokenLines::of(earlier.iter().map(|message| (message.role, message.plain_text())));
    let line = match last.lines[..] {
        [line] => Some(line),
        _ => spoken.last_asked(),
    };
    Some(format!("does the {} stop at {place}?", line?.name))
}

/// "And to Watford?", after whether a line stops at another place
fn also_stops_at(message: &Utterance, places: &[Mention], last: &LastTurn) -> Option<String> {
    let place = only_place(message, places)?;
    let words = &places[0].words;
    let is_plain = |at: usize| {
        words.contains(&at)
            || AROUND.contains(&message.word(at))
            || matches!(message.word(at), "to" | "at" | "served" | "well" | "it")
    };
    let asked = Utterance::new(last.question.as_str());
    let runs = line_runs(&asked);
    let [run] = &runs[..] else { return None };
    let is_kind = (0..run.words.start).any(|at| matches!(asked.word(at), "does" | "do"))
        && matches!(asked.word(run.words.end), "stop" | "go" | "call" | "serve")
        && gazetteer().find(&asked).len() == 1
        && last.tools.iter().any(|tool| tool == "get_station_info");
    let line = find_line(run.lines.first().filter(|_| run.lines.len() == 1)?)?;
    (is_kind && is_all(message, is_plain)).then(|| format!("does the {} stop at {place}?", line.name))
}

/// "And is Finchley Road ok?", "what about Liverpool Street?" after it: the state of the line there
fn station_of_line(
    message: &Utterance,
    places: &[Mention],
    earlier: &[ChatMessage],
    last: &LastTurn,
) -> Option<String> {
    let place = only_place(message, places)?;
    let stops =
        |line: &LineInfo| places[0].choices.iter().any(|choice| choice.hints.iter().any(|hint| hint == line.id));
    // Of several lines, the disrupted one that stops there is meant.
    let disrupted = || {
        let spoken = SpokenLines::of(earlier.iter().map(|message| (message.role, message.plain_text())));
        let there: Vec<&'static LineInfo> = spoken.disrupted().iter().copied().filter(|line| stops(line)).collect();
        match there[..] {
            [line] if last.tools.iter().any(|tool| tool == STATUS) => Some(line),
            _ => None,
        }
    };
    let line = last.line_of_status().or_else(disrupted)?;
    let is_there = stops(line);
    let is_plain = |at: usize| {
        let word = message.word(at);
        places[0].words.contains(&at)
            || AROUND.contains(&word)
            || STATES.contains(&word)
            || matches!(word, "are" | "trains" | "at")
    };
    let asks_state = has(message, &STATES[..12]);
    let continues = Utterance::new(last.question.as_str());
    let continues = gazetteer().find(&continues).len() == 1 && has(&continues, &["status"]);
    (is_there && (asks_state || continues) && is_all(message, is_plain))
        .then(|| format!("status of the {} at {place}?", line.name))
}

/// "Till when does it last?", after the state of a line: what TfL says about it
fn how_long_it_lasts(message: &Utterance, last: &LastTurn) -> Option<String> {
    const WORDS: [&str; 34] = [
        "till", "until", "til", "when", "how", "long", "does", "do", "will", "would", "it", "that", "this", "they",
        "last", "end", "be", "over", "fixed", "finish", "go", "on", "for", "is", "gonna", "going", "to", "take",
        "back", "normal", "reopen", "open", "again", "sorted",
    ];
    let line = last.line_of_status()?;
    let asks = has(message, &["till", "until", "til", "long", "when"])
        && has(message, &["last", "end", "over", "fixed", "finish", "reopen", "normal", "sorted", "open"]);
    let is_known = |at: usize| WORDS.contains(&message.word(at)) || AROUND.contains(&message.word(at));
    (asks && is_all(message, is_known)).then(|| format!("status of the {}", line.name))
}

/// "Is it down?", after a route that avoids the line that the user named
fn ruled_out(message: &Utterance, last: &LastTurn) -> Option<String> {
    const STATES: [&str; 13] = [
        "down",
        "closed",
        "delayed",
        "suspended",
        "running",
        "working",
        "ok",
        "okay",
        "fine",
        "bad",
        "disrupted",
        "broken",
        "shut",
    ];
    const WORDS: [&str; 12] =
        ["is", "it", "really", "actually", "still", "though", "now", "today", "at", "the", "moment", "even"];
    let asked = Utterance::new(last.question.as_str());
    let runs = line_runs(&asked);
    let [run] = &runs[..] else { return None };
    let line = find_line(run.lines.first().filter(|_| run.lines.len() == 1)?)?;
    let is_known = |at: usize| {
        let word = message.word(at);
        STATES.contains(&word) || WORDS.contains(&word) || AROUND.contains(&word)
    };
    let is_route = last.tools.iter().any(|tool| tool == ROUTE);
    let asks = has(message, &["is"]) && has(message, &["it"]) && has(message, &STATES);
    (is_route && asks && is_all(message, is_known))
        .then(|| format!("is the {} {}?", line.name, state_in(message, &STATES)))
}

fn state_in<'a>(message: &'a Utterance, states: &[&str]) -> &'a str {
    message.words().iter().map(|word| word.folded.as_str()).find(|word| states.contains(word)).unwrap_or("running")
}

/// "Then I'll take that. When's the next one from Stockwell?" after the state of a line
fn next_of_line(message: &Utterance, places: &[Mention], text: &str, last: &LastTurn) -> Option<String> {
    let line = last.line_of_status()?;
    let [place] = places else { return None };
    let is_there = place.choices.iter().any(|choice| choice.hints.iter().any(|hint| hint == line.id));
    let next = (1..message.words().len())
        .find(|at| matches!(message.word(*at), "one" | "train") && message.word(at - 1) == "next")?;
    let is_start = matches!(message.word(place.words.start.checked_sub(1)?), "from" | "at");
    let span = &message.words()[next].span;
    (is_there && is_start).then(|| format!("{}{} train{}", &text[..span.start], line.name, &text[span.end..]))
}

/// "Try the train times once more", after a question about something else
fn board_again(message: &Utterance, earlier: &[ChatMessage], last: &LastTurn) -> Option<String> {
    const AGAIN: [&str; 7] = ["again", "more", "retry", "try", "another", "back", "recheck"];
    let names = (0..message.words().len()).any(|at| {
        matches!(message.word(at), "board" | "departures" | "arrivals")
            || matches!(message.word(at), "train" | "trains" | "departure") && message.word(at + 1) == "times"
            || message.word(at) == "next" && matches!(message.word(at + 1), "train" | "trains")
    });
    const MAX_WORDS: usize = 10;
    if !names || !has(message, &AGAIN) || message.words().len() > MAX_WORDS || !SPEECH.find_stations(message).is_empty()
    {
        return None;
    }
    if last.tools.iter().any(|tool| tool == BOARD) {
        return None;
    }
    let mut calls = earlier.iter().rev().flat_map(ChatMessage::tool_calls);
    let arguments: Value = calls.find(|call| call.name == BOARD)?.arguments.read().ok()?;
    let line = arguments["line"].as_str().and_then(find_line).map_or("", |line| line.name);
    let towards = arguments["towards"].as_str().filter(|towards| !towards.starts_with("away from"));
    let towards = towards.map(|towards| match towards.ends_with("bound") {
        true => format!(" {towards}"),
        false => format!(" to {towards}"),
    });
    let station = arguments["station"].as_str()?;
    Some(format!("when is the next {line} train at {station}{}", towards.unwrap_or_default()))
}

/// Returns a question about the lines of the conversation in the words of the examples: "which lines have we talked about?"
pub(super) fn with_lines_asked(text: &str) -> Option<String> {
    const SPOKEN: [&str; 9] =
        ["talked", "spoken", "asked", "ask", "mentioned", "mention", "discussed", "covered", "checked"];
    let message = Utterance::new(text);
    let lines = (0..message.words().len()).find(|at| message.word(*at) == "lines")?;
    let asks = (0..lines).any(|at| matches!(message.word(at), "which" | "what" | "list" | "remind"));
    let is_own = (lines..message.words().len()).any(|at| matches!(message.word(at), "i" | "we" | "ive" | "weve"));
    (asks
        && is_own
        && has(&message, &SPOKEN)
        && line_runs(&message).is_empty()
        && gazetteer().find(&message).is_empty())
    .then(|| "which lines was i asking about".to_owned())
}

#[cfg(test)]
mod tests {
    use threadkeep::{JsonText, Part, ToolCall};

    use super::*;

    fn after(question: &str, tool: &str, arguments: &Value) -> Vec<ChatMessage> {
        let call = ToolCall { id: "1".to_owned(), name: tool.to_owned(), arguments: JsonText::from(arguments) };
        let parts = vec![Part::ToolCall(call)];
        vec![
            ChatMessage::text(Role::User, question),
            ChatMessage { role: Role::Assistant, author: None, parts, seq: None },
            ChatMessage::text(Role::Assistant, "Here you are."),
        ]
    }

    #[test]
    fn follow_ups_name_the_line_under_discussion() {
        let status = after("Is the Metropolitan ok?", STATUS, &serde_json::json!({"lines": "metropolitan"}));
        let stops = after(
            "does the Metropolitan line stop at Pinner?",
            "get_station_info",
            &serde_json::json!({"station": "Pinner"}),
        );
        let route = after(
            "and without the Jubilee?",
            ROUTE,
            &serde_json::json!({"from_station": "Bank", "to_station": "Oval"}),
        );
        for (earlier, text, expected) in [
            (&status, "does it go to Chesham?", Some("does the Metropolitan line stop at Chesham?")),
            (&stops, "and to Amersham?", Some("does the Metropolitan line stop at Amersham?")),
            (&stops, "and at Moor Park as well?", Some("does the Metropolitan line stop at Moor Park?")),
            (&stops, "Watford?", Some("does the Metropolitan line stop at Watford?")),
            (&status, "is Moor Park affected?", Some("status of the Metropolitan line at Moor Park?")),
            (&status, "when will it be fixed?", Some("status of the Metropolitan line")),
            (
                &status,
                "good. when is the next one from Pinner?",
                Some("good. when is the next Metropolitan line train from Pinner?"),
            ),
            (&route, "is it really closed?", Some("is the Jubilee line closed?")),
            (&status, "the Bakerloo on Sunday?", Some("weekend status of the Bakerloo line")),
            (&status, "how do I get to Pinner?", None),
            (&status, "is Bank step-free?", None),
            (&status, "any works on the Bakerloo on Sunday?", None),
        ] {
            assert_eq!(with_line(text, earlier).as_deref(), expected, "{text}");
        }
        assert!(with_lines_asked("so which lines have I mentioned?").is_some());
        assert!(with_lines_asked("which lines are closed?").is_none());
    }
}
