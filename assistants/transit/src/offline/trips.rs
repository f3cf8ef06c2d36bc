//! Intents about trips: the route, the way back, the timing of a transfer.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Outcome, Slot, Slots};

use super::Speech;
use super::boards::{lines_of, on_lines};
use super::legs::{LEGS, legs, legs_of};
use super::saved::{assumed_origin, last_result_text, station, with_saved};
use super::stations::saved_key;
use crate::Resolution;
use crate::wording::DIRECT;

/// The tool for routes without live trains.
const ROUTE: &str = "get_route";

/// Maximum number of lines on which the same trip is looked up.
const MAX_LINES: usize = 3;

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
        "live at",
        "live in",
        "live by",
        "live near",
        // "What if I walk over to X and start from there?"
        "walk over to",
        "walk up to",
        "walk down to",
        "walked over to",
    ];
    Slot::required("from_station", "station")
        .after(cues)
        .asks("From which station?")
        .narrowed_by(move |choices, slots| speech.on_lines_or_connected(choices, slots, "to_station"))
        .narrowing_assumed()
        .preferred_for(|place, slots| replaces_unknown(place, slots, ENDS[0]))
        .complemented_by(|slots| other_saved(slots, "to_station"))
        .pronoun_from("to_station")
        .carried_from("station_name")
}

/// Whether a known place of a follow-up replaces a name that no station has: "sorry, Borough Hall" after "from Hogwarts to Astor Place".
fn replaces_unknown(place: &Choice, slots: &Slots, end: &str) -> bool {
    let is_known = |choice: &Choice| !choice.hints.is_empty();
    is_known(place) && slots.get(end).is_some_and(|named| named.value.is_string() && !is_known(named))
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
        "as far as",
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
        "am i at",
        "are we at",
        "i be at",
        "am i in",
        "arrive at",
        "put me at",
        "puts me at",
        "get me to",
        "gets me to",
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
        .slot(Slot::optional("now", "now"))
        .slot(Slot::optional("leg", "leg").momentary())
        .slot(Slot::optional("whether", "whether").momentary());
    routed(speech, intent, live_tool)
}

