//! Intents that need neither conversations nor documents: calculations, and the time.

use serde_json::json;
use threadkeep::Value;
use threadkeep::core::text::Language;
use threadkeep::dialogue::{Choice, Intent, Mention, Outcome, Slot, Utterance};

use super::quoting::formatted_day;
use super::text;
use crate::calculation::{self, CALCULATOR};
use crate::clock::CURRENT_TIME;

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
    let Some((place, expression)) = calculation::find(message.text()) else { return Vec::new() };
    let words = message.words().iter().enumerate();
    let within = words.filter(|(_, word)| word.place.start < place.end && place.start < word.place.end);
    let within: Vec<usize> = within.map(|(at, _)| at).collect();
    let (Some(first), Some(last)) = (within.first(), within.last()) else { return Vec::new() };
    let label = message.text()[place].to_owned();
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

pub(super) fn current_time() -> Intent {
    Intent::new("current_time").example("What time is it?").calls_with(CURRENT_TIME, |_| json!({})).says(time)
}

fn time(outcome: &Outcome<'_>) -> String {
    let now: Value = outcome.result(CURRENT_TIME);
    let (language, weekday) = (outcome.language(), text(&now["weekday"]));
    let (day, time, zone) = (formatted_day(&text(&now["date"]), language), text(&now["time"]), text(&now["zone"]));
    match language {
        Language::English => format!("It is {time} {zone} on {weekday}, {day}."),
        Language::Spanish => {
            let weekday = WEEKDAYS.iter().find(|(english, _)| *english == weekday).map_or("", |(_, spanish)| spanish);
            format!("Son las {time} {zone} del {weekday} {day}.")
        }
    }
}
