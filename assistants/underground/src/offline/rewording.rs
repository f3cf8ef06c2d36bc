//! Rewrites messages that say what is meant in other words than the intents: the lines of a section, a corrected word, a line to a
//! place, a new usual line.

use std::ops::Range;

use threadkeep::dialogue::{Extractor as _, Mention, Utterance};
use threadkeep::{ChatMessage, Role, Value};

use crate::lines::{LineInfo, find_line, line_runs};
use crate::network::{gazetteer, place_choices};

/// Words about the state of a line.
const STATE_WORDS: [&str; 20] = [
    "trouble",
    "problem",
    "problems",
    "delay",
    "delays",
    "delayed",
    "disruption",
    "disruptions",
    "disrupted",
    "issue",
    "issues",
    "running",
    "ok",
    "okay",
    "fine",
    "status",
    "suspended",
    "wrong",
    "how",
    "hows",
];
/// Words of questions about trains and trips.
const TRIP_WORDS: [&str; 14] = [
    "next", "when", "whens", "long", "far", "many", "route", "get", "take", "change", "quickest", "fastest", "last",
    "stop",
];
/// The tool that lists the next trains.
const BOARD: &str = "get_next_trains";
/// The maximum number of lines of a section.
const MAX_LINES: usize = 3;

fn has(message: &Utterance, words: &[&str]) -> bool {
    message.words().iter().any(|word| words.contains(&word.folded.as_str()))
}

fn bytes(message: &Utterance, words: Range<usize>) -> Range<usize> {
    let word = |at: usize| &message.words()[at].span;
    word(words.start).start..word(words.end - 1).end
}

/// The ids of the lines at any of the places that a name can mean.
fn lines_at(place: &Mention) -> Vec<String> {
    let ids = place.choices.iter().filter_map(|choice| choice.value.as_str());
    ids.flat_map(place_choices).flat_map(|choice| choice.hints.clone()).collect()
}

/// Returns the lines that stop at both places.
fn common_lines(first: &Mention, second: &Mention) -> Vec<&'static LineInfo> {
    let at_second = lines_at(second);
    let mut lines: Vec<&'static LineInfo> = Vec::new();
    for line in lines_at(first).iter().filter(|line| at_second.contains(line)).filter_map(|line| find_line(line)) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Names the lines of a section whose state a message asks for: "any trouble between Edgware and Camden Town?", "the line from Gospel
/// Oak to Barking, how is it?"
pub(super) fn with_lines_of_section(text: &str) -> Option<String> {
    let message = Utterance::new(text);
    if !has(&message, &STATE_WORDS) || has(&message, &TRIP_WORDS) || !line_runs(&message).is_empty() {
        return None;
    }
    let places = gazetteer().find(&message);
    let [first, second] = &places[..] else { return None };
    let before = first.words.start.checked_sub(1)?;
    let connecting = if second.words.start == first.words.end + 1 { message.word(first.words.end) } else { "" };
    let start = match (message.word(before), connecting) {
        ("between", "and") => before,
        ("from", "to") => {
            let noun = before.checked_sub(1).filter(|at| matches!(message.word(*at), "line" | "trains" | "service"))?;
            if noun > 0 && message.word(noun - 1) == "the" { noun - 1 } else { noun }
        }
        _ => return None,
    };
    let lines = common_lines(first, second);
    if lines.is_empty() || lines.len() > MAX_LINES {
        return None;
    }
    let names: Vec<String> = lines.iter().map(|line| format!("the {}", line.name)).collect();
    let named = names.join(" and ");
    let named = if message.word(start) == "between" { format!("on {named}") } else { named };
    let section = bytes(&message, start..second.words.end);
    Some(format!("{}{named}{}", &text[..section.start], &text[section.end..]))
}

/// Keeps what a message says in place of what the last one said: "I said west but I need east".
pub(super) fn without_mistake(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const SAID: [&str; 5] = ["said", "wrote", "typed", "put", "asked"];
    const MEANT: [&str; 5] = ["need", "want", "meant", "mean", "wanted"];
    const REGRETS: [&str; 12] =
        ["sorry", "my", "mistake", "bad", "oops", "apologies", "please", "fault", "that", "was", "a", "typo"];
    let message = Utterance::new(text);
    let said =
        (1..message.words().len()).find(|at| message.word(at - 1) == "i" && SAID.contains(&message.word(*at)))?;
    let meant = (said + 1..message.words().len()).find(|at| MEANT.contains(&message.word(*at)))?;
    let contrasts = (said + 1..meant).any(|at| matches!(message.word(at), "but" | "and" | "though"));
    let mut end = message.words().len();
    while end > meant + 1 && REGRETS.contains(&message.word(end - 1)) {
        end -= 1;
    }
    let is_answered = earlier.iter().any(|message| message.role == Role::Assistant);
    let meant = if message.word(meant + 1) == "to" { meant + 2 } else { meant + 1 };
    (contrasts && is_answered && meant < end).then(|| {
        let named = message.said(meant..end);
        // A direction alone is no sentence.
        match named.to_lowercase().as_str() {
            direction @ ("east" | "west" | "north" | "south") => format!("{direction}bound instead"),
            _ => format!("{named} instead"),
        }
    })
}

