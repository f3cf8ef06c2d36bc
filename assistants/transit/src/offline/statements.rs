//! Statements about the user: where the user lives and works, and which line the user takes.

use std::ops::Range;

use serde_json::json;
use threadkeep::dialogue::{Choice, Intent, Mention, Slot, Utterance};

use super::Speech;
use super::boards::{lines_of, on_lines};
use super::personal::saved_or_asks;

/// Words for saved places, and the preference keys that they name.
const PLACES: [(&str, &str); 9] = [
    ("home", "home station"),
    ("house", "home station"),
    ("apartment", "home station"),
    ("flat", "home station"),
    ("place", "home station"),
    ("work", "work station"),
    ("office", "work station"),
    ("job", "work station"),
    ("workplace", "work station"),
];

/// Words that start a request to save something.
const SAVING: [&str; 17] = [
    "save", "saved", "set", "remember", "store", "keep", "put", "use", "mark", "add", "note", "make", "change",
    "update", "switch", "register", "call",
];

/// Words of questions: a message that contains one of them is not a statement to save.
const ASKING: [&str; 15] = [
    "if", "how", "when", "whens", "what", "whats", "which", "where", "wheres", "next", "does", "can", "route", "get",
    "why",
];

/// Finds the words by which a message says that a place is the user's home or work: "i live at", "home is", "as my home station".
#[must_use]
pub fn find_statements(message: &Utterance) -> Vec<Mention> {
    let count = message.words().len();
    if (0..count).any(|at| ASKING.contains(&message.word(at))) || matches!(message.word(0), "is" | "are" | "do") {
        return Vec::new();
    }
    let found = (0..count).find_map(|at| lives_or_works(message, at).or_else(|| names_place(message, at)));
    found
        .into_iter()
        .map(|(words, key)| Mention::new(words.clone(), vec![Choice::new(key, message.said(words))]))
        .collect()
}

/// Recognises "i live at", "im living near", "we work in", "im based at".
fn lives_or_works(message: &Utterance, at: usize) -> Option<(Range<usize>, &'static str)> {
    if !matches!(message.word(at), "i" | "im" | "we" | "were" | "ive") {
        return None;
    }
    let fillers = ["now", "also", "actually", "am", "are", "just", "currently", "have", "moved", "usually"];
    let verb = (at + 1..at + 4).find(|verb| !fillers.contains(&message.word(*verb)))?;
    let key = match message.word(verb) {
        "live" | "living" | "stay" | "staying" | "crash" | "moved" => "home station",
        "work" | "working" => "work station",
        _ => return None,
    };
    let is_place = matches!(message.word(verb + 1), "at" | "in" | "near" | "by" | "on" | "off" | "around" | "next");
    // "If I stay on to Canal" is about a train.
    let is_on_train =
        matches!(message.word(verb), "stay" | "staying") && matches!(message.word(verb + 1), "on" | "off");
    (is_place && !is_on_train).then_some((at..verb + 2, key))
}

/// Recognises "home is X", "home = X", "save X as home", "set my work station to X", "home station: X".
fn names_place(message: &Utterance, at: usize) -> Option<(Range<usize>, &'static str)> {
    let (_, key) = PLACES.iter().find(|(word, _)| *word == message.word(at))?;
    let start = match at.checked_sub(1).map(|before| message.word(before)) {
        Some("my" | "our" | "new") => at - 1,
        _ => at,
    };
    let end = if matches!(message.word(at + 1), "station" | "stop") { at + 2 } else { at + 1 };
    let before = start.checked_sub(1).map_or("", |before| message.word(before));
    let saves = || (0..start).any(|at| SAVING.contains(&message.word(at)));
    if matches!(before, "as" | "is" | "thats") && (saves() || before != "as") && start > 1 {
        return Some((start - 1..end, key));
    }
    let is_stated = matches!(message.word(end), "is" | "moved" | "changed" | "now" | "to")
        && (at > 0 || end < message.words().len());
    let has_sign = message.words().get(end).is_some_and(|next| {
        let between = &message.text()[message.words()[end - 1].span.end..next.span.start];
        between.contains(['=', ':'])
    });
    let is_set = SAVING.contains(&before);
    // "Save home Nostrand on the A"
    let is_saved_as = matches!(before, "save" | "set" | "store" | "remember" | "note" | "add")
        && !matches!(message.word(end), "" | "and" | "as" | "is" | "to" | "please" | "for" | "too");
    let is_followed = !matches!(message.word(end + 1), "" | "there" | "here" | "not" | "accessible");
    // "Place" and "flat" are ordinary words: they need "my" before them.
    let is_own = start < at || matches!(message.word(at), "home" | "work" | "office");
    ((is_stated && message.word(end) != "to" && is_followed
        || has_sign
        || is_set && message.word(end) == "to"
        || is_saved_as)
        && is_own)
        .then_some((at..end, *key))
}

