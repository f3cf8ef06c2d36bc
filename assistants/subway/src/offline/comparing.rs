//! Intents about taking the local or the express.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Outcome, Slot};
use threadkeep_transit::offline::{ENDS, last_result_text, lines_of, station, with_saved};

use super::corridor::{self, Corridor, CorridorQuery, places};
use super::speech::SPEECH;

pub(super) fn intents() -> [Intent; 2] {
    [comparison(), example()]
}

fn comparison() -> Intent {
    let intent = Intent::new("comparison")
        .restored_from_calls()
        .continued_by("route")
        .swaps("from_station", "to_station")
        .example("Should I stay on the 1 or change to the 2 at Chambers, from South Ferry to Penn?")
        .slot(
            Slot::required("from_station", "station")
                .after(["from", "leaving", "im at"])
                .asks("From which station?")
                .narrowed_by(connected),
        )
        .slot(
            Slot::required("to_station", "station")
                .after(["to", "toward", "towards", "as far as"])
                .asks("To which station?")
                .narrowed_by(connected)
                // "What time am I there?" is about the end of the trip, not about where one changes.
                .pronoun_from("to_station"),
        )
        .slot(Slot::optional("transfer_station", "station").after(["at", "via", "in"]).narrowed_by(on_most_lines))
        .slot(Slot::optional("rivals", "rivals"))
        .slot(Slot::optional("lines", "lines"));
    let intent = with_saved(intent, &ENDS)
        .then_calls("compare_local_vs_express", |outcome| find(outcome).map(|corridor| arguments(&corridor)))
        // If there is nothing to compare, answers with the route instead.
        .then_calls("get_route", |outcome| {
            let [from, to] = ENDS.map(|slot| station(outcome, slot));
            let ends = json!({"from_station": from?, "to_station": to?});
            find(outcome).is_none().then_some(ends)
        })
        .says(answer);
    ["ask:arrive", "ask:duration", "ask:depart", "ask:wait", "ask:faster"]
        .into_iter()
        .fold(intent, |intent, aspect| intent.aspect(aspect, answer))
        .aspect("ask:stops", |outcome| match find(outcome) {
            Some(corridor) => stops_of(&corridor),
            None => answer(outcome),
        })
}

/// Returns the arguments of a comparison if the timing of a change, which is the last result, is for another place than the one in
/// a slot.
pub(super) fn with_change_elsewhere(outcome: &Outcome<'_>, slot: &str) -> Option<Value> {
    let [from, to] = ENDS.map(|end| station(outcome, end));
    let transfer = station(outcome, slot)?;
    let text = last_result_text(outcome);
    let named = text.strip_prefix("Change at ")?.split(" from the ").next()?;
    let complexes = |name: &str| places(name).into_iter().map(|place| place.complex).collect::<Vec<_>>();
    let meant = complexes(&transfer);
    if complexes(named).iter().any(|complex| meant.contains(complex)) {
        return None;
    }
    let lines = lines(outcome);
    let query = CorridorQuery { from: &from?, to: &to?, transfer: Some(&transfer), lines: &lines };
    corridor::find(&query).map(|corridor| arguments(&corridor))
}

fn answer(outcome: &Outcome<'_>) -> String {
    SPEECH.missing(outcome, &ENDS).unwrap_or_else(|| match find(outcome) {
        Some(_) => last_result_text(outcome),
        None => format!("{}\n\n{}", none_found(outcome), last_result_text(outcome)),
    })
}

/// Says how many stops each option makes, and the difference.
fn stops_of(corridor: &Corridor) -> String {
    let lines: Vec<&str> = std::iter::once(&corridor.local).chain(&corridor.express).map(String::as_str).collect();
    let Some(local) = corridor::stops(&corridor.local, &corridor.from, &corridor.to) else {
        return format!("I do not know how many stops the {} make.", lines.join(" and the "));
    };
    let before = corridor::stops(&corridor.local, &corridor.from, &corridor.transfer).unwrap_or_default();
    let counted = |count: u32| if count == 1 { "1 stop".to_owned() } else { format!("{count} stops") };
    let options = corridor.express.iter().map(|line| match corridor::stops(line, &corridor.transfer, &corridor.to) {
        Some(rest) => {
            let count = before + rest;
            format!("With the {line}: {}, {} fewer.", counted(count), local.saturating_sub(count))
        }
        None => format!("The {line} does not stop at {}.", corridor.to),
    });
    let options: Vec<String> = options.collect();
    format!(
        "{} to {} on the {}: {}.\n{}",
        corridor.from,
        corridor.to,
        corridor.local,
        counted(local),
        options.join("\n")
    )
}