/// Asks whether a line stops at a place instead of how to take it there, if it does not: "can I take the Northern line to Heathrow?"
pub(super) fn with_line_to_place(text: &str) -> Option<String> {
    let message = Utterance::new(text);
    let runs = line_runs(&message);
    let ([run], places) = (&runs[..], gazetteer().find(&message)) else { return None };
    let [place] = &places[..] else { return None };
    let asks = matches!(message.word(0), "can" | "could" | "do" | "will" | "should")
        && !has(&message, &["from", "avoid", "without"]);
    let is_to = run.words.end < place.words.start && message.word(place.words.start - 1) == "to";
    let [line] = &run.lines[..] else { return None };
    let line = find_line(line)?;
    let stops = lines_at(place);
    (asks && is_to && !stops.is_empty() && !stops.iter().any(|id| id == line.id))
        .then(|| format!("does the {} stop at {}?", line.name, message.said(place.words.clone())))
}

/// Asks for the lines of a place in "which line do I need for London City Airport?"
pub(super) fn with_lines_of_place(text: &str) -> Option<String> {
    const WORDS: [&str; 11] = ["which", "what", "line", "lines", "do", "i", "we", "need", "want", "for", "tube"];
    let message = Utterance::new(text);
    let places = gazetteer().find(&message);
    let [place] = &places[..] else { return None };
    let is_before = (0..place.words.start).all(|at| WORDS.contains(&message.word(at)));
    let asks = place.words.end == message.words().len() && has(&message, &["line", "lines"]) && has(&message, &["for"]);
    (is_before && asks && line_runs(&message).is_empty())
        .then(|| format!("which lines stop at {}?", message.said(place.words.clone())))
}

/// Puts a new usual line into the words that save it: "I've moved, my line is the Windrush now".
pub(super) fn with_usual_line(text: &str) -> Option<String> {
    const NOT_SAID: [&str; 14] =
        ["if", "what", "whats", "which", "how", "hows", "when", "why", "is", "are", "does", "do", "can", "not"];
    let message = Utterance::new(text);
    let runs = line_runs(&message);
    let run = runs.iter().find(|run| run.lines.len() == 1)?;
    if let Some(reworded) = line_taken(&message, run).filter(|_| !text.contains('?')) {
        return Some(reworded);
    }
    let mut is = run.words.start.checked_sub(1)?;
    while matches!(message.word(is), "the" | "now") {
        is = is.checked_sub(1)?;
    }
    let noun = is.checked_sub(1).filter(|noun| message.word(*noun) == "line" && message.word(is) == "is")?;
    let kind = noun.checked_sub(1)?;
    let my = if message.word(kind) == "my" { kind } else { kind.checked_sub(1)? };
    let is_usual = my == kind || matches!(message.word(kind), "usual" | "regular" | "normal" | "new" | "home" | "main");
    let may_state = (0..my).all(|at| !NOT_SAID.contains(&message.word(at)));
    if message.word(my) != "my" || !is_usual || !may_state {
        return None;
    }
    let mut end = run.words.end;
    while matches!(message.word(end), "now" | "from" | "on" | "these" | "days" | "onwards" | "instead") {
        end += 1;
    }
    let line = find_line(&run.lines[0])?;
    let rest = &text[bytes(&message, my..end).end..];
    let reworded = format!("My usual line is the {}{rest}", line.name);
    (reworded != text).then_some(reworded)
}

/// "Remember: the line I take is the Jubilee"
fn line_taken(message: &Utterance, run: &threadkeep_transit::offline::LineRun) -> Option<String> {
    let line = (1..run.words.start).find(|at| message.word(*at) == "line" && message.word(at - 1) == "the")?;
    let mut at = line + 1;
    if matches!(message.word(at), "that" | "which") {
        at += 1;
    }
    let is_own = matches!(message.word(at), "i" | "we");
    at += 1;
    if matches!(message.word(at), "usually" | "always" | "normally" | "mostly" | "often") {
        at += 1;
    }
    let takes = matches!(message.word(at), "take" | "use" | "ride" | "catch" | "get" | "need");
    let is = (at + 1..run.words.start)
        .all(|at| matches!(message.word(at), "is" | "the" | "to" | "work" | "every" | "day"))
        && (at + 1..run.words.start).any(|at| message.word(at) == "is");
    if !is_own || !takes || !is || run.words.end != message.words().len() {
        return None;
    }
    let info = find_line(&run.lines[0])?;
    let start = message.words()[line - 1].span.start;
    let before = message.text()[..start].trim_end();
    let before = before.strip_suffix("and").map_or(before, |before| before.trim_end()).trim_end_matches([',', ';']);
    let stop = if before.is_empty() || before.ends_with([':', '.', '!']) { "" } else { "." };
    Some(format!("{before}{stop} My usual line is the {}", info.name).trim_start().to_owned())
}

