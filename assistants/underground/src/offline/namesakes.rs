//! A line and a station, or two stations, of one name: "the line, I mean", "now from the other Edgware Road".

use threadkeep::dialogue::{Extractor as _, Utterance};
use threadkeep::{ChatMessage, Role, Value};

use super::states;
use crate::lines::{LINES, LineInfo, line_runs};
use crate::network::{gazetteer, place_choices};
use crate::spoken_lines::SpokenLines;

/// Words that add nothing to what is meant.
const AROUND: [&str; 27] = [
    "ok", "okay", "and", "the", "i", "mean", "meant", "no", "not", "sorry", "oh", "how", "hows", "is", "about", "what",
    "itself", "tube", "then", "please", "actually", "but", "now", "s", "though", "today", "it",
];

/// Returns the line that has the name of a station, if the text names it as such a station or such a line.
fn namesake(text: &str) -> Option<(&'static LineInfo, &'static str)> {
    let message = Utterance::new(text);
    let named = LINES.iter().filter_map(|line| Some((line, line.name.strip_suffix(" line")?)));
    let mut named = named.filter(|(_, name)| !place_choices(name).is_empty());
    named.find(|(_, name)| {
        let words = Utterance::new(*name);
        (0..message.words().len())
            .any(|at| words.words().iter().enumerate().all(|(offset, word)| message.word(at + offset) == word.folded))
    })
}

/// Names the line or the station in "the line, I mean", "I mean the station, which lines stop there?", after a question about the other
/// one of the same name; and the line in "how's Victoria?"
pub(super) fn as_meant(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    let message = Utterance::new(text);
    let count = message.words().len();
    let is_around = |at: usize| AROUND.contains(&message.word(at));
    if let Some((line, name)) = namesake(text) {
        let at = (0..count).find(|at| message.word(*at) == name.to_lowercase())?;
        let asks = at > 0
            && (message.word(at - 1) == "hows"
                || message.word(at - 1) == "is" && message.word(at.checked_sub(2)?) == "how");
        let is_bare = line_runs(&message).is_empty() && (0..count).all(|other| other == at || is_around(other));
        return (asks && is_bare).then(|| format!("How is the {} today?", line.name));
    }
    let question = earlier.iter().rev().find(|message| message.role == Role::User)?.plain_text();
    let (line, name) = namesake(&question)?;
    let noun = (0..count).find(|at| matches!(message.word(*at), "line" | "station" | "stop"))?;
    let is_named = matches!(message.word(noun.checked_sub(1)?), "the" | "tube");
    if !is_named || !line_runs(&message).is_empty() || !gazetteer().find(&message).is_empty() {
        return None;
    }
    if message.word(noun) == "line" {
        return (0..count).all(|at| at == noun || is_around(at)).then(|| format!("status of the {}", line.name));
    }
    let is_meant = (0..noun).any(|at| matches!(message.word(at), "mean" | "meant")) || noun + 1 == count;
    let start = message.words()[noun].span.end;
    let rest = text[start..].trim_start_matches([',', '.', ':', ' ']);
    (is_meant && (0..noun).all(is_around)).then(|| match rest.is_empty() {
        true => format!("{name} station"),
        false => format!("{name} station, {rest}"),
    })
}

