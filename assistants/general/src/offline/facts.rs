//! Intents that need neither conversations nor documents: calculations, and the time.

use serde_json::json;
use threadkeep::Value;
use threadkeep::core::text::Language;
use threadkeep::dialogue::{Choice, Intent, Mention, Outcome, Slot, Utterance};

use super::quoting::formatted_day;
use super::text;
use crate::calculation::{self, CALCULATOR};
use crate::clock::{CURRENT_TIME, zone_of};

/// The days of the week, with their names in Spanish.
const WEEKDAYS: [(&str, &str); 7] = [
    ("Monday", "lunes"),
    ("Tuesday", "martes"),
    ("Wednesday", "miércoles"),
    ("Thursday", "jueves"),
    ("Friday", "viernes"),
    ("Saturday", "sábado"),
    ("Sunday", "domingo"),
];

/// Finds the calculation in a message.
pub(super) fn calculations(message: &Utterance) -> Vec<Mention> {
    let Some((span, expression)) = calculation::find(message.text()) else { return Vec::new() };
    let words = message.words().iter().enumerate();
    let within = words.filter(|(_, word)| word.span.start < span.end && span.start < word.span.end);
    let within: Vec<usize> = within.map(|(at, _)| at).collect();
    let (Some(first), Some(last)) = (within.first(), within.last()) else { return Vec::new() };
    let label = message.text()[span].to_owned();
    vec![Mention::new(*first..last + 1, vec![Choice::new(expression, label)])]
}

pub(super) fn calculate() -> Intent {
    Intent::new("calculate")
        .example("What is 15% of 240?")
        .slot(Slot::required("expression", "calculation").fresh())
        .calls_with(CALCULATOR, |slots| json!({"expression": slots.value("expression")}))
        .says(|outcome| {
            let done = outcome.result(CALCULATOR);
            format!("{} = {}", text(&done["expression"]), text(&done["result"]))
        })
        .says_of_failure(|outcome| {
            let results = outcome.exchanges().iter().filter_map(|exchange| exchange.result);
            let error = results.map(|result| result.output.as_str()).next_back().unwrap_or_default();
            match outcome.language() {
                Language::English => format!("I cannot calculate {}: {error}", outcome.slots().label("expression")),
                Language::Spanish => format!("No puedo calcular {}: {error}", outcome.slots().label("expression")),
            }
        })
}

/// Recognises a message that only asks for the time or the date: "what time is it in Tokyo right now". The value is the
/// place.
pub(super) fn clock_questions(message: &Utterance) -> Vec<Mention> {
    let words: Vec<&str> = message.words().iter().map(|word| word.folded.as_str()).collect();
    let place = place_in_clock_question(message);
    let end = place.as_ref().map_or(words.len(), |(at, ..)| *at);
    let after = place.as_ref().map_or(words.len(), |(_, after, _)| *after);
    let rest = || words[..end].iter().chain(&words[after..]);
    let has = |known: &[&str]| rest().any(|word| known.contains(word));
    let is_time = has(&["time", "hora"]);
    let names_subject = is_time || has(&["date", "day", "dia", "fecha"]);
    let names_now =
        has(&["now", "today", "todays", "2day", "hoy", "current", "actual", "it", "son"]) || place.is_some() && is_time;
    let names_now = names_now || words == ["time"] || words == ["hora"] || has(&["hora"]) && has(&["es"]);
    let is_only = rest().all(|word| CLOCK_WORDS.contains(word));
    if !names_subject || !names_now || !is_only || words.len() > MAX_CLOCK_WORDS {
        return Vec::new();
    }
    let place = place.map(|(.., place)| place).unwrap_or_default();
    vec![Mention::new(0..words.len(), vec![Choice::new(place.clone(), place)])]
}

/// Returns the place in "what time is it in New York now": the index of its preposition, the index after its last word,
/// and its text.
fn place_in_clock_question(message: &Utterance) -> Option<(usize, usize, String)> {
    let words = message.words();
    let at = words.iter().rposition(|word| matches!(word.folded.as_str(), "in" | "en"))?;
    let known = (at + 2..=words.len()).rev().find(|end| zone_of(message.said(at + 1..*end)).is_some());
    if let Some(end) = known {
        return Some((at, end, message.said(at + 1..end).to_owned()));
    }
    let is_place = |at: &usize| !CLOCK_WORDS.contains(&words[*at].folded.as_str());
    let end = (at + 1..words.len()).take_while(is_place).last()? + 1;
    (end - at <= MAX_PLACE_WORDS + 1).then(|| (at, end, message.said(at + 1..end).to_owned()))
}

const MAX_CLOCK_WORDS: usize = 14;
const MAX_PLACE_WORDS: usize = 3;

/// Words in questions about the time or the date.
const CLOCK_WORDS: [&str; 76] = [
    "week",
    "semana",
    "they",
    "have",
    "got",
    "we",
    "over",
    "here",
    "tienen",
    "alla",
    "alli",
    "wat",
    "what",
    "whats",
    "wats",
    "which",
    "time",
    "date",
    "day",
    "is",
    "s",
    "it",
    "the",
    "now",
    "right",
    "today",
    "todays",
    "2day",
    "current",
    "currently",
    "and",
    "so",
    "ok",
    "please",
    "pls",
    "plz",
    "tell",
    "me",
    "could",
    "can",
    "you",
    "kindly",
    "know",
    "do",
    "of",
    "exactly",
    "even",
    "again",
    "hi",
    "hey",
    "sorry",
    "there",
    "que",
    "hora",
    "fecha",
    "dia",
    "es",
    "son",
    "hoy",
    "ahora",
    "mismo",
    "actual",
    "a",
    "la",
    "el",
    "de",
    "dime",
    "me",
    "dices",
    "sabes",
    "y",
    "oye",
    "estamos",
    "porfa",
    "favor",
    "por",
];

pub(super) fn current_time() -> Intent {
    Intent::new("current_time")
        .example("What time is it?")
        .slot(Slot::required("asked", "clock question").fresh())
        .calls_with(CURRENT_TIME, |slots| match slots.label("asked") {
            "" => json!({}),
            place => json!({"place": place}),
        })
        .says(time)
        .says_of_failure(|outcome| match outcome.language() {
            Language::English => format!("I do not know the time zone of {}.", outcome.slots().label("asked")),
            Language::Spanish => format!("No conozco la zona horaria de {}.", outcome.slots().label("asked")),
        })
}

fn time(outcome: &Outcome<'_>) -> String {
    let now: Value = outcome.result(CURRENT_TIME);
    let (language, weekday) = (outcome.language(), text(&now["weekday"]));
    let (day, time, zone) = (formatted_day(&text(&now["date"]), language), text(&now["time"]), text(&now["zone"]));
    let (utc, zone) = match (zone.as_str(), language) {
        ("UTC", _) => (" UTC".to_owned(), String::new()),
        (_, Language::English) => (String::new(), format!(" in {zone}")),
        (_, Language::Spanish) => (String::new(), format!(" en {zone}")),
    };
    match language {
        Language::English => format!("It is {time}{utc}{zone} on {weekday}, {day}."),
        Language::Spanish => {
            let weekday = WEEKDAYS.iter().find(|(english, _)| *english == weekday).map_or("", |(_, spanish)| spanish);
            format!("Son las {time}{utc}{zone} del {weekday} {day}.")
        }
    }
}