/// Puts a usual line and where one gets on into the words that save both: "my usual line is the Bakerloo, I get on at Maida Vale", "I always
/// take the Jubilee from West Ham to Canary Wharf".
pub(super) fn with_boarding(text: &str) -> Option<String> {
    const USUAL: [&str; 7] = [
        "usual line is",
        "my line is",
        "regular line is",
        "always take",
        "usually take",
        "always get",
        "usual line to",
    ];
    let message = Utterance::new(text);
    let says =
        |phrase: &str, at: usize| phrase.split(' ').enumerate().all(|(offset, word)| message.word(at + offset) == word);
    let usual = (0..message.words().len()).find(|at| USUAL.iter().any(|phrase| says(phrase, *at)))?;
    let runs = line_runs(&message);
    let [run] = &runs[..] else { return None };
    let line = find_line(run.lines.first().filter(|_| run.lines.len() == 1 && run.words.start > usual)?)?;
    let places = gazetteer().find(&message);
    let after = |place: &&Mention, words: &[&str]| {
        let before = place.words.start.checked_sub(1).map_or("", |at| message.word(at));
        place.words.start >= run.words.end && words.contains(&before)
    };
    let start = places.iter().find(|place| after(place, &["from", "at", "in"]))?;
    let end = places.iter().find(|place| place.words.start > start.words.start && after(place, &["to"]));
    let said = |place: &Mention| message.said(place.words.clone()).to_owned();
    let work = end.map(|end| format!("My work station is {}. ", said(end))).unwrap_or_default();
    let is_question = text.contains('?') || matches!(message.word(0), "do" | "which" | "what" | "where" | "is" | "if");
    (!is_question).then(|| format!("My home station is {}. {work}My usual line is the {}.", said(start), line.name))
}

/// Puts a commute into the words that save its parts: "I live in Leyton and take the Central line to Bank every day".
pub(super) fn with_commute(text: &str) -> Option<String> {
    const TAKING: [&str; 8] = ["take", "use", "get", "catch", "ride", "travel", "commute", "go"];
    const ASKING: [&str; 9] = ["how", "when", "which", "what", "is", "does", "can", "should", "if"];
    let message = Utterance::new(text);
    let (runs, places) = (line_runs(&message), gazetteer().find(&message));
    let ([run], [home, work]) = (&runs[..], &places[..]) else { return None };
    let lives = (0..home.words.start).find(|at| matches!(message.word(*at), "live" | "living"))?;
    let is_home = matches!(message.word(home.words.start.checked_sub(1)?), "in" | "at" | "near" | "by");
    let takes = (home.words.end..run.words.start).any(|at| TAKING.contains(&message.word(at)));
    let is_to = run.words.end < work.words.start && message.word(work.words.start - 1) == "to";
    let asks = text.contains('?') || has(&message, &ASKING);
    let line = find_line(run.lines.first().filter(|_| run.lines.len() == 1)?)?;
    (lives < home.words.start && is_home && takes && is_to && !asks).then(|| {
        let name = |place: &Mention| message.said(place.words.clone()).to_owned();
        format!(
            "My home station is {}. My work station is {}. My usual line is the {}.",
            name(home),
            name(work),
            line.name
        )
    })
}

/// Names the user's line and the place in "I moved to Amersham. Is that still on my line?", if the conversation says which line it is.
pub(super) fn with_own_line(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const KEY: &str = "our usual line: ";
    let message = Utterance::new(text);
    let count = message.words().len();
    let on = (0..count).find(|at| {
        let own = at + 1 + usize::from(matches!(message.word(at + 2), "usual" | "own" | "normal"));
        message.word(*at) == "on" && message.word(at + 1) == "my" && message.word(own + 1) == "line" && own + 2 == count
    })?;
    let is = (0..on).rfind(|at| message.word(*at) == "is")?;
    let is_plain = |at: usize| matches!(message.word(at), "it" | "that" | "this" | "there" | "still" | "also" | "even");
    let places = gazetteer().find(&message);
    let place = places.iter().rfind(|place| place.words.end <= on)?;
    let is_question = (is + 1..on).all(|at| is_plain(at) || place.words.contains(&at));
    let results = earlier.iter().rev().flat_map(ChatMessage::tool_results);
    let saved = results.filter_map(|result| result.output.split_once(KEY)).map(|(_, line)| line.to_owned()).next()?;
    let runs = line_runs(&Utterance::new(saved));
    let line = find_line(runs.first()?.lines.first()?)?;
    let start = message.words()[is].span.start;
    let asked = format!("does the {} stop at {}?", line.name, message.said(place.words.clone()));
    is_question.then(|| format!("{}{asked}", &text[..start]))
}