/// The example trip, for which the tool needs no arguments.
fn example() -> Intent {
    Intent::new("example_trip")
        .example("Plan a trip with transfers.")
        .calls_with("plan_trip_with_transfers", |_| json!({}))
}

fn find(outcome: &Outcome<'_>) -> Option<Corridor> {
    let slots = outcome.slots();
    let transfer = slots.value("transfer_station").as_str().map(str::to_owned);
    let (from, to) = (station(outcome, "from_station")?, station(outcome, "to_station")?);
    let find = |transfer: Option<&str>, lines: &[String]| {
        corridor::find(&CorridorQuery { from: &from, to: &to, transfer, lines })
    };
    let (lines, rivals) = (lines(outcome), lines_of(&slots.value("rivals")));
    // "And the N?", after "the R or the Q": the N is compared with the R.
    let mut added: Vec<String> = lines.iter().filter(|line| !rivals.contains(line)).cloned().collect();
    if rivals.len() > 1
        && !added.is_empty()
        && let Some(known) = find(transfer.as_deref(), &rivals)
    {
        added.insert(0, known.local);
        if let Some(corridor) = find(transfer.as_deref(), &added) {
            return Some(corridor);
        }
    }
    // On the way back, one may change elsewhere.
    find(transfer.as_deref(), &lines).or_else(|| find(None, &lines))
}

/// Returns the lines to compare. A follow-up adds a line to the earlier ones: "and the D?" after "A or C".
fn lines(outcome: &Outcome<'_>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in ["rivals", "lines"].iter().flat_map(|slot| lines_of(&outcome.slots().value(slot))) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn arguments(corridor: &Corridor) -> Value {
    json!({
        "from_station": corridor.from,
        "to_station": corridor.to,
        "transfer_station": corridor.transfer,
        "local_line": corridor.local,
        "express_lines": corridor.express.join(","),
    })
}

/// Narrows stations with the same name to those with a direct train to the other end of the trip.
fn connected(choices: &[Choice], slots: &threadkeep::dialogue::Slots) -> Vec<Choice> {
    let ends: Vec<String> = ["from_station", "to_station"]
        .iter()
        .filter_map(|slot| slots.value(slot).as_str().map(str::to_owned))
        .collect();
    let named = [slots.value("rivals"), slots.value("lines")].iter().flat_map(lines_of).collect::<Vec<_>>();
    let is_relevant = |line: &String| named.is_empty() || named.contains(line);
    let shares_a_line = |choice: &&Choice| {
        ends.iter().flat_map(|end| places(end)).any(|place| {
            let view = crate::place::view_of(&place);
            view.lines.iter().filter(|line| is_relevant(line)).any(|line| choice.hints.contains(line))
        })
    };
    choices.iter().filter(shares_a_line).cloned().collect()
}

/// Narrows places to change to those with the most of the named lines.
fn on_most_lines(choices: &[Choice], slots: &threadkeep::dialogue::Slots) -> Vec<Choice> {
    let named = [slots.value("rivals"), slots.value("lines")].iter().flat_map(lines_of).collect::<Vec<_>>();
    let count = |choice: &Choice| choice.hints.iter().filter(|hint| named.contains(hint)).count();
    let most = choices.iter().map(count).max().unwrap_or_default();
    if most == 0 { Vec::new() } else { choices.iter().filter(|choice| count(choice) == most).cloned().collect() }
}

fn none_found(outcome: &Outcome<'_>) -> String {
    let slots = outcome.slots();
    let (from, to) = (slots.label("from_station"), slots.label("to_station"));
    let named = lines(outcome);
    match named.is_empty() {
        true => format!(
            "I found no direct line from {from} to {to} that has an express alternative, so there is nothing to compare."
        ),
        false => format!(
            "I cannot compare the {} from {from} to {to}: no local train makes that trip with such a change on the way.",
            named.join("/")
        ),
    }
}
