//! Rewrites questions that go on from the state of a line or a notice at a station: which line it is for, where it is, how to go round it.

use threadkeep::dialogue::{Extractor as _, Mention, Utterance};
use threadkeep::{ChatMessage, Role, Value};

use crate::lines::{LineInfo, find_line, line_runs};
use crate::network::{gazetteer, place_choices};
use crate::spoken_lines::SpokenLines;

const STATUS: &str = "get_line_status";
const INFO: &str = "get_station_info";
const ROUTE: &str = "get_route";
/// The maximum number of lines of a station whose state is looked up.
const MAX_LINES: usize = 6;
/// Words that add nothing to a question.
const AROUND: [&str; 24] = [
    "ok", "okay", "and", "so", "then", "now", "please", "the", "a", "is", "was", "are", "that", "this", "it", "there",
    "exactly", "of", "for", "to", "on", "in", "at", "s",
];
/// Words that ask about a disruption.
const ASKING: [&str; 8] = ["where", "wheres", "what", "whats", "which", "why", "when", "how"];

fn has(message: &Utterance, words: &[&str]) -> bool {
    message.words().iter().any(|word| words.contains(&word.folded.as_str()))
}

fn last_turn(earlier: &[ChatMessage]) -> Option<&[ChatMessage]> {
    let start = earlier.iter().rposition(|message| message.role == Role::User)?;
    Some(&earlier[start..])
}

/// Returns the text of the last answer, and the names of the tools on which it rests.
fn last_answer(earlier: &[ChatMessage]) -> Option<(String, Vec<String>)> {
    let turn = last_turn(earlier)?;
    let mut answers = turn.iter().filter(|message| message.role == Role::Assistant).map(ChatMessage::plain_text);
    let text = answers.rfind(|text| !text.is_empty())?;
    Some((text, turn.iter().flat_map(ChatMessage::tool_calls).map(|call| call.name.clone()).collect()))
}

/// Rewrites a question that goes on from the state of a line or a notice at a station.
pub(super) fn of_disruption(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const MAX_WORDS: usize = 20;
    let message = Utterance::new(text);
    if message.words().is_empty() || message.words().len() > MAX_WORDS {
        return None;
    }
    state_then_question(&message)
        .or_else(|| state_of_part(&message))
        .or_else(|| states_of_lines_there(&message))
        .or_else(|| notice_again(&message, earlier))
        .or_else(|| detail_of_state(&message, earlier))
        .or_else(|| way_round(&message, earlier))
}

/// "Status of the Met and when is the last one from Aldgate?"
fn state_then_question(message: &Utterance) -> Option<String> {
    let runs = line_runs(message);
    let run = runs.first().filter(|run| run.lines.len() == 1)?;
    let opens =
        (0..run.words.start).all(|at| matches!(message.word(at), "status" | "of" | "the" | "state" | "on" | "for"));
    let and = run.words.end + usize::from(message.word(run.words.end) == "line");
    let asks =
        message.word(and) == "and" && matches!(message.word(and + 1), "when" | "whens" | "how" | "what" | "where");
    let line = find_line(&run.lines[0])?;
    let count = message.words().len();
    if !opens || !has(message, &["status", "state"]) || !asks || runs.len() > 1 {
        return None;
    }
    let one = (and + 1..count)
        .find(|at| message.word(*at) == "one" && matches!(message.word(at - 1), "next" | "last" | "first"));
    let rest = match one {
        Some(one) if one + 1 < count => {
            format!("{} {} train {}", message.said(and + 1..one), line.name, message.said(one + 1..count))
        }
        _ => message.said(and + 1..count).to_owned(),
    };
    Some(format!("Is the {} ok? {rest}", line.name))
}

/// "Does the Jubilee run all the way to Stanmore today?": the state of the line there
fn state_of_part(message: &Utterance) -> Option<String> {
    const NOW: [&str; 5] = ["today", "now", "tonight", "currently", "still"];
    let runs = line_runs(message);
    let [run] = &runs[..] else { return None };
    let line = find_line(run.lines.first().filter(|_| run.lines.len() == 1)?)?;
    let places = gazetteer().find(message);
    let [place] = &places[..] else { return None };
    let asks = (0..run.words.start).any(|at| matches!(message.word(at), "does" | "is" | "do" | "are"))
        && !has(message, &["next", "last", "first", "when", "how", "night", "all night"]);
    let between = run.words.end..place.words.start;
    let runs_to = between.clone().any(|at| matches!(message.word(at), "run" | "running" | "go" | "going"))
        && between
            .clone()
            .any(|at| message.word(at) == "way" || message.word(at) == "far" || message.word(at) == "right");
    (asks && runs_to && has(message, &NOW))
        .then(|| format!("status of the {} at {}?", line.name, message.said(place.words.clone())))
}

