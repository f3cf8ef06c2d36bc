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
    let mut found: Vec<(Range<usize>, &str)> = Vec::new();
    for at in 0..count {
        let until = found.last().map_or(0, |(words, _)| words.end);
        let stated = changed_place(message, at)
            .or_else(|| lives_or_works(message, at))
            .or_else(|| names_place(message, at))
            .filter(|(words, _)| words.start >= until);
        // "I work at X, save that as my work station" says it twice.
        let stated = stated
            .filter(|(words, key)| !(refers_back(message, words.start) && found.iter().any(|(_, known)| known == key)));
        found.extend(stated);
    }
    found
        .into_iter()
        .map(|(words, key)| Mention::new(words.clone(), vec![Choice::new(key, message.said(words))]))
        .collect()
}

/// Whether "as" at a position follows a pronoun for the place that was named before: "save that as".
fn refers_back(message: &Utterance, at: usize) -> bool {
    at > 0 && message.word(at) == "as" && matches!(message.word(at - 1), "that" | "it" | "this" | "them")
}

/// Rewords statements and questions about what is saved: without "I changed my mind", without "remember that as my home station" after "I
/// live at Astor Place", with what is set first, and "where do I live?" as a question for the home station.
#[must_use]
pub fn in_plain_words(text: &str) -> Option<String> {
    let named = with_usual_line_named(text);
    if named.is_some() {
        return named;
    }
    let shorter = without_change_of_mind(text).or_else(|| without_second_request(text));
    let meant = with_setting_first(shorter.as_deref().unwrap_or(text)).or_else(|| asked_by_verb(text));
    meant.or(shorter)
}

/// "My usual one" is the usual line.
fn with_usual_line_named(text: &str) -> Option<String> {
    let message = Utterance::new(text);
    let at = (2..message.words().len())
        .find(|at| message.word(*at) == "one" && message.word(at - 1) == "usual" && message.word(at - 2) == "my")?;
    let span = &message.words()[at].span;
    Some(format!("{}line{}", &text[..span.start], &text[span.end..]))
}

/// Puts what is set first: "the B is my favorite line" is "my favorite line is the B".
fn with_setting_first(text: &str) -> Option<String> {
    let message = Utterance::new(text);
    let count = message.words().len();
    let my = (2..count).find(|at| message.word(*at) == "my" && message.word(at - 1) == "is")?;
    let is_setting = matches!(message.word(my + 1), "favorite" | "favourite" | "usual" | "preferred")
        && matches!(message.word(my + 2), "line" | "station" | "stop" | "train" | "route");
    let is_plain =
        my + 3 == count && my <= MAX_VALUE_WORDS && !text.contains('?') && !ASKING.contains(&message.word(0));
    (is_setting && is_plain).then(|| format!("{} is {}", message.said(my..count), message.said(0..my - 1)))
}

/// The maximum number of words of a value before "is my favorite line".
const MAX_VALUE_WORDS: usize = 6;

/// "Where do I live according to you?" asks for the home station.
fn asked_by_verb(text: &str) -> Option<String> {
    const REST: [&str; 9] = ["according", "to", "you", "again", "as", "far", "know", "now", "please"];
    let message = Utterance::new(text);
    let count = message.words().len();
    let start = (0..2)
        .find(|at| message.word(*at) == "where" && message.word(at + 1) == "do" && message.word(at + 2) == "i")?;
    let place = match message.word(start + 3) {
        "live" => "home",
        "work" => "work",
        _ => return None,
    };
    (start + 4..count).all(|at| REST.contains(&message.word(at))).then(|| format!("what is my {place} station?"))
}

fn without_change_of_mind(text: &str) -> Option<String> {
    const OPENINGS: [&str; 4] = ["i changed my mind", "i've changed my mind", "ive changed my mind", "changed my mind"];
    let lower = text.to_lowercase().replace('’', "'");
    let opening = OPENINGS.iter().find(|opening| lower.starts_with(**opening))?;
    let rest = text.get(opening.len()..)?.trim_start_matches([',', '.', ':', ';', '-', ' ']);
    (!rest.is_empty() && rest.len() < text.len()).then(|| rest.to_owned())
}

fn without_second_request(text: &str) -> Option<String> {
    const REST: [&str; 16] = [
        "as", "my", "the", "station", "stop", "please", "pls", "thanks", "for", "me", "too", "then", "ok", "now",
        "next", "time",
    ];
    let message = Utterance::new(text);
    let count = message.words().len();
    let (stated, key) = (0..count).find_map(|at| lives_or_works(&message, at))?;
    let start = (stated.end + 1..count)
        .find(|at| SAVING.contains(&message.word(*at)) && matches!(message.word(at + 1), "that" | "it" | "this"))?;
    let key_of = |word: &str| PLACES.iter().find(|(place, _)| *place == word).map(|(_, key)| *key);
    let repeats =
        (start + 2..count).all(|at| REST.contains(&message.word(at)) || key_of(message.word(at)) == Some(key));
    let end = message.words()[start].span.start;
    let kept = text[..end].trim_end_matches([',', '.', ';', '!', '-', ' ']);
    let kept = kept.strip_suffix(" please").unwrap_or(kept);
    let kept = kept.strip_suffix(" and").unwrap_or(kept).trim_end_matches([',', ' ']);
    repeats.then(|| kept.to_owned())
}

