//! Intents about trips: the route, the way back, the timing of a transfer.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Outcome, Slot, Slots};

use super::Speech;
use super::boards::{lines_of, on_lines};
use super::saved::{assumed_origin, last_result_text, station, with_saved};
use super::stations::saved_key;
use crate::wording::DIRECT;

/// The slots of the ends of a trip.
pub const ENDS: [&str; 2] = ["from_station", "to_station"];

fn from_station(speech: &'static Speech) -> Slot {
    let cues = [
        "from",
        "at",
        "in",
        "near",
        "leaving",
        "between",
        "im at",
        "start at",
        "starting at",
        "start from",
        "starting from",
    ];
    Slot::required("from_station", "station")
        .after(cues)
        .asks("From which station?")
        .narrowed_by(move |choices, slots| speech.on_lines_or_connected(choices, slots, "to_station"))
        .narrowing_assumed()
        .complemented_by(|slots| other_saved(slots, "to_station"))
        .pronoun_from("to_station")
        .carried_from("station_name")
}

/// Returns the other saved place as the start of a trip: a trip to work starts at home.
#[must_use]
pub fn other_saved(slots: &Slots, end: &str) -> Option<Choice> {
    let other = match saved_key(&slots.value(end))? {
        "home station" => "work station",
        "work station" => "home station",
        _ => return None,
    };
    Some(Choice::new(json!({"saved": other}), other))
}

/// Returns the slot for the destination of a trip.
#[must_use]
pub fn to_station(speech: &'static Speech) -> Slot {
    let cues = [
        "to",
        "toward",
        "towards",
        "for",
        "get off at",
        "off at",
        "get out at",
        "end up at",
        "end at",
        "reach",
        "visit",
        "be at",
        "be in",
        "arrive at",
        "heading",
        "headed",
        "up",
        "down",
        "over",
        "get",
        "get back",
        "go",
        "straight",
        "need",
        "need to get to",
        "need to be at",
        // The flight is not the trip.
        "flight from",
        "fly from",
        "flying from",
        "flies from",
        "fly out of",
        "flying out of",
        "flies out of",
        "flight out of",
    ];
    Slot::required("to_station", "station")
        .after(cues)
        .carried_from("towards")
        .asks("To which station?")
        .narrowed_by(move |choices, slots| speech.on_lines_or_connected(choices, slots, "from_station"))
        .narrowing_assumed()
}

/// Returns the intent of a trip between two stations. It calls `get_route`, or `live_tool` for a trip right now.
#[must_use]
pub fn route_intent(speech: &'static Speech, example: &str, live_tool: &str) -> Intent {
    let intent = Intent::new("route")
        .example(example)
        .restored_from_calls()
        .swaps("from_station", "to_station")
        .alternatives("leave_at", "arrive_by")
        .alternatives("leave_at", "now")
        .alternatives("arrive_by", "now")
        .disjoint("lines", "avoid_lines")
        .slot(from_station(speech))
        .slot(to_station(speech))
        .slot(Slot::optional("leave_at", "depart"))
        .slot(Slot::optional("arrive_by", "arrive"))
        .slot(Slot::optional("avoid_lines", "avoided").cumulative())
        .slot(Slot::optional("lines", "lines"))
        .slot(Slot::optional("step_free", "stepfree"))
        .slot(Slot::optional("fewest_changes", "direct"))
        .slot(Slot::optional("now", "now"));
    routed(speech, intent, live_tool)
}