fn lines_at(place: &Mention) -> Vec<&'static LineInfo> {
    let ids = place.choices.iter().filter_map(|choice| choice.value.as_str());
    let hints = ids.flat_map(place_choices).flat_map(|choice| choice.hints.clone());
    let mut lines: Vec<&'static LineInfo> = Vec::new();
    for line in hints.filter_map(|hint| find_line(&hint)) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// "Which lines stop at Stockwell, and is any of them delayed?"
fn states_of_lines_there(message: &Utterance) -> Option<String> {
    const STATES: [&str; 10] =
        ["delayed", "disrupted", "late", "suspended", "closed", "affected", "delays", "problems", "trouble", "down"];
    let places = gazetteer().find(message);
    let [place] = &places[..] else { return None };
    let count = message.words().len();
    let lines_word = (0..place.words.start).find(|at| message.word(*at) == "lines")?;
    let asks = (0..lines_word).any(|at| matches!(message.word(at), "which" | "what"));
    let them = (place.words.end + 1..count).find(|at| {
        matches!(message.word(*at), "them" | "those" | "these") && matches!(message.word(at - 1), "of" | "on")
    })?;
    let is_state = (place.words.end..count).any(|at| STATES.contains(&message.word(at)));
    let lines = lines_at(place);
    (asks && is_state && line_runs(message).is_empty() && (1..=MAX_LINES).contains(&lines.len()) && them > 0).then(
        || {
            let names: Vec<String> = lines.iter().map(|line| format!("the {}", line.name)).collect();
            format!("{}? Status of {}?", message.said(0..place.words.end), names.join(" and "))
        },
    )
}

/// "Which line is that for?", after a notice at a station: the notice says it
fn notice_again(message: &Utterance, earlier: &[ChatMessage]) -> Option<String> {
    const WORDS: [&str; 12] =
        ["which", "what", "line", "lines", "affected", "affect", "affects", "does", "do", "concern", "hit", "platform"];
    let is_plain = message.words().iter().all(|word| {
        let word = word.folded.as_str();
        WORDS.contains(&word) || AROUND.contains(&word)
    });
    if !is_plain || !has(message, &["line", "lines", "platform"]) || !has(message, &["which", "what"]) {
        return None;
    }
    let refers = has(message, &["that", "this", "it", "affected", "affect", "affects"]);
    let (answer, tools) = last_answer(earlier)?;
    (refers && answer.contains("Reported there now:") && tools.iter().any(|tool| tool == INFO))
        .then(|| "again please".to_owned())
}

/// "Where was that faulty train?", after the state of one disrupted line: what TfL says about it
fn detail_of_state(message: &Utterance, earlier: &[ChatMessage]) -> Option<String> {
    const OF_DISRUPTIONS: [&str; 16] = [
        "happened",
        "cause",
        "caused",
        "causing",
        "reason",
        "instead",
        "replacement",
        "buses",
        "bus",
        "put",
        "they",
        "do",
        "running",
        "section",
        "part",
        "bit",
    ];
    let (answer, tools) = last_answer(earlier)?;
    let is_status = tools.iter().all(|tool| tool == STATUS || tool == "get_preference") && !tools.is_empty();
    if !is_status || !line_runs(message).is_empty() || !gazetteer().find(message).is_empty() {
        return None;
    }
    let spoken = SpokenLines::of(earlier.iter().map(|message| (message.role, message.plain_text())));
    let [line] = spoken.disrupted()[..] else { return None };
    let said = Utterance::new(answer);
    let occurs = |word: &str| said.words().iter().any(|known| known.folded == word);
    let mut refers = false;
    let is_known = message.words().iter().all(|word| {
        let word = word.folded.as_str();
        let is_plain = AROUND.contains(&word) || ASKING.contains(&word);
        refers |= !is_plain && (occurs(word) || OF_DISRUPTIONS.contains(&word));
        is_plain || occurs(word) || OF_DISRUPTIONS.contains(&word)
    });
    let asks = has(message, &ASKING) || has(message, &["buses", "bus", "reason", "cause"]);
    let is_where = message.word(0) == "where" && message.words().len() <= 4;
    (asks && is_known && (refers || is_where)).then(|| format!("status of the {}", line.name))
}