/// Finds the words by which a message says which line the user takes: "i usually take", "my regular train is".
#[must_use]
pub fn find_habits(message: &Utterance) -> Vec<Mention> {
    let count = message.words().len();
    if (0..count).any(|at| ASKING.contains(&message.word(at))) || matches!(message.word(0), "is" | "are" | "do" | "any")
    {
        return Vec::new();
    }
    let habit = (0..count).find_map(|at| {
        let is_subject = matches!(message.word(at), "i" | "we");
        let is_often = |at: usize| {
            matches!(
                message.word(at),
                "always" | "usually" | "normally" | "mostly" | "generally" | "typically" | "often" | "mainly"
            )
        };
        let takes =
            |at: usize| matches!(message.word(at), "take" | "use" | "ride" | "catch" | "travel" | "commute" | "go");
        if is_subject && is_often(at + 1) && takes(at + 2) {
            return Some(at..at + 3);
        }
        let is_mine = message.word(at) == "my"
            && matches!(
                message.word(at + 1),
                "usual" | "regular" | "normal" | "daily" | "everyday" | "main" | "default"
            )
            && matches!(message.word(at + 2), "line" | "train" | "tube" | "ride");
        let is_named_so = is_mine && at > 0 && matches!(message.word(at - 1), "as" | "is" | "thats");
        // "Set the 7 as my usual line"
        let as_mine = || is_named_so.then(|| at - 1..at + 3);
        (is_mine && matches!(message.word(at + 3), "is" | "s")).then_some(at..at + 4).or_else(as_mine)
    });
    habit
        .into_iter()
        .map(|words| Mention::new(words.clone(), vec![Choice::new("usual line", message.said(words))]))
        .collect()
}

/// "I live at Pelham Bay Park", "save Parkchester as my home station"
pub(super) fn state_place(speech: &'static Speech) -> Intent {
    Intent::new("state_place")
        .about_user()
        .slot(Slot::required("place", "statement"))
        .slot(
            Slot::required("station", "station")
                .fresh()
                .after(["is", "to", "at", "now", "near", "in", "by", "on"])
                .asks("Which station?")
                .narrowed_by(on_lines)
                .narrowing_assumed(),
        )
        .slot(Slot::optional("lines", "lines"))
        .then_calls("save_preference", |outcome| {
            let slots = outcome.slots();
            let station = slots.value("station").as_str().map(str::to_owned)?;
            Some(json!({"key": slots.value("place"), "value": station}))
        })
        .says(move |outcome| saved_or_asks(speech, "save a station", outcome))
}

/// "I usually take the 6"
pub(super) fn state_habit(speech: &'static Speech) -> Intent {
    Intent::new("state_habit")
        .about_user()
        .slot(Slot::required("habit", "habit"))
        .slot(Slot::required("lines", "lines").fresh().asks("Which line?"))
        .then_calls("save_preference", |outcome| {
            let names =
                lines_of(&outcome.slots().value("lines")).into_iter().map(|line| speech.system.line_name(&line));
            let names: Vec<String> = names.collect();
            (!names.is_empty()).then(|| json!({"key": outcome.slots().value("habit"), "value": names.join(", ")}))
        })
        .says(move |outcome| saved_or_asks(speech, "save a line", outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(find: fn(&Utterance) -> Vec<Mention>, text: &str) -> Option<String> {
        let message = Utterance::new(text);
        let found = find(&message);
        found.first().map(|mention| format!("{} ({})", message.said(mention.words.clone()), mention.choices[0].value))
    }

    #[test]
    fn statements_are_found_and_questions_are_not() {
        for (text, expected) in [
            ("i live at Pelham Bay Park", Some("i live at (\"home station\")")),
            ("i work at bowling green", Some("i work at (\"work station\")")),
            ("home is 72 st on the q", Some("home (\"home station\")")),
            ("home = jay st", Some("home (\"home station\")")),
            ("save parkchester as my home station", Some("as my home station (\"home station\")")),
            ("remember 3 av 138 as home", Some("as home (\"home station\")")),
            ("I moved. My home is now Castle Hill Av.", Some("home (\"home station\")")),
            ("how do i get home from work", None),
            ("is home accessible", None),
            ("take me home from astor pl", None),
            ("where do i live", None),
        ] {
            assert_eq!(said(find_statements, text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn habits_are_found_and_questions_are_not() {
        for (text, expected) in [
            ("And I usually take the 6 train", Some("I usually take (\"usual line\")")),
            ("I always take the District", Some("I always take (\"usual line\")")),
            ("should i take the 6", None),
            ("which line do i usually take", None),
        ] {
            assert_eq!(said(find_habits, text).as_deref(), expected, "{text}");
        }
    }
}