/// Calls the route tool: with live trains if the message asks about now.
fn routed(speech: &'static Speech, intent: Intent, live_tool: &str) -> Intent {
    let answer = |says: fn(&str) -> String| move |outcome: &Outcome<'_>| speech.route_answer(outcome, says);
    with_saved(intent, &ENDS)
        .then_calls("get_route", |outcome| speech.arguments(outcome).filter(|_| !asks_about_now(outcome)))
        .then_calls(live_tool, |outcome| speech.arguments(outcome).filter(|_| asks_about_now(outcome)))
        .says(answer(str::to_owned))
        .aspect("ask:duration", answer(summary))
        .aspect("ask:depart", answer(summary))
        .aspect("ask:arrive", answer(summary))
        .aspect("ask:stops", answer(stops))
        .aspect("ask:changes", answer(changes))
        .aspect("ask:line", answer(first_ride))
        .aspect("ask:direction", answer(first_ride))
        .aspect("ask:faster", answer(fastest))
}

impl Speech {
    /// Narrows stations with the same name to those on a mentioned line; without one, to those with a direct train from or to the
    /// other end of the trip.
    #[must_use]
    pub fn on_lines_or_connected(&self, choices: &[Choice], slots: &Slots, other_end: &str) -> Vec<Choice> {
        let on_lines = on_lines(choices, slots);
        let avoided = lines_of(&slots.value("avoid_lines"));
        if !avoided.is_empty() {
            // A station that only avoided lines serve cannot be the start or the end.
            let is_line = |hint: &&String| (self.system.network)().lines().iter().any(|line| line.name == **hint);
            let is_left = |choice: &&Choice| choice.hints.iter().filter(is_line).any(|line| !avoided.contains(line));
            let left: Vec<Choice> = choices.iter().filter(is_left).cloned().collect();
            if left.len() < choices.len() && on_lines.is_empty() {
                return left;
            }
        }
        let Some(other) = slots.get(other_end).filter(|_| on_lines.is_empty()) else { return on_lines };
        let is_line =
            |hint: &String| (self.system.network)().lines().iter().any(|line| line.name == *hint || line.id == *hint);
        let shares_line =
            |choice: &&Choice| choice.hints.iter().filter(|hint| is_line(hint)).any(|line| other.hints.contains(line));
        choices.iter().filter(shares_line).cloned().collect()
    }

    /// Returns the destination of a trip as the direction for a departure board, if the trip starts at the board's
    /// station and needs no change.
    #[must_use]
    pub fn end_of_direct_trip(&self, trip: &Slots, board: &Slots, at: &str) -> Option<Choice> {
        let [from, to] = ENDS.map(|end| trip.get(end));
        let (from, to) = (from?, to?);
        let is_line = |hint: &&String| {
            (self.system.network)().lines().iter().any(|line| line.name == **hint || line.id == **hint)
        };
        let here = board.get(at).filter(|here| here.label == from.label)?;
        let named = lines_of(&board.value("lines"));
        let mut shared = here.hints.iter().filter(is_line).filter(|line| to.hints.contains(line)).peekable();
        shared.peek()?;
        let is_on_trip = named.is_empty() || shared.any(|line| named.contains(line));
        (is_on_trip && board.get("direction").is_none()).then(|| Choice { others: Vec::new(), ..to.clone() })
    }

    /// Returns the arguments of a tool that finds a route. If the message names one line and it stops at both ends,
    /// only that line is used.
    fn arguments(&self, outcome: &Outcome<'_>) -> Option<Value> {
        let mut arguments = trip_arguments(outcome)?;
        let lines = lines_of(&outcome.slots().value("lines"));
        let stops_at = |end: &str, line: &String| {
            let place = self.system.places(arguments[end].as_str().unwrap_or_default()).into_iter().next();
            place.is_some_and(|place| self.system.view_of(&place).lines.contains(line))
        };
        if let [line] = &lines[..]
            && ENDS.iter().all(|end| stops_at(end, line))
            && arguments.get("avoid_lines").is_none()
        {
            arguments["only_lines"] = Value::from(line.as_str());
        }
        Some(arguments)
    }

