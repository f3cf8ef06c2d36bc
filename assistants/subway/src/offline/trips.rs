//! Intents about trips: the route, the way back, the timing of a transfer.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Intent, Outcome, Slot};

use super::boards::on_lines;
use super::saved::{last_result_text, missing, station, with_saved};

const ENDS: [&str; 2] = ["from_station", "to_station"];

pub(super) fn intents() -> [Intent; 3] {
    [route(), back(), timing()]
}

fn from() -> Slot {
    let cues = ["from", "at", "in", "near", "leaving", "between", "im at"];
    Slot::required("from_station", "station").after(cues).asks("From which station?").narrowed_by(on_lines)
}

fn to() -> Slot {
    let cues = ["to", "toward", "towards", "for"];
    Slot::required("to_station", "station").after(cues).asks("To which station?").narrowed_by(on_lines)
}

fn route() -> Intent {
    let intent = Intent::new("route")
        .example("How do I get from Penn Station to Yankee Stadium?")
        .patterns([
            "from {station} to {station}",
            "to {station} from {station}",
            "{station} to {station}",
            "between {station} and {station}",
            "get|go|take|going|head|heading|ride|travel|way|route|directions [from] [{station}] to {station}",
            "best|fastest|quickest|shortest route|way [{station}] [{station}]",
            "route|way|directions {station} {station}",
            "how|long|far get|go|take [{station}] to {station}",
            "how get|go {station}",
            "get|take|go|going|way|way|fastest|quickest {saved}",
            "how get|go from|to",
            "next|when train|trains to {station}",
            "from there to {station}",
        ])
        .unless("{elsewhere}")
        .unless("{rivals}")
        .unless("express|local|switch|switching|versus|transfer|connection|layover")
        .unless("stay on")
        .unless("wait|compare")
        .unless("or change|switch|hop|transfer")
        .unless("change|changing to|on|onto {lines}")
        .unless("worth change|changing")
        .unless("accessible|wheelchair|elevator|elevators|ada|stairs")
        .unless("when|whens|next|soon|minutes {lines}")
        .slot(from())
        .slot(to())
        .slot(Slot::optional("now", "now"))
        .slot(Slot::optional("lines", "lines"));
    routed(intent)
}

fn back() -> Intent {
    let intent = Intent::new("back")
        .patterns(["back", "return", "other way [around]", "reverse"])
        .follows(["route", "back"])
        .slot(from().carried_from("to_station"))
        .slot(to().carried_from("from_station"))
        .slot(Slot::optional("now", "now"));
    routed(intent)
}

/// Calls the route tool: with live trains if the message asks about now.
fn routed(intent: Intent) -> Intent {
    with_saved(intent, &ENDS)
        .then_calls("get_route", |outcome| ends(outcome).filter(|_| !asks_about_now(outcome)))
        .then_calls("get_route_with_arrivals", |outcome| ends(outcome).filter(|_| asks_about_now(outcome)))
        .says(|outcome| missing(outcome, &ENDS).unwrap_or_else(|| last_result_text(outcome)))
}

fn asks_about_now(outcome: &Outcome<'_>) -> bool {
    outcome.slots().get("now").is_some()
}

fn ends(outcome: &Outcome<'_>) -> Option<Value> {
    let [from, to] = ENDS.map(|slot| station(outcome, slot));
    Some(json!({"from_station": from?, "to_station": to?}))
}

fn timing() -> Intent {
    let intent = Intent::new("transfer_timing")
        .example("Do I make my connection from 1 Av to Broadway on the G?")
        .patterns([
            "transfer|connection|change timing|time",
            "make|catch|miss transfer|connection",
            "wait when|where|while change|changing|transfer|switch trains",
            "how long wait change|changing|transfer|transferring|connection|switch",
            "time to|for catch|change|transfer|connection|switch",
            "layover",
        ])
        .unless("express|local")
        .slot(from())
        .slot(to());
    with_saved(intent, &ENDS)
        .then_calls("get_transfer_timing", ends)
        .says(|outcome| missing(outcome, &ENDS).unwrap_or_else(|| last_result_text(outcome)))
}
