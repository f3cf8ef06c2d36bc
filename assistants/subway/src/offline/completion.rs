//! Rewrites messages that the intents cannot interpret as written, or that refer to earlier ones.

use threadkeep::dialogue::Utterance;
use threadkeep::{ChatMessage, Value};
use threadkeep_transit::offline::{in_plain_words, with_minutes_to_platform};

use super::speech::SPEECH;

/// Returns the message to interpret instead of a message; `None` if it can be interpreted as written.
pub(super) fn complete(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    let text = in_plain_words(message).unwrap_or_else(|| message.to_owned());
    let text = SPEECH.with_earlier_boards(&text, earlier).unwrap_or(text);
    let text = SPEECH.with_last_trip(&text, earlier).unwrap_or(text);
    let text = with_named_board(&text, earlier).unwrap_or(text);
    let text = with_minutes_to_platform(&SPEECH, &text).unwrap_or(text);
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
    use threadkeep::{JsonText, Part, Role, ToolCall};

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
            ("which station did I ask about first?", None),
            ("the first stop after Court Sq?", None),
            ("next G at 21 St", None),
            ("which train gets me to Court Sq first", None),
            ("again", None),
        ] {
            assert_eq!(complete(said, &earlier).as_deref(), meant, "{said}");
        }
        let compared = complete("so which of those two comes first?", &earlier).unwrap_or_default();
        assert!(compared.starts_with("Boards to compare: ") && compared.contains("21 St"), "{compared}");
        assert_eq!(complete("which of those three comes first?", &earlier), None);
        assert_eq!(
            complete("I need 6 minutes to walk over there. which A can I make?", &earlier).as_deref(),
            Some("I need 6 minutes to the platform for the A")
        );
    }
}