/// Calls the route tool: with live trains if the message asks about now.
fn routed(speech: &'static Speech, intent: Intent, live_tool: &str) -> Intent {
    let answer = |says: fn(&str) -> String| move |outcome: &Outcome<'_>| speech.route_answer(outcome, says);
    // Without live trains, a route does not say when they leave.
    let when: &[&str] = if live_tool == ROUTE { &[] } else { &["ask:wait", "ask:later"] };
    let intent = when.iter().fold(intent, |intent, aspect| {
        intent.aspect(aspect, answer(|text| departures(text).unwrap_or_else(|| text.to_owned())))
    });
    let intent = with_saved(intent, &ENDS)
        .then_calls(ROUTE, |outcome| speech.arguments(outcome).filter(|_| !asks_about_now(outcome)))
        .then_calls(live_tool, |outcome| speech.arguments(outcome).filter(|_| asks_about_now(outcome)));
    let intent = (1..MAX_LINES)
        .fold(intent, |intent, number| intent.then_calls(ROUTE, move |outcome| speech.arguments_on(outcome, number)));
    intent
        .says(answer(str::to_owned))
        .records(LEGS, legs_of)
        .aspect("ask:duration", answer(summary))
        .aspect("ask:depart", answer(|text| departures(text).unwrap_or_else(|| summary(text))))
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
        let apart = self.apart_from(choices, slots, other_end);
        let choices = if apart.is_empty() { choices } else { &apart };
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
        let connected: Vec<Choice> = choices.iter().filter(shares_line).cloned().collect();
        if connected.is_empty() { apart } else { connected }
    }

    /// Returns the meanings of a name that are not in the complex of the other end of the trip, if the name also means that complex.
    fn apart_from(&self, choices: &[Choice], slots: &Slots, other_end: &str) -> Vec<Choice> {
        let complex = |choice: &Choice| {
            let place = self.system.places(choice.value.as_str()?).into_iter().next()?;
            Some(place.complex)
        };
        let Some(other) = slots.get(other_end).and_then(complex) else { return Vec::new() };
        let apart: Vec<Choice> =
            choices.iter().filter(|choice| complex(choice).as_ref() != Some(&other)).cloned().collect();
        if apart.len() < choices.len() { apart } else { Vec::new() }
    }

    /// Returns the destination of a trip as the direction for a departure board, if the trip starts at the board's
    /// station and needs no change.
    #[must_use]
    pub fn end_of_direct_trip(&self, trip: &Slots, board: &Slots, at: &str) -> Option<Choice> {
        let [from, to] = ENDS.map(|end| trip.get(end));
        let (from, to) = (from?, to?);
        if board.get("direction").is_some() {
            return None;
        }
        // "For my way home, the next G at Hoyt" goes back to where the trip started.
        if board.get("back").is_some() {
            let is_end = board.get(at).is_some_and(|here| here.label == to.label);
            let lines = board.value("lines");
            return (is_end && self.has_direct_ride(to, from, &lines))
                .then(|| Choice { others: Vec::new(), ..from.clone() });
        }
        if let Some(end) = self.end_of_leg(trip, board, at) {
            return Some(end);
        }
        let is_line = |hint: &&String| {
            (self.system.network)().lines().iter().any(|line| line.name == **hint || line.id == **hint)
        };
        let here = board.get(at).filter(|here| here.label == from.label)?;
        let named = lines_of(&board.value("lines"));
        let mut shared = here.hints.iter().filter(is_line).filter(|line| to.hints.contains(line)).peekable();
        shared.peek()?;
        let is_on_trip = named.is_empty() || shared.any(|line| named.contains(line));
        is_on_trip.then(|| Choice { others: Vec::new(), ..to.clone() })
    }

    /// Returns where the user leaves the train that a departure board is about, if that train is part of the trip's route.
    fn end_of_leg(&self, trip: &Slots, board: &Slots, at: &str) -> Option<Choice> {
        let here = board.get(at)?;
        let named = lines_of(&board.value("lines"));
        let is_start = trip.get(ENDS[0]).is_some_and(|from| from.value == here.value);
        let complexes = |name: &str| self.system.places(name).into_iter().map(|place| place.complex);
        let here: Vec<String> = here.value.as_str().map(|name| complexes(name).collect()).unwrap_or_default();
        let legs = legs(trip);
        let (number, leg) = legs.iter().enumerate().find(|(number, leg)| {
            let is_here = is_start && *number == 0
                || self.place_on(&leg.from, &leg.line).is_some_and(|place| here.contains(&place.complex));
            let is_named = |line: &String| self.system.line_name(line) == leg.line;
            is_here && (named.is_empty() || named.iter().all(is_named))
        })?;
        // The last ride ends where the trip does.
        match trip.get(ENDS[1]).filter(|to| number + 1 == legs.len() && to.value.is_string()) {
            Some(to) => Some(Choice { others: Vec::new(), ..to.clone() }),
            None => {
                let place = self.place_on(&leg.to, &leg.line)?;
                Some(Choice::new(self.text_of(&place), self.system.view_of(&place).name).hinted(self.hints(&place)))
            }
        }
    }

    /// Returns the place with a name on a line.
    fn place_on(&self, name: &str, line: &str) -> Option<crate::Place> {
        match (self.system.names)().resolve_on(name, &[line]) {
            Resolution::Certain(place) | Resolution::Assumed { taken: place, .. } => Some(place),
            _ => None,
        }
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
        let is_only = lines.len() == 1 || self.compares_rides(outcome);
        if let [line, ..] = &lines[..]
            && is_only
            && ENDS.iter().all(|end| stops_at(end, line))
            && arguments.get("avoid_lines").is_none()
            && outcome.slots().get("leg").is_none()
        {
            arguments["only_lines"] = Value::from(line.as_str());
        }
        Some(arguments)
    }

    /// Returns the arguments for the trip on another of several lines, if the message asks for the stops or the time on each.
    fn arguments_on(&self, outcome: &Outcome<'_>, number: usize) -> Option<Value> {
        let lines = lines_of(&outcome.slots().value("lines"));
        let line = lines.get(number).filter(|_| self.compares_rides(outcome))?;
        let mut arguments = trip_arguments(outcome)?;
        arguments["only_lines"] = Value::from(line.as_str());
        Some(arguments)
    }

    /// Whether the message asks for the stops or the time of the same ride on several lines.
    fn compares_rides(&self, outcome: &Outcome<'_>) -> bool {
        let slots = outcome.slots();
        let [from, to] = ENDS.map(|end| slots.get(end));
        let (Some(from), Some(to)) = (from, to) else { return false };
        let lines = lines_of(&slots.value("lines"));
        matches!(outcome.aspect(), Some("ask:stops" | "ask:duration"))
            && lines.len() > 1
            && !asks_about_now(outcome)
            && slots.get("avoid_lines").is_none()
            && lines.iter().all(|line| self.has_direct_ride(from, to, &json!([line])))
    }

    /// Words the answer from the tool's text. A query error is returned unchanged.
    fn route_answer(&self, outcome: &Outcome<'_>, says: fn(&str) -> String) -> String {
        self.missing(outcome, &ENDS).unwrap_or_else(|| {
            if self.compares_rides(outcome) {
                let routes = outcome.exchanges().iter().filter(|exchange| exchange.call.name == ROUTE);
                let texts = routes.filter_map(|exchange| exchange.value().as_str().map(says));
                return texts.collect::<Vec<_>>().join("\n");
            }
            let text = last_result_text(outcome);
            let text = match assumed_origin(outcome, &ENDS) {
                Some(note) => format!("{text}\n{note}"),
                None => text,
            };
            if steps(&text).next().is_none() {
                return text;
            }
            if let Some(leg) = self.leg(outcome, &text) {
                return leg;
            }
            let verdict = self.verdict(outcome, &text);
            let said = verdict.unwrap_or_default();
            // The tool finds the fastest route, which may not include a line that was asked for.
            let names = lines_of(&outcome.slots().value("lines")).into_iter().map(|line| self.system.line_name(&line));
            let is_unused = |line: &String| !steps(&text).any(|step| step.contains(&format!("ake the {line} ")));
            let unused: Vec<String> = names.filter(is_unused).collect();
            match unused.is_empty() {
                true => format!("{said}{}", says(&text)),
                false => {
                    let unused = unused.join(" and the ");
                    format!("{said}{}\nThe {unused} is not part of the fastest way.", says(&text))
                }
            }
        })
    }
}

