//! Rewrites messages that the intents cannot interpret as written, or that refer to earlier ones.

use threadkeep::dialogue::{Choice, Intent, Mention, Slot, Utterance};
use threadkeep::{ChatMessage, ToolCall, Value};
use threadkeep_transit::offline::{decoded, encoded, in_plain_words, with_minutes_to_platform};

use super::speech::SPEECH;

/// Returns the message to interpret instead of a message; `None` if it can be interpreted as written.
pub(super) fn complete(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    let text = in_plain_words(message).unwrap_or_else(|| message.to_owned());
    let text = SPEECH.with_earlier_boards(&text, earlier).unwrap_or(text);
    let text = SPEECH.with_last_trip(&text, earlier).unwrap_or(text);
    let text = with_named_board(&text, earlier).unwrap_or(text);
    let text = with_minutes_to_platform(&SPEECH, &text).unwrap_or(text);
    let text = with_edge_of_day(&text).unwrap_or(text);
    let text = about_boards(&text, earlier).unwrap_or(text);
    let text = with_two_stations(&text, earlier).unwrap_or(text);
    (text != message).then_some(text)
}

/// Names the line in "the first one, does it stop at Grand St?", after boards of several lines.
fn with_named_board(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const ORDINALS: [&str; 3] = ["first", "second", "third"];
    let message = Utterance::new(text);
    let count = message.words().len();
    let (at, number) = (0..count.min(4)).find_map(|at| {
        let number = ORDINALS.iter().position(|ordinal| *ordinal == message.word(at))?;
        (at > 0 && message.word(at - 1) == "the" && message.word(at + 1) == "one").then_some((at, number))
    })?;
    let it = (at + 2..count).find(|at| message.word(*at) == "it")?;
    let calls =
        earlier.iter().rev().flat_map(ChatMessage::tool_calls).take_while(|call| call.name == SPEECH.board.name);
    let mut lines: Vec<String> = Vec::new();
    for call in calls {
        let arguments: Value = call.arguments.read().unwrap_or_default();
        let line = arguments["line"].as_str().map(|line| SPEECH.system.line_name(line));
        lines.extend(line.filter(|line| !lines.contains(line)));
    }
    lines.reverse();
    let line = lines.get(number).filter(|_| lines.len() > 1)?;
    let word = |at: usize| &message.words()[at].span;
    let start = message.words()[at + 2].span.start;
    Some(format!("{}the {line}{}", &text[start..word(it).start], &text[word(it).end..]))
}

/// Asks only for the first or the last train in "last 5 going downtown from Grand Central tonight": no timetable is known, so a board or a
/// trip would answer something else.
fn with_edge_of_day(text: &str) -> Option<String> {
    let message = Utterance::new(text);
    let found = SPEECH.find_edges_of_day(&message);
    let edge = found.first()?.choices.first()?.value.as_str()?.to_owned();
    let lines = SPEECH.find_lines(&message);
    let line = match &lines[..] {
        [line] => format!("{} ", message.said(line.words.clone())),
        _ => String::new(),
    };
    let stations = SPEECH.find_stations(&message);
    let start = stations.iter().find(|place| {
        let before = place.words.start.checked_sub(1).map_or("", |at| message.word(at));
        matches!(before, "from" | "at" | "leave" | "leaving" | "of")
    });
    let start = start.map(|place| format!(" from {}", message.said(place.words.clone()))).unwrap_or_default();
    let way = (SPEECH.directions)(&message).into_iter().next();
    let way = way.map(|way| format!(" {}", message.said(way.words))).unwrap_or_default();
    Some(format!("what time is the {edge} {line}train{start}{way}?"))
}

/// The words with which the answer about the station of an earlier question starts.
const ASKED: &str = "Asked about station: ";

/// Finds a rewritten question for the station of an earlier one.
pub(super) fn find_asked(message: &Utterance) -> Vec<Mention> {
    let name = message.text().strip_prefix(ASKED).and_then(decoded);
    let mention =
        |name: String| Mention::new(0..message.words().len(), vec![Choice::new(name.as_str(), name.as_str())]);
    name.map(mention).into_iter().collect()
}

/// "Which stop did I ask about?"
pub(super) fn asked_station() -> Intent {
    Intent::new("asked_station")
        .decided_by("asked", |_, _| true)
        .slot(Slot::required("asked", "asked").fresh().momentary())
        .says(|outcome| format!("You asked about {}.", outcome.slots().label("asked")))
}