    /// Words the answer from the tool's text. A query error is returned unchanged.
    fn route_answer(&self, outcome: &Outcome<'_>, says: fn(&str) -> String) -> String {
        self.missing(outcome, &ENDS).unwrap_or_else(|| {
            let text = last_result_text(outcome);
            let text = match assumed_origin(outcome, &ENDS) {
                Some(note) => format!("{text}\n{note}"),
                None => text,
            };
            if steps(&text).next().is_none() {
                return text;
            }
            // The tool finds the fastest route, which may not include a line that was asked for.
            let names = lines_of(&outcome.slots().value("lines")).into_iter().map(|line| self.system.line_name(&line));
            let is_unused = |line: &String| !steps(&text).any(|step| step.contains(&format!("ake the {line} ")));
            let unused: Vec<String> = names.filter(is_unused).collect();
            match unused.is_empty() {
                true => says(&text),
                false => format!("{}\nThe {} is not part of the fastest way.", says(&text), unused.join(" and the ")),
            }
        })
    }
}

/// The numbered steps of a route.
fn steps(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.split_once(". ").is_some_and(|(number, _)| number.parse::<usize>().is_ok()))
}

/// The lines around the steps: ends, duration and clock times; and where the times come from.
fn summary(text: &str) -> String {
    let is_step = |line: &&str| steps(text).any(|step| step == *line);
    text.lines().filter(|line| !is_step(line)).collect::<Vec<_>>().join("\n")
}

fn stops(text: &str) -> String {
    let count = |step: &str| {
        let words: Vec<&str> = step.split([' ', ',']).collect();
        let at = words.iter().position(|word| matches!(*word, "stop" | "stops"))?;
        words.get(at.checked_sub(1)?)?.parse::<usize>().ok()
    };
    let total: usize = steps(text).filter_map(count).sum();
    let noun = if total == 1 { "stop" } else { "stops" };
    with_direct(format!("{total} {noun} in all:\n{}", steps(text).collect::<Vec<_>>().join("\n")), text)
}

/// Adds the line of a route about other rides without a change.
fn with_direct(answer: String, text: &str) -> String {
    let is_direct = |line: &&str| DIRECT.iter().any(|opening| line.starts_with(opening));
    match text.lines().find(is_direct) {
        Some(direct) => format!("{answer}\n{direct}"),
        None => answer,
    }
}

fn changes(text: &str) -> String {
    let rides: Vec<&str> = steps(text).filter(|step| step.contains("ake the ")).collect();
    match rides.len() {
        0 | 1 => format!("No change is needed:\n{}", rides.join("\n")),
        2 => with_direct(format!("One change:\n{}", steps(text).collect::<Vec<_>>().join("\n")), text),
        count => with_direct(format!("{} changes:\n{}", count - 1, steps(text).collect::<Vec<_>>().join("\n")), text),
    }
}

fn first_ride(text: &str) -> String {
    let ride = steps(text).find(|step| step.contains("ake the "));
    ride.map_or_else(|| text.to_owned(), |ride| with_direct(ride.to_owned(), text))
}

fn fastest(text: &str) -> String {
    format!("This is the fastest way that I found, and I know no other:\n{text}")
}

/// Whether the trip is right now. "Leaving at 5pm" names a time.
fn asks_about_now(outcome: &Outcome<'_>) -> bool {
    let has_time = ["leave_at", "arrive_by"].iter().any(|slot| outcome.slots().get(slot).is_some());
    outcome.slots().get("now").is_some() && !has_time
}

/// Returns the arguments of a tool that finds a route.
#[must_use]
pub fn trip_arguments(outcome: &Outcome<'_>) -> Option<Value> {
    let [from, to] = ENDS.map(|slot| station(outcome, slot));
    let mut arguments = json!({"from_station": from?, "to_station": to?});
    for condition in ["leave_at", "arrive_by", "step_free", "fewest_changes"] {
        let value = outcome.slots().value(condition);
        if !value.is_null() {
            arguments[condition] = value;
        }
    }
    let avoided = lines_of(&outcome.slots().value("avoid_lines"));
    if !avoided.is_empty() {
        arguments["avoid_lines"] = Value::from(avoided.join(","));
    }
    Some(arguments)
}