impl Speech {
    /// Returns the ride of a route that the message asks for: "the L part", "the first leg".
    fn leg(&self, outcome: &Outcome<'_>, text: &str) -> Option<String> {
        let leg = outcome.slots().get("leg")?;
        let rides: Vec<&str> = steps(text).filter(|step| step.contains("ake the ")).collect();
        let lines = lines_of(&outcome.slots().value("lines")).into_iter().map(|line| self.system.line_name(&line));
        let lines: Vec<String> = lines.collect();
        let is_on = |ride: &&&str| lines.iter().any(|line| ride.contains(&format!("ake the {line} ")));
        let meant = match leg.value.as_str() {
            Some("first") => rides.first(),
            Some("second") => rides.get(1),
            Some("last") => rides.last(),
            _ => rides.iter().find(is_on),
        };
        meant.map(|ride| ride.split_once(". ").map_or(*ride, |(_, ride)| ride).to_owned())
    }

    /// Answers whether a line, or a ride without a change, makes the trip.
    fn verdict(&self, outcome: &Outcome<'_>, text: &str) -> Option<String> {
        outcome.slots().get("whether")?;
        let lines = lines_of(&outcome.slots().value("lines")).into_iter().map(|line| self.system.line_name(&line));
        let lines: Vec<String> = lines.collect();
        let is_direct = steps(text).filter(|step| step.contains("ake the ")).count() == 1;
        if lines.is_empty() {
            outcome.slots().get("fewest_changes")?;
            return Some(if is_direct { "Yes, without a change.\n" } else { "No, not without a change.\n" }.to_owned());
        }
        let makes = |line: &String| {
            is_direct && steps(text).any(|step| step.contains(&format!("ake the {line} ")))
                || text.lines().any(|row| {
                    DIRECT.iter().any(|opening| row.starts_with(opening)) && row.contains(&format!("the {line} "))
                })
        };
        let named = lines.join(" and the ");
        Some(match lines.iter().all(makes) {
            true => format!("Yes, the {named} goes there without a change.\n"),
            false => format!("No, not on the {named} alone.\n"),
        })
    }
}

/// The numbered steps of a route.
pub(super) fn steps(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.split_once(". ").is_some_and(|(number, _)| number.parse::<usize>().is_ok()))
}

/// The lines around the steps: ends, duration and clock times; and where the times come from.
fn summary(text: &str) -> String {
    let is_step = |line: &&str| steps(text).any(|step| step == *line);
    text.lines().filter(|line| !is_step(line)).collect::<Vec<_>>().join("\n")
}

/// The rides without their times, and when the next trains of the first one leave; `None` without live trains.
fn departures(text: &str) -> Option<String> {
    let is_board = |line: &&str| line.starts_with("Next trains at ") || line.starts_with("No train is announced");
    let board = text.lines().find(is_board)?;
    let rides: Vec<&str> = steps(text)
        .filter_map(|step| step.split_once(". "))
        .filter(|(_, step)| step.contains("ake the "))
        .map(|(_, step)| step.rsplit_once(": ").map_or(step, |(ride, _)| ride))
        .collect();
    let rides = format!("{}.", rides.join("; "));
    let trains = text.lines().skip_while(|line| *line != board).skip(1);
    let is_about_trains = |line: &&str| line.starts_with("- ") || line.starts_with("With the ");
    let rows = trains.take_while(is_about_trains);
    let notes = text.lines().filter(|line| line.starts_with("Live times") || line.starts_with("I took "));
    Some([rides.as_str(), board].into_iter().chain(rows).chain(notes).collect::<Vec<_>>().join("\n"))
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

/// Whether the trip is right now, because the message says so or asks when the train leaves. "Leaving at 5pm" names a time.
fn asks_about_now(outcome: &Outcome<'_>) -> bool {
    let has_time = ["leave_at", "arrive_by"].iter().any(|slot| outcome.slots().get(slot).is_some());
    let asks_when = matches!(outcome.aspect(), Some("ask:wait" | "ask:later" | "ask:depart" | "ask:arrive"));
    let is_now = outcome.slots().value("now");
    (asks_when || !is_now.is_null()) && is_now != json!(false) && !has_time
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