/// Rewrites questions about earlier boards and their stations: "which stop did I ask about?", "what time is that?", "which of those stations
/// are accessible?"
fn about_boards(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const ASKING: [&str; 20] = [
        "which", "what", "station", "stop", "did", "i", "ask", "asked", "about", "mention", "name", "say", "first",
        "last", "was", "it", "again", "you", "for", "one",
    ];
    const ACCESS: [&str; 18] = [
        "which",
        "of",
        "those",
        "these",
        "them",
        "two",
        "three",
        "platforms",
        "stations",
        "stops",
        "are",
        "is",
        "have",
        "has",
        "accessible",
        "elevator",
        "elevators",
        "an",
    ];
    let message = Utterance::new(text);
    let has = |words: &[&str]| message.words().iter().any(|word| words.contains(&word.folded.as_str()));
    let is_all = |words: &[&str]| message.words().iter().all(|word| words.contains(&word.folded.as_str()));
    let names = |call: &ToolCall| {
        let arguments: Value = call.arguments.read().unwrap_or_default();
        ["station_name", "station", "from_station"].iter().find_map(|name| arguments[*name].as_str().map(str::to_owned))
    };
    let calls = || earlier.iter().flat_map(ChatMessage::tool_calls);
    let asks = has(&["which", "what"]) && has(&["station", "stop"]) && has(&["ask", "asked", "mention", "name", "say"]);
    if asks && has(&["i"]) && is_all(&ASKING) {
        let named = if has(&["first"]) { calls().find_map(names) } else { calls().filter_map(names).last() };
        return named.map(|name| format!("{ASKED}{}", encoded(&name)));
    }
    let last = calls().last().filter(|call| call.name == SPEECH.board.name);
    let words: Vec<&str> = message.words().iter().map(|word| word.folded.as_str()).collect();
    if last.is_some()
        && matches!(
            words[..],
            ["what", "time", "is" | "was", "that" | "it"] | ["at", "what", "time"] | ["what", "time"]
        )
    {
        return Some("again please".to_owned());
    }
    last?;
    if !has(&["accessible", "elevator", "elevators"]) || !has(&["those", "these", "them"]) || !is_all(&ACCESS) {
        return None;
    }
    let boards =
        earlier.iter().rev().flat_map(ChatMessage::tool_calls).take_while(|call| call.name == SPEECH.board.name);
    let mut named: Vec<String> = Vec::new();
    for name in boards.filter_map(names) {
        if !named.contains(&name) && named.len() < 3 {
            named.push(name);
        }
    }
    Some(named.iter().map(|name| format!("is {name} accessible?")).collect::<Vec<_>>().join(" "))
}

/// Names the stations of the last two answers in "wait, is that the same station?"
fn with_two_stations(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const WORDS: [&str; 22] = [
        "wait", "hm", "hmm", "ok", "so", "and", "but", "is", "are", "that", "this", "it", "those", "these", "they",
        "the", "two", "both", "same", "one", "station", "stop",
    ];
    let message = Utterance::new(text);
    let has = |word: &str| message.words().iter().any(|known| known.folded == word);
    let is_plain = message.words().iter().all(|word| WORDS.contains(&word.folded.as_str()));
    if !is_plain || !has("same") || !has("is") && !has("are") || !has("station") && !has("stop") && !has("one") {
        return None;
    }
    let mut named: Vec<String> = Vec::new();
    for call in earlier.iter().rev().flat_map(ChatMessage::tool_calls) {
        let arguments: Value = call.arguments.read().unwrap_or_default();
        let name = ["station_name", "station"].iter().find_map(|name| arguments[*name].as_str().map(str::to_owned));
        match name {
            Some(name) if !named.contains(&name) => named.push(name),
            _ => {}
        }
    }
    let [second, first, ..] = &named[..] else { return None };
    Some(format!("is {first} the same station as {second}?"))
}

#[cfg(test)]
mod tests {
    use threadkeep::{JsonText, Part, Role};

    use super::*;

    fn board(question: &str, arguments: &Value) -> [ChatMessage; 2] {
        let name = SPEECH.board.name.to_owned();
        let call = ToolCall { id: "1".to_owned(), name, arguments: JsonText::from(arguments) };
        let parts = vec![Part::ToolCall(call)];
        [ChatMessage::text(Role::User, question), ChatMessage { role: Role::Assistant, author: None, parts, seq: None }]
    }

    #[test]
    fn messages_about_earlier_boards_name_them() {
        let first = serde_json::json!({"station_name": "Court Sq", "line": "G"});
        let second = serde_json::json!({"station_name": "21 St", "line": "G", "direction": "Court Sq"});
        let earlier: Vec<ChatMessage> =
            [board("next G at Court Sq?", &first), board("and at 21 St to Court Sq", &second)].concat();
        for (said, meant) in [
            ("court sq once more", Some("when is the next G at Court Sq")),
            ("and from the first station I named?", Some("and from Court Sq?")),
            ("back to the first one: which lines stop there?", Some("at Court Sq, which lines stop there?")),
            ("wait, is that the same station?", Some("is Court Sq the same station as 21 St?")),
            ("which station did I ask about first?", Some("Asked about station: 436f757274205371")),
            ("the first stop after Court Sq?", None),
            ("next G at 21 St", None),
            ("which train gets me to Court Sq first", None),
            ("again", None),
            (
                "last 5 going downtown from grand central tonight",
                Some("what time is the last 5 train from grand central downtown?"),
            ),
            ("what time is that", Some("again please")),
            ("which of those stations are accessible", Some("is 21 St accessible? is Court Sq accessible?")),
        ] {
            assert_eq!(complete(said, &earlier).as_deref(), meant, "{said}");
        }
        let compared = complete("so which of those two comes first?", &earlier).unwrap_or_default();
        let boards = compared.strip_prefix("Boards to compare: ").and_then(decoded).unwrap_or_default();
        assert!(boards.contains("21 St") && boards.contains("Court Sq"), "{boards}");
        let asked = complete("which stop did i ask about?", &earlier).unwrap_or_default();
        assert_eq!(find_asked(&Utterance::new(asked))[0].choices[0].value, "21 St");
        assert_eq!(complete("which of those three comes first?", &earlier), None);
        assert_eq!(
            complete("I need 6 minutes to walk over there. which A can I make?", &earlier).as_deref(),
            Some("I need 6 minutes to the platform for the A")
        );
    }
}
