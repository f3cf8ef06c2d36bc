//! Intents about a station or a line: next trains, station information, stops.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Outcome, Slot, Slots};
use threadkeep_transit::Resolution;

use super::corridor::{expresses_at, places};
use super::saved::{last_result_text, missing, station, with_saved};
use crate::place::view_of;
use crate::system::{names, network};

/// Maximum number of lines looked up for one message.
const MAX_LINES: usize = 4;

/// Words before a station that a train goes to.
const TOWARDS: [&str; 7] =
    ["toward", "towards", "bound for", "heading to", "headed to", "going to", "in the direction of"];

pub(super) fn intents() -> [Intent; 5] {
    [arrivals(), express_arrivals(), stops_at(), station_info(), stations_on_line()]
}

/// Returns the lines in a slot's value.
pub(super) fn lines_of(value: &Value) -> Vec<String> {
    match value {
        // As in the arguments of calls.
        Value::String(lines) => lines.split(',').map(|line| line.trim().to_owned()).collect(),
        other => other.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

fn at_station(name: &str) -> Slot {
    let cues = ["at", "from", "in", "near", "leave", "leaves", "leaving", "to", "on"];
    Slot::required(name, "station").after(cues).asks("At which station?").narrowed_by(on_lines).narrowing_assumed()
}

/// Narrows stations with the same name to those at which a mentioned line stops.
pub(super) fn on_lines(choices: &[Choice], slots: &Slots) -> Vec<Choice> {
    let lines = lines_of(&slots.value("lines"));
    let is_on = |choice: &&Choice| lines.iter().any(|line| choice.hints.contains(line));
    choices.iter().filter(is_on).cloned().collect()
}

fn arrivals() -> Intent {
    let intent = Intent::new("arrivals")
        .example("When is the next 6 at Astor Place?")
        .restored_from_calls()
        .alternatives("direction", "towards")
        .slot(at_station("station_name").pronoun_from("from_station"))
        .slot(Slot::optional("lines", "lines").argument("line"))
        .slot(Slot::optional("direction", "direction"))
        .slot(Slot::optional("towards", "station").after(TOWARDS))
        .slot(Slot::optional("now", "now"));
    boards(with_saved(intent, &["station_name"]), |outcome| lines_of(&outcome.slots().value("lines")))
}

/// "And the express?", after a departure board.
fn express_arrivals() -> Intent {
    let intent = Intent::new("express_arrivals")
        .follows(["arrivals"])
        .slot(at_station("station_name"))
        .slot(Slot::optional("lines", "lines").carried_from("lines"));
    boards(with_saved(intent, &["station_name"]), expresses)
}

fn expresses(outcome: &Outcome<'_>) -> Vec<String> {
    let (Some(name), Some(local)) = (station(outcome, "station_name"), lines_of(&outcome.slots().value("lines")).pop())
    else {
        return vec![String::new()];
    };
    let at = places(&name).into_iter().flat_map(|place| place.stations);
    let at = at.filter_map(|id| network().find_station(&id)).find(|station| station.lines.contains(&local));
    let found = at.map(|station| expresses_at(station, &local)).unwrap_or_default();
    if found.is_empty() { vec![String::new()] } else { found }
}

/// Calls `get_train_arrivals` for each line, or once for all lines if none is given.
fn boards(intent: Intent, lines: fn(&Outcome<'_>) -> Vec<String>) -> Intent {
    let intent = (0..MAX_LINES).fold(intent, |intent, number| {
        intent.then_calls("get_train_arrivals", move |outcome| {
            let name = station(outcome, "station_name")?;
            let mut arguments = match (lines(outcome).get(number).filter(|line| !line.is_empty()), number) {
                (Some(line), _) => json!({"station_name": name, "line": line}),
                (None, 0) => json!({"station_name": name}),
                (None, _) => return None,
            };
            let [direction, towards] = ["direction", "towards"].map(|slot| outcome.slots().value(slot));
            if let Some(direction) = direction.as_str().or(towards.as_str()) {
                arguments["direction"] = Value::from(direction);
            }
            Some(arguments)
        })
    });
    intent.says(|outcome| missing(outcome, &["station_name"]).unwrap_or_else(|| board_texts(outcome)))
}

fn board_texts(outcome: &Outcome<'_>) -> String {
    let boards = outcome.exchanges().iter().filter(|exchange| exchange.call.name == "get_train_arrivals");
    let texts: Vec<String> = boards.filter_map(|exchange| exchange.value().as_str().map(str::to_owned)).collect();
    texts.join("\n\n")
}

/// "Does the 4 stop at 96 St?"
fn stops_at() -> Intent {
    let intent = Intent::new("stops_at")
        .example("Does the 4 stop at 96 St?")
        .slot(at_station("station"))
        .slot(Slot::required("lines", "lines").asks("Which line?"));
    with_saved(intent, &["station"])
        .then_calls("get_station_info", |outcome| {
            let name = station(outcome, "station")?;
            Some(json!({"station": disambiguated(&name, &lines_of(&outcome.slots().value("lines")))}))
        })
        .says(|outcome| missing(outcome, &["station"]).unwrap_or_else(|| whether_it_stops(outcome)))
}

/// Resolves a name with the given lines, and returns text that identifies the station; the name unchanged if the lines do
/// not disambiguate it.
fn disambiguated(name: &str, lines: &[String]) -> String {
    let signs: Vec<&str> = lines.iter().map(String::as_str).collect();
    match names().resolve_on(name, &signs) {
        Resolution::Certain(place) | Resolution::Assumed { taken: place, .. } => super::stations::text_of(&place),
        _ => name.to_owned(),
    }
}

fn whether_it_stops(outcome: &Outcome<'_>) -> String {
    let lines = lines_of(&outcome.slots().value("lines"));
    let found = places(&station(outcome, "station").unwrap_or_default());
    let info = last_result_text(outcome);
    if found.is_empty() {
        return info;
    }
    let verdicts = lines.iter().map(|line| {
        let stop = found.iter().map(view_of).find(|view| view.lines.contains(line));
        match stop {
            Some(view) => format!("Yes, by day the {line} stops at {}.", view.name),
            None => {
                let here = found.first().map(|place| view_of(place).name).unwrap_or_default();
                format!("No, by day the {line} does not stop at {here}.")
            }
        }
    });
    let verdicts: Vec<String> = verdicts.collect();
    format!("{}\n{info}", verdicts.join(" "))
}

fn station_info() -> Intent {
    let intent = Intent::new("station_info")
        .example("Is Bleecker St accessible?")
        .restored_from_calls()
        .answers_aspect("ask:accessible")
        .slot(at_station("station").carried_from("to_station").carried_from("station_name"));
    with_saved(intent, &["station"])
        .then_calls("get_station_info", |outcome| Some(json!({"station": station(outcome, "station")?})))
        .says(|outcome| missing(outcome, &["station"]).unwrap_or_else(|| last_result_text(outcome)))
}

fn stations_on_line() -> Intent {
    Intent::new("stations_on_line")
        .example("Which stations are on the G?")
        .slot(Slot::required("lines", "lines").fresh().asks("Which line?"))
        .then_calls("find_stations_on_line", |outcome| line(outcome, 0))
        .then_calls("find_stations_on_line", |outcome| line(outcome, 1))
}

fn line(outcome: &Outcome<'_>, number: usize) -> Option<Value> {
    let lines = lines_of(&outcome.slots().value("lines"));
    lines.get(number).map(|line| json!({"line": line}))
}