/// Recognises "i moved to", "new job!! its", "started a job at", which replace what was saved. The words belong together although a
/// sentence may end between them.
fn changed_place(message: &Utterance, at: usize) -> Option<(Range<usize>, &'static str)> {
    const MAX_GAP: usize = 4;
    let word = |at: usize| message.word(at);
    let is_in = |at: usize| matches!(word(at), "at" | "in" | "near" | "by");
    if word(at) == "moved" {
        let mut start = at;
        while start > 0 && matches!(word(start - 1), "just" | "have" | "recently" | "now" | "since" | "also") {
            start -= 1;
        }
        let is_own = start > 0 && matches!(word(start - 1), "i" | "ive" | "we" | "weve");
        let end = if matches!(word(at + 1), "house" | "home" | "flat" | "apartment") { at + 2 } else { at + 1 };
        let is_new = (end..end + 3).any(|at| word(at) == "new");
        let is_to = matches!(word(end), "to" | "into" | "over") || is_in(end);
        return (is_own && is_to && !is_new).then(|| (start - 1..end + 1, "home station"));
    }
    let (_, key) = PLACES.iter().find(|(place, _)| *place == word(at))?;
    let before = at.checked_sub(1).map_or("", word);
    let is_started = at > 1
        && matches!(before, "a" | "the" | "my")
        && matches!(word(at - 2), "started" | "start" | "starting" | "got" | "found" | "took");
    if before != "new" && !(is_started && *key == "work station") {
        return None;
    }
    let mut end = at + 1;
    while end <= at + MAX_GAP && matches!(word(end), "its" | "it" | "is" | "now" | "and" | "thats" | "that" | "station")
    {
        end += 1;
    }
    let is_stated = is_in(end) || end > at + 1 && matches!(word(end - 1), "its" | "is" | "thats");
    let end = if is_in(end) { end + 1 } else { end };
    is_stated.then(|| (at - 1..end, *key))
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
    let habit = from_now_on(message).or_else(|| {
        (0..count).find_map(|at| {
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
        })
    });
    habit
        .into_iter()
        .map(|words| Mention::new(words.clone(), vec![Choice::new("usual line", message.said(words))]))
        .collect()
}

/// Finds "from now on" in "make it the Jubilee from now on", which changes the usual line. "Avoid the Jubilee from now on" does not.
fn from_now_on(message: &Utterance) -> Option<Range<usize>> {
    const SETTING: [&str; 16] = [
        "make",
        "change",
        "switch",
        "set",
        "take",
        "taking",
        "use",
        "using",
        "ride",
        "riding",
        "on",
        "its",
        "update",
        "commute",
        "commuting",
        "call",
    ];
    const NOT_SETTING: [&str; 10] =
        ["avoid", "avoiding", "not", "no", "without", "skip", "never", "dont", "faster", "free"];
    let has = |known: &[&str]| message.words().iter().any(|word| known.contains(&word.folded.as_str()));
    let phrases = ["from now on", "from today", "from today on", "going forward", "these days"];
    let found = (0..message.words().len()).find_map(|at| {
        let lengths = phrases
            .iter()
            .map(|phrase| phrase.split(' ').collect::<Vec<_>>())
            .filter(|words| words.iter().enumerate().all(|(offset, word)| message.word(at + offset) == *word));
        lengths.map(|words| at..at + words.len()).max_by_key(|words| words.len())
    });
    found.filter(|_| has(&SETTING) && !has(&NOT_SETTING))
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
            ("we just moved to Astoria", Some("we just moved to (\"home station\")")),
            ("new office! It is at Bank now", Some("new office! It is at (\"work station\")")),
            ("my friend got a new job", None),
        ] {
            assert_eq!(said(find_statements, text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_stated_twice_is_left_out() {
        for (text, expected) in [
            ("I live near Astor Place, save it as my home station", Some("I live near Astor Place")),
            ("I live at Parkchester and please remember that as home", Some("I live at Parkchester")),
            ("I work at Bank. Keep that as my work station, thanks", Some("I work at Bank")),
            ("I changed my mind, the B is my favorite line", Some("my favorite line is the B")),
            ("so where do I live according to you?", Some("what is my home station?")),
            ("where do I live", Some("what is my home station?")),
            ("is the B my favorite line?", None),
            ("I live at Parkchester, save it as my work station", None),
            ("I live at Parkchester, save Bank as my work station", None),
            ("I live at Parkchester", None),
        ] {
            assert_eq!(in_plain_words(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn habits_are_found_and_questions_are_not() {
        for (text, expected) in [
            ("And I usually take the 6 train", Some("I usually take (\"usual line\")")),
            ("I always take the District", Some("I always take (\"usual line\")")),
            ("make it the Jubilee from now on", Some("from now on (\"usual line\")")),
            ("avoid the 6 from now on", None),
            ("should i take the 6", None),
            ("which line do i usually take", None),
        ] {
            assert_eq!(said(find_habits, text).as_deref(), expected, "{text}");
        }
    }
}