/// Names the line of the last trip or board in "and is the line ok today?", if it is one.
pub(super) fn with_line_of_trip(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const STATES: [&str; 18] = [
        "ok",
        "okay",
        "fine",
        "running",
        "delayed",
        "delays",
        "delay",
        "problems",
        "trouble",
        "disrupted",
        "late",
        "good",
        "alright",
        "normal",
        "working",
        "status",
        "issues",
        "wrong",
    ];
    let message = Utterance::new(text);
    let count = message.words().len();
    let the = (0..count).find(|at| {
        matches!(message.word(*at), "the" | "that" | "this")
            && message.word(at + 1) == "line"
            && message.word(at + 2) != "i"
    })?;
    let asks = message.words().iter().any(|word| STATES.contains(&word.folded.as_str()));
    if !asks || !line_runs(&message).is_empty() || !gazetteer().find(&message).is_empty() {
        return None;
    }
    let start = earlier.iter().rposition(|message| message.role == Role::User)?;
    let calls = || earlier[start..].iter().flat_map(ChatMessage::tool_calls);
    let is_trip = calls().any(|call| matches!(call.name.as_str(), "get_route" | "get_next_trains"));
    let answer = earlier[start..].iter().filter(|message| message.role == Role::Assistant).map(ChatMessage::plain_text);
    let spoken = SpokenLines::of(earlier.iter().map(|message| (message.role, message.plain_text())));
    let named = spoken.of_trip();
    let [line] = named[..] else { return None };
    let is_named = is_trip || answer.into_iter().any(|text| text.contains(line.name));
    let span = |at: usize| &message.words()[at].span;
    let asked = format!("{}the {}{}", &text[..span(the).start], line.name, &text[span(the + 1).end..]);
    // Without a word for the state of a line, the question would be about the trip.
    let asked = match states::find_states(&Utterance::new(asked.as_str())).is_empty() {
        true => format!("status of the {}", line.name),
        false => asked,
    };
    is_named.then_some(asked)
}

/// Names the other station of the same name: "now from the other Edgware Road".
pub(super) fn with_namesake(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    let message = Utterance::new(text);
    let place = gazetteer().find(&message).into_iter().next()?;
    let other = place.words.start.checked_sub(1).filter(|at| message.word(*at) == "other")?;
    let start = other.checked_sub(1).filter(|at| message.word(*at) == "the").unwrap_or(other);
    let calls = earlier.iter().rev().flat_map(ChatMessage::tool_calls);
    let last = calls.into_iter().find_map(|call| {
        let arguments: Value = call.arguments.read().ok()?;
        Some(arguments["station"].as_str()?.to_owned())
    })?;
    let ids = place.choices.iter().filter_map(|choice| choice.value.as_str());
    let values: Vec<String> =
        ids.flat_map(place_choices).filter_map(|choice| Some(choice.value.as_str()?.to_owned())).collect();
    let [first, second] = &values[..] else { return None };
    let named = if *first == last {
        second
    } else if *second == last {
        first
    } else {
        return None;
    };
    let said = message.words()[start].span.start..message.words()[place.words.end - 1].span.end;
    Some(format!("{}{named}{}", &text[..said.start], &text[said.end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_stations_of_one_name_are_distinguished() {
        let after = |question: &str, answer: &str| {
            vec![ChatMessage::text(Role::User, question), ChatMessage::text(Role::Assistant, answer)]
        };
        let station = after("Victoria?", "Victoria, zone 1: Circle, District, Victoria lines.");
        let line = after("and Victoria", "Victoria line: good service.");
        for (said, earlier, meant) in [
            ("the line, I mean", &station, Some("status of the Victoria line")),
            ("ok and the line?", &station, Some("status of the Victoria line")),
            ("I mean the station, which lines stop there?", &line, Some("Victoria station, which lines stop there?")),
            ("How's Victoria today?", &station, Some("How is the Victoria line today?")),
            ("How's Victoria station?", &station, None),
            ("is the line long?", &station, None),
            ("how's the line", &after("Bank?", "Bank, zone 1."), None),
        ] {
            assert_eq!(as_meant(said, earlier).as_deref(), meant, "{said}");
        }
        let trip = after(
            "Bank to Waterloo",
            "Bank to Waterloo: 4 min.\n1. Take the Waterloo & City line from Bank to Waterloo.",
        );
        assert_eq!(
            with_line_of_trip("and is the line ok today?", &trip).as_deref(),
            Some("and is the Waterloo & City line ok today?")
        );
        assert_eq!(with_line_of_trip("and is the line ok today?", &[]), None);
    }
}