/// Asks the last question again instead of for the reason of what a station's notice says: the notice gives the reason.
pub(super) fn with_reason(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    let message = Utterance::new(text);
    let words: Vec<&str> = message.words().iter().map(|word| word.folded.as_str()).collect();
    let asks_why = matches!(
        words[..],
        ["why"] | ["why", "is", "that"] | ["whys", "that"] | ["how", "come"] | ["why", "s", "that"]
    );
    let answer =
        earlier.iter().rev().find(|message| message.role == Role::Assistant && !message.plain_text().is_empty())?;
    let has_notice = answer.plain_text().contains("Reported there now:");
    (asks_why && has_notice).then(|| "again please".to_owned())
}

/// Goes back to the last board of trains for another direction, after a question about something else: "ok and the northbound one now?"
pub(super) fn with_board(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const AROUND: [&str; 22] = [
        "ok", "okay", "and", "so", "now", "the", "one", "ones", "what", "about", "how", "trains", "train", "then",
        "please", "next", "again", "when", "is", "side", "whens", "s",
    ];
    const DIRECTIONS: [&str; 6] = ["northbound", "southbound", "eastbound", "westbound", "inbound", "outbound"];
    let message = Utterance::new(text);
    let at = (0..message.words().len()).find(|at| DIRECTIONS.contains(&message.word(*at)))?;
    if !(0..message.words().len()).all(|other| other == at || AROUND.contains(&message.word(other))) {
        return None;
    }
    let mut calls = earlier.iter().rev().flat_map(ChatMessage::tool_calls).peekable();
    if calls.peek()?.name == BOARD {
        return None;
    }
    let arguments: Value = calls.find(|call| call.name == BOARD)?.arguments.read().ok()?;
    let line = arguments["line"].as_str().and_then(find_line).map_or("", |line| line.name);
    Some(format!("next {} {line} trains at {}", message.word(at), arguments["station"].as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_reworded() {
        let answered = [ChatMessage::text(Role::Assistant, "Next trains at Bank.")];
        for (said, meant) in [
            ("any trouble between Edgware and Camden Town?", Some("any trouble on the Northern line?")),
            ("the line from Gospel Oak to Barking, how is it?", Some("the Suffragette line, how is it?")),
            ("how long between Edgware and Camden Town", None),
            ("trains from Edgware to Camden Town", None),
            ("I said west but I need east, my mistake", Some("eastbound instead")),
            ("I said Bank but I meant Angel, sorry", Some("Angel instead")),
            ("I said Bank", None),
            (
                "Can I take the Northern line to Heathrow Terminal 5?",
                Some("does the Northern line stop at Heathrow Terminal 5?"),
            ),
            ("Can I take the Northern line to Bank?", None),
            ("Can I take the Northern line from Bank to Angel?", None),
            ("I've moved house, my line is the Windrush now", Some("My usual line is the Windrush line")),
            ("my line is the Windrush. Is it ok?", Some("My usual line is the Windrush line. Is it ok?")),
            (
                "I live at Balham and take the Northern line to Bank every day",
                Some("My home station is Balham. My work station is Bank. My usual line is the Northern line."),
            ),
            ("I live at Balham, how long does the Northern line to Bank take?", None),
            ("is my line the Windrush?", None),
            ("if my line is the Windrush", None),
            ("My usual line is the Windrush line", None),
        ] {
            let reworded = with_lines_of_section(said)
                .or_else(|| without_mistake(said, &answered))
                .or_else(|| with_line_to_place(said))
                .or_else(|| with_commute(said))
                .or_else(|| with_usual_line(said));
            assert_eq!(reworded.as_deref(), meant, "{said}");
        }
        let saved = threadkeep::ToolResult {
            call_id: "1".to_owned(),
            output: "Saved your usual line: Metropolitan line".to_owned(),
            is_error: false,
        };
        let parts = vec![threadkeep::Part::ToolResult(saved)];
        let saved = [ChatMessage { role: Role::Tool, author: None, parts, seq: None }];
        assert_eq!(
            with_own_line("I moved to Chesham. Is that still on my line?", &saved).as_deref(),
            Some("I moved to Chesham. does the Metropolitan line stop at Chesham?")
        );
        assert_eq!(with_own_line("I moved to Chesham. Is that still on my line?", &[]), None);
        let closed = [ChatMessage::text(Role::Assistant, "Reported there now: closed, for want of staff.")];
        assert_eq!(with_reason("why?", &closed).as_deref(), Some("again please"));
        assert_eq!(with_reason("why?", &answered), None);
    }
}
