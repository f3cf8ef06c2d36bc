//! Intents about trips: the route, the way back, the timing of a transfer.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Outcome, Slot};
use threadkeep_transit::offline::{
    ENDS, last_result_text, on_lines, route_intent, to_station, trip_arguments, with_saved,
};

use super::comparing;
use super::speech::SPEECH;

pub(super) fn intents() -> [Intent; 2] {
    let example = "How do I get from Penn Station to Yankee Stadium?";
    [route_intent(&SPEECH, example, "get_route_with_arrivals").yields(first_line), timing()]
}

/// Makes the line of the first ride available to follow-ups such as "does it run at weekends?" and "avoiding it".
fn first_line(outcome: &Outcome<'_>) -> Vec<(String, Choice)> {
    let text = last_result_text(outcome);
    let line = text.lines().find_map(|step| step.split_once("ake the ")?.1.split(' ').next());
    let Some(line) = line else { return Vec::new() };
    let named = |kind: &str, value: Value| (kind.to_owned(), Choice::new(value, "the line of the route"));
    vec![named("lines", json!([line])), named("avoided", json!([line])), named("line", json!(line))]
}

fn timing() -> Intent {
    let intent = Intent::new("transfer_timing")
        .restored_from_calls()
        .continued_by("route")
        .example("Do I make my connection from 1 Av to Broadway on the G?")
        .swaps("from_station", "to_station")
        .slot(
            Slot::required("from_station", "station")
                .after(["from", "leaving"])
                .asks("From which station?")
                .narrowed_by(on_lines)
                .narrowing_assumed(),
        )
        .slot(to_station(&SPEECH))
        .slot(Slot::optional("transfer", "station").after(["at", "in", "via"]))
        .slot(Slot::optional("lines", "lines"));
    with_saved(intent, &ENDS)
        .then_calls("get_transfer_timing", trip_arguments)
        // The tool chooses where to change. If the user changes elsewhere, the comparison answers for that place.
        .then_calls("compare_local_vs_express", |outcome| comparing::with_change_elsewhere(outcome, "transfer"))
        .aspect("ask:arrive", |outcome| SPEECH.missing(outcome, &ENDS).unwrap_or_else(|| last_result_text(outcome)))
        .aspect("ask:duration", |outcome| SPEECH.missing(outcome, &ENDS).unwrap_or_else(|| last_result_text(outcome)))
        .says(|outcome| SPEECH.missing(outcome, &ENDS).unwrap_or_else(|| last_result_text(outcome)))
}
