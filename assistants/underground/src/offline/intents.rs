//! The intents about lines, stations and routes.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Outcome, Slot, Utterance};
use threadkeep_transit::offline::{
    at_station, last_result_text, lines_of, route_intent, station, station_info, stations_on_line, stops_at, with_saved,
};

use super::SPEECH;
use crate::lines::{find_network_lines, line_runs};

/// Maximum number of lines looked up for one message.
const MAX_LINES: usize = 3;
const USUAL_LINE: &str = "usual line";

pub(super) fn intents() -> Vec<Intent> {
    let route = route_intent(&SPEECH, "How do I get from Paddington to Canary Wharf?", "get_route");
    let info = station_info(&SPEECH, "Is Bond Street step-free?");
    vec![
        status(),
        arrivals(),
        route.yields(ridden_lines),
        info.yields(named_lines),
        stops_at(&SPEECH, "Does the Jubilee line stop at Waterloo?"),
        stations_on_line("Which stations are on the Victoria line?"),
        train_times("first_trains", "first").example("When is the first train from Brixton?"),
        train_times("last_trains", "last").example("When is the last Central line train at Bank?"),
        train_times("frequency", "frequency").example("How often do trains run at Angel?"),
        night_tube(),
    ]
}

/// "Is the Circle line running?", "any delays on the tube?"
fn status() -> Intent {
    Intent::new("status")
        .example("Is the Circle line running?")
        .restored_from_calls()
        .slot(Slot::optional("lines", "lines"))
        .slot(Slot::optional("usual", "usualline"))
        .slot(Slot::optional("stations", "station").after(["between", "from", "to", "and", "at"]))
        .slot(Slot::optional("to", "station").after(["to", "and", "towards"]))
        .slot(Slot::optional("now", "now"))
        .then_calls("get_preference", |outcome| {
            outcome.slots().get("usual").map(|_| json!({"key": USUAL_LINE}))
        })
        .then_calls("get_line_status", |outcome| {
            if outcome.slots().get("usual").is_some() {
                return usual_line(outcome).map(|line| json!({"lines": line}));
            }
            let lines = lines_of(&outcome.slots().value("lines"));
            Some(if lines.is_empty() { json!({}) } else { json!({"lines": lines.join(",")}) })
        })
        .says(|outcome| match outcome.slots().get("usual").is_some() && usual_line(outcome).is_none() {
            true => "I do not know your usual line yet. Say, for instance: “My usual line is the Northern.”".to_owned(),
            false => last_result_text(outcome),
        })
}

/// Returns the id of the line that the user saved as the usual one.
fn usual_line(outcome: &Outcome<'_>) -> Option<String> {
    let exchange = outcome.exchanges().iter().find(|exchange| exchange.call.name == "get_preference")?;
    let text = exchange.value();
    let value = text.as_str()?.strip_prefix("Your usual line: ")?;
    Some(find_network_lines(value).ok()?.first()?.id.clone())
}

/// "Next Victoria line at Oxford Circus towards Brixton"
fn arrivals() -> Intent {
    let intent = Intent::new("arrivals")
        .example("When is the next Victoria line train at Oxford Circus?")
        .restored_from_calls()
        .alternatives("direction", "towards")
        .slot(at_station("station").pronoun_from("from_station"))
        .slot(Slot::optional("lines", "lines").argument("line"))
        .slot(Slot::optional("direction", "direction"))
        .slot(
            Slot::optional("towards", "station")
                .after(["to", "towards", "toward", "heading to", "going to", "bound for", "in the direction of", "for"]),
        )
        .slot(Slot::optional("now", "now"));
    let intent = with_saved(intent, &["station"]);
    let intent = (0..MAX_LINES).fold(intent, |intent, number| {
        intent.then_calls("get_arrivals", move |outcome| {
            let mut arguments = json!({"station": station(outcome, "station")?});
            let lines = lines_of(&outcome.slots().value("lines"));
            match lines.get(number) {
                Some(line) => arguments["line"] = Value::from(line.as_str()),
                None if number > 0 => return None,
                None => {}
            }
            let [direction, towards] = ["direction", "towards"].map(|slot| outcome.slots().value(slot));
            if let Some(towards) = direction.as_str().or(towards.as_str()) {
                arguments["towards"] = Value::from(towards);
            }
            Some(arguments)
        })
    });
    intent.says(|outcome| SPEECH.missing(outcome, &["station"]).unwrap_or_else(|| all_texts(outcome, "get_arrivals")))
}

fn all_texts(outcome: &Outcome<'_>, tool: &str) -> String {
    let calls = outcome.exchanges().iter().filter(|exchange| exchange.call.name == tool);
    let texts: Vec<String> = calls.filter_map(|exchange| exchange.value().as_str().map(str::to_owned)).collect();
    texts.join("\n\n")
}

/// First or last trains, or how often trains run.
fn train_times(name: &str, what: &'static str) -> Intent {
    let intent = Intent::new(name)
        .restored_from_calls()
        .slot(at_station("station"))
        .slot(Slot::optional("lines", "lines").argument("line"))
        .slot(Slot::optional("day", "depart"));
    with_saved(intent, &["station"])
        .then_calls("get_train_times", move |outcome| {
            let mut arguments = json!({"station": station(outcome, "station")?, "what": what});
            if let Some(line) = lines_of(&outcome.slots().value("lines")).first() {
                arguments["line"] = Value::from(line.as_str());
            }
            Some(arguments)
        })
        .says(|outcome| SPEECH.missing(outcome, &["station"]).unwrap_or_else(|| last_result_text(outcome)))
}

fn night_tube() -> Intent {
    Intent::new("night_tube")
        .slot(Slot::optional("station", "station"))
        .slot(Slot::optional("lines", "lines").argument("line"))
        .slot(Slot::optional("day", "depart"))
        .then_calls("get_train_times", |outcome| {
            let station = outcome.slots().value("station");
            Some(match station.as_str() {
                Some(station) => json!({"station": station, "what": "night"}),
                None => json!({"what": "night"}),
            })
        })
}

/// Makes the lines of a route available for "is it delayed?" and "avoiding it".
fn ridden_lines(outcome: &Outcome<'_>) -> Vec<(String, Choice)> {
    let text = last_result_text(outcome);
    let steps: Vec<&str> = text.lines().filter(|line| line.contains("ake the ")).collect();
    let lines = lines_in(&steps.join("\n"));
    let Some(first) = lines.first() else { return Vec::new() };
    vec![
        ("lines".to_owned(), Choice::new(json!(lines), "the lines of the route")),
        ("avoided".to_owned(), Choice::new(json!([first]), "the first line of the route")),
    ]
}

/// Makes the lines at a station available for "any delays on them?"
fn named_lines(outcome: &Outcome<'_>) -> Vec<(String, Choice)> {
    let text = last_result_text(outcome);
    let lines = lines_in(text.lines().next().unwrap_or_default());
    match lines.is_empty() {
        true => Vec::new(),
        false => vec![("lines".to_owned(), Choice::new(json!(lines), "the lines of the station"))],
    }
}

fn lines_in(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in line_runs(&Utterance::new(text)).into_iter().flat_map(|run| run.lines) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}