/// "Any way round it?", after a trip and the state of a line
fn way_round(message: &Utterance, earlier: &[ChatMessage]) -> Option<String> {
    const WORDS: [&str; 24] = [
        "any",
        "another",
        "other",
        "way",
        "route",
        "round",
        "around",
        "can",
        "could",
        "i",
        "we",
        "do",
        "how",
        "get",
        "go",
        "avoid",
        "what",
        "alternative",
        "alternatives",
        "else",
        "have",
        "without",
        "not",
        "using",
    ];
    let is_plain = message.words().iter().all(|word| {
        let word = word.folded.as_str();
        WORDS.contains(&word) || AROUND.contains(&word)
    });
    let goes_round = has(message, &["round", "around", "avoid", "alternative", "alternatives"])
        || has(message, &["another", "other"]) && has(message, &["way", "route"]);
    let refers =
        has(message, &["it", "that", "this"]) || has(message, &["alternative", "alternatives", "another", "other"]);
    if !is_plain || !goes_round || !refers {
        return None;
    }
    let (_, tools) = last_answer(earlier)?;
    if !tools.iter().any(|tool| tool == STATUS) || tools.iter().any(|tool| tool == ROUTE) {
        return None;
    }
    let spoken = SpokenLines::of(earlier.iter().map(|message| (message.role, message.plain_text())));
    let [line] = spoken.disrupted()[..] else { return None };
    let mut calls = earlier.iter().rev().flat_map(ChatMessage::tool_calls);
    let trip: Value = calls.find(|call| call.name == ROUTE)?.arguments.read().ok()?;
    let (from, to) = (trip["from_station"].as_str()?, trip["to_station"].as_str()?);
    let has_conditions = ["leave_at", "arrive_by"].iter().any(|name| !trip[*name].is_null());
    let step_free = if trip["step_free"] == true { " step-free" } else { "" };
    (!has_conditions).then(|| format!("how do I get{step_free} from {from} to {to}, avoiding the {}", line.name))
}

#[cfg(test)]
mod tests {
    use threadkeep::{JsonText, Part, ToolCall};

    use super::*;

    fn turn(question: &str, tool: &str, arguments: &Value, answer: &str) -> Vec<ChatMessage> {
        let call = ToolCall { id: "1".to_owned(), name: tool.to_owned(), arguments: JsonText::from(arguments) };
        let parts = vec![Part::ToolCall(call)];
        vec![
            ChatMessage::text(Role::User, question),
            ChatMessage { role: Role::Assistant, author: None, parts, seq: None },
            ChatMessage::text(Role::Assistant, answer),
        ]
    }

    #[test]
    fn questions_go_on_from_a_disruption() {
        let trip = serde_json::json!({"from_station": "Acton Town", "to_station": "Leicester Square"});
        let trip =
            turn("Acton Town to Leicester Square", ROUTE, &trip, "1. Take the Piccadilly line to Leicester Square.");
        let delayed = "Piccadilly line: severe delays. Severe delays due to a faulty train at Hyde Park Corner.";
        let status = turn("is the Piccadilly ok", STATUS, &serde_json::json!({"lines": "piccadilly"}), delayed);
        let earlier = [trip, status].concat();
        let notice = "Bank, zone 1.\nReported there now: faulty lift.";
        let notice = turn("is Bank step-free", INFO, &serde_json::json!({"station": "Bank"}), notice);
        let again = Some("status of the Piccadilly line");
        for (said, earlier, meant) in [
            ("where was that faulty train?", &earlier, again),
            ("what do they put on instead", &earlier, again),
            ("where was that taxi?", &earlier, None),
            (
                "any way round it",
                &earlier,
                Some("how do I get from Acton Town to Leicester Square, avoiding the Piccadilly line"),
            ),
            ("any way round it", &notice, None),
            ("which line is that for", &notice, Some("again please")),
            ("which lines stop there", &notice, None),
            (
                "status of the jubilee line and when is the last one from stanmore tonight?",
                &notice,
                Some("Is the Jubilee line ok? when is the last Jubilee line train from stanmore tonight"),
            ),
            (
                "does the jubilee run all the way to stanmore today",
                &notice,
                Some("status of the Jubilee line at stanmore?"),
            ),
            ("does the jubilee run to stanmore", &notice, None),
            (
                "which lines stop at Brixton, and is any of them delayed?",
                &notice,
                Some("which lines stop at Brixton? Status of the Victoria line?"),
            ),
        ] {
            assert_eq!(of_disruption(said, earlier).as_deref(), meant, "{said}");
        }
    }
}
