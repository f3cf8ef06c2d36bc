//! The intents about lines, stations and routes.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Outcome, Slot, Slots, Utterance};
use threadkeep_transit::offline::{
    at_station, away_from, compared_boards, last_result_text, line_ends, line_meeting, lines_of, on_lines,
    route_intent, station, station_info, stations_on_line, stops_at, with_saved,
};

use super::SPEECH;
use super::rides::ride_stops;
use super::sections;
use super::speech::decides_for_listing;
use super::trains::announced_train;
use crate::lines::{find_network_lines, line_runs};
use crate::network::network;
use crate::services::night_lines;

/// Maximum number of lines looked up for one message.
const MAX_LINES: usize = 3;
const USUAL_LINE: &str = "usual line";

pub(super) fn intents() -> Vec<Intent> {
    let route = route_intent(&SPEECH, "How do I get from Paddington to Canary Wharf?", "get_route");
    let info = station_info(&SPEECH, "Is Bond Street step-free?");
    vec![
        announced_train(),
        compared_boards(&SPEECH),
        nearest_to(),
        line_ends(&SPEECH).continued_by("stations_on_line"),
        line_meeting(&SPEECH).yields(first_line),
        status(),
        arrivals(),
        // "From here" after a board is the board's station.
        with_state(route.carrying("from_station", "station")).yields(ridden_lines),
        info.yields(named_lines),
        stops_at(&SPEECH, "Does the Jubilee line stop at Waterloo?")
            .slot(Slot::optional("train", "direction").momentary())
            .says_first(whether_train_stops),
        stations_on_line(&SPEECH, "Which stations are on the Victoria line?")
            .decided_by("listing", decides_for_listing),
        ride_stops(),
        train_times("first_trains", "first")
            .example("When is the first train from Brixton?")
            .decided_by("edge", |edge, _| edge.value == "first"),
        train_times("last_trains", "last")
            .example("When is the last Central line train at Bank?")
            .decided_by("edge", |edge, _| edge.value == "last"),
        train_times("frequency", "frequency").example("How often do trains run at Angel?"),
        night_tube(),
        save_commute(),
    ]
}

/// Also looks up how the lines of a trip run, if the message asks for it: "am I all right from Upminster to Tower Hill?"
fn with_state(route: Intent) -> Intent {
    route
        .slot(Slot::optional("trouble", "trouble"))
        .slot(Slot::optional("detour", "detour").momentary())
        .then_calls("get_line_status", |outcome| {
            if let Some(line) = outcome.slots().get("detour") {
                return Some(json!({"lines": line.value}));
            }
            outcome.slots().get("trouble")?;
            let lines = lines_of_route(&all_texts(outcome, "get_route"));
            (!lines.is_empty()).then(|| json!({"lines": lines.join(",")}))
        })
        // "If the Victoria line is delayed, how else do I get there?"
        .then_calls("get_route", |outcome| {
            let line = outcome.slots().get("detour").filter(|_| is_disrupted(outcome))?;
            let call = outcome.exchanges().iter().find(|exchange| exchange.call.name == "get_route")?;
            let mut arguments = call.arguments();
            arguments["avoid_lines"] = line.value.clone();
            Some(arguments)
        })
        .says_first(|outcome| {
            let state = all_texts(outcome, "get_line_status");
            if outcome.slots().get("detour").is_some() {
                let mut routes = outcome.exchanges().iter().filter(|exchange| exchange.call.name == "get_route");
                let route = routes.next_back().and_then(|exchange| exchange.value().as_str().map(str::to_owned));
                return Some(format!("{state}\n\n{}", route.unwrap_or_default()));
            }
            (!state.is_empty()).then(|| format!("{state}\n\n{}", all_texts(outcome, "get_route")))
        })
}

/// Whether a line of the status has no good service.
fn is_disrupted(outcome: &Outcome<'_>) -> bool {
    let state = all_texts(outcome, "get_line_status");
    !state.is_empty() && !state.contains(": good service") && !state.contains("cannot be reached")
}

/// "Is the Circle line running?", "any delays on the tube?"
fn status() -> Intent {
    Intent::new("status")
        .example("Is the Circle line running?")
        .restored_from_calls()
        .slot(Slot::optional("lines", "lines"))
        .slot(Slot::optional("usual", "usualline"))
        .alternatives("lines", "usual")
        .decided_by("state", |_, _| true)
        .slot(Slot::optional("stations", "station").after(["between", "from", "to", "and", "at"]))
        .slot(Slot::optional("to", "station").after(["to", "and", "towards"]))
        .slot(Slot::optional("now", "now"))
        .slot(Slot::optional("weekend", "weekend").momentary())
        // "This morning": the state is that of now.
        .slot(Slot::optional("time", "depart").momentary())
        .then_calls("get_preference", |outcome| outcome.slots().get("usual").map(|_| json!({"key": USUAL_LINE})))
        .then_calls("get_line_status", |outcome| {
            let mut lines = lines_of(&outcome.slots().value("lines"));
            if outcome.slots().get("usual").is_some() {
                lines.extend(usual_line(outcome).filter(|usual| !lines.contains(usual)));
                return (!lines.is_empty()).then(|| json!({"lines": lines.join(",")}));
            }
            Some(if lines.is_empty() { json!({}) } else { json!({"lines": lines.join(",")}) })
        })
        .aspect("ask:reason", last_result_text)
        .says(|outcome| {
            let unknown = "I do not know your usual line yet. Say, for instance: “My usual line is the Northern.”";
            match outcome.slots().get("usual").is_some() && usual_line(outcome).is_none() {
                true if outcome.slots().get("lines").is_none() => unknown.to_owned(),
                true => format!("{}\n{unknown}", last_result_text(outcome)),
                false => at_sections(outcome, last_result_text(outcome)),
            }
        })
}

/// Adds to the state of a line whether a station is on the section that TfL names, and what a state says about other days.
fn at_sections(outcome: &Outcome<'_>, text: String) -> String {
    let lines = lines_of(&outcome.slots().value("lines"));
    let station = outcome.slots().value("stations");
    let place = match (&lines[..], station.as_str()) {
        ([line], Some(station)) => sections::place_on_sections(line, station, &text),
        _ => None,
    };
    let days = outcome.slots().get("weekend").map(|_| {
        "That is the current status, with the works that TfL lists. For works on later days see \
         tfl.gov.uk/status-updates/planned-track-closures."
            .to_owned()
    });
    place.into_iter().chain([text]).chain(days).collect::<Vec<_>>().join("\n")
}

/// Returns the id of the line that the user saved as their usual line.
fn usual_line(outcome: &Outcome<'_>) -> Option<String> {
    let exchange = outcome.exchanges().iter().find(|exchange| exchange.call.name == "get_preference")?;
    let text = exchange.value();
    let value = text.as_str()?.strip_prefix("Your usual line: ")?;
    Some(find_network_lines(value).ok()?.first()?.id.clone())
}

/// The stations nearest to a position: "51.5138, -0.0984"
fn nearest_to() -> Intent {
    Intent::new("nearest_to")
        .slot(Slot::required("position", "position").fresh())
        .then_calls("find_nearest_station", |outcome| {
            let position = outcome.slots().value("position");
            Some(json!({"latitude": position[0], "longitude": position[1]}))
        })
        .yields(|outcome| {
            let text = last_result_text(outcome);
            let name = text.strip_prefix("Nearest stations: ").and_then(|names| names.split(" (").next());
            let found =
                name.map(|name| SPEECH.find_stations(&Utterance::new(format!("at {name}")))).unwrap_or_default();
            let choices = found.into_iter().filter_map(|mention| mention.choices.into_iter().next());
            choices.map(|choice| ("station".to_owned(), choice)).take(1).collect()
        })
}

/// "Next Victoria line at Oxford Circus towards Brixton"
fn arrivals() -> Intent {
    let station_slot = Slot::required("station", "station")
        .after(["at", "from", "in", "near", "leaving", "leave", "leaves"])
        .asks("At which station?")
        .narrowed_by(on_lines)
        .narrowing_assumed()
        .carried_from("from_station")
        .relocated_by(|here, board| SPEECH.on_named_line(here, board))
        .pronoun_from("from_station");
    let intent = Intent::new("arrivals")
        .example("When is the next Victoria line train at Oxford Circus?")
        .restored_from_calls()
        .alternatives("direction", "towards")
        .alternatives("via", "towards")
        .decided_by("due", |_, _| true)
        .excluded_by("ridetime")
        .slot(station_slot)
        .slot(Slot::optional("lines", "lines").argument("line"))
        .slot(Slot::optional("direction", "direction"))
        .slot(Slot::optional("back", "back").momentary())
        .slot(
            Slot::optional("towards", "station")
                .after(TOWARDS.iter().copied())
                .opposite_by(away_from)
                .preferred_for(|place, board| SPEECH.is_where_board_goes(place, board, "station"))
                .inherited_by(|trip, board| SPEECH.end_of_direct_trip(trip, board, "station")),
        )
        .slot(Slot::optional("via", "station").after(["via", "going via", "by way of"]))
        .slot(Slot::optional("now", "now"));
    let intent = with_saved(intent, &ENDS);
    let intent = (0..MAX_LINES).fold(intent, |intent, number| {
        intent.then_calls("get_next_trains", move |outcome| {
            let here = station(outcome, "station")?;
            let there = station(outcome, "towards");
            let named = lines_of(&outcome.slots().value("lines"));
            let lines = if named.is_empty() { only_line(&here, there.as_deref()) } else { named };
            let mut arguments = json!({"station": here});
            match lines.get(number) {
                Some(line) => arguments["line"] = Value::from(line.as_str()),
                None if number > 0 => return None,
                None => {}
            }
            let is_served = |there: &&str| lines.get(number).is_none_or(|line| has_ride(line, &here, there));
            // Where the line ends, all trains go one way, whatever the direction of an earlier board.
            let ends = lines.get(number).is_some_and(|line| ends_at(line, &here));
            let direction = outcome.slots().value("direction");
            let direction = if ends { Value::Null } else { direction };
            // In "northbound to Edgware", the place says more.
            let way = there.as_deref().filter(is_served).or(direction.as_str());
            let via = outcome.slots().value("via");
            let via = via.as_str().map(|via| format!("via {via}"));
            let towards: Vec<&str> = way.into_iter().chain(via.as_deref()).collect();
            if !towards.is_empty() {
                arguments["towards"] = Value::from(towards.join(" "));
            }
            Some(arguments)
        })
    });
    let intent = ["ask:later", "ask:wait"].into_iter().fold(intent, |intent, aspect| {
        intent.aspect(aspect, |outcome| SPEECH.missing(outcome, &ENDS).unwrap_or_else(|| boards(outcome)))
    });
    intent.says(|outcome| SPEECH.missing(outcome, &ENDS).unwrap_or_else(|| boards(outcome))).yields(announced_lines)
}

const ENDS: [&str; 2] = ["station", "towards"];
/// Words that introduce the station to which a train goes.
const TOWARDS: &[&str] = &[
    "to",
    "towards",
    "toward",
    "heading to",
    "going to",
    "bound for",
    "in the direction of",
    "for",
    "be at",
    "get to",
    "reach",
    "arrive at",
    // The flight is not the trip.
    "flight from",
    "fly from",
    "flying from",
    "flies from",
    "fly out of",
    "flying out of",
    "flight out of",
];

/// Returns the line at a station, or between two stations, if there is only one.
fn only_line(here: &str, there: Option<&str>) -> Vec<String> {
    let lines = |name: &str| {
        let first = SPEECH.system.places(name).into_iter().next();
        first.map(|place| SPEECH.system.view_of(&place).lines).unwrap_or_default()
    };
    let there = there.map(lines);
    let is_common = |line: &String| there.as_ref().is_none_or(|there| there.contains(line));
    let common: Vec<String> = lines(here).into_iter().filter(is_common).collect();
    if common.len() == 1 { common } else { Vec::new() }
}

/// Whether all trains of a line end or start at a place.
fn ends_at(line: &str, here: &str) -> bool {
    let ids: Vec<String> = SPEECH.system.places(here).into_iter().flat_map(|place| place.stations).collect();
    let is_here = |index: &usize| ids.contains(&network().stations()[*index].id);
    let lines = network().lines().iter().filter(|known| known.id == line);
    let mut sequences = lines.flat_map(|line| &line.sequences).filter(|sequence| sequence.stations.iter().any(is_here));
    let is_end = |stations: &[usize]| stations.first().is_some_and(is_here) || stations.last().is_some_and(is_here);
    sequences.clone().next().is_some() && sequences.all(|sequence| is_end(&sequence.stations))
}

/// Whether a line has a ride from one place to another, or one of them is unknown.
fn has_ride(line: &str, from: &str, to: &str) -> bool {
    let ids =
        |name: &str| SPEECH.system.places(name).into_iter().flat_map(|place| place.stations).collect::<Vec<String>>();
    let (from, to) = (ids(from), ids(to.strip_prefix("away from ").unwrap_or(to)));
    let mut pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from, to)));
    from.is_empty() || to.is_empty() || pairs.any(|(from, to)| network().ride(line, from, to).is_some())
}

/// The trains of a board, and the lines that do not go where the board was for.
fn boards(outcome: &Outcome<'_>) -> String {
    let text = all_texts(outcome, "get_next_trains");
    let (Some(here), Some(there)) = (station(outcome, "station"), station(outcome, "towards")) else { return text };
    let named = lines_of(&outcome.slots().value("lines"));
    let elsewhere: Vec<String> =
        named.iter().filter(|line| !has_ride(line, &here, &there)).map(|line| SPEECH.system.line_name(line)).collect();
    match elsewhere.is_empty() || outcome.slots().get("direction").is_some() {
        true => text,
        false => format!("{text}\nThe {} does not go from there to {there}.", elsewhere.join(" and the ")),
    }
}

/// Makes the line of a departure board available to follow-ups such as "does that one stop at …?"
fn announced_lines(outcome: &Outcome<'_>) -> Vec<(String, Choice)> {
    let text = all_texts(outcome, "get_next_trains");
    match lines_in(text.lines().next().unwrap_or_default()) {
        lines if lines.is_empty() => Vec::new(),
        lines => vec![("lines".to_owned(), Choice::new(json!(lines), "the lines of the board"))],
    }
}

/// "I live in Kennington and take the Northern line to Old Street every day, remember that."
fn save_commute() -> Intent {
    let saved = |key: &'static str, slot: &'static str| {
        move |outcome: &Outcome<'_>| {
            let value = outcome.slots().value(slot);
            Some(json!({"key": key, "value": value.as_str()?}))
        }
    };
    Intent::new("save_commute")
        .about_user()
        .slot(
            Slot::required("home", "station")
                .fresh()
                .after(["live in", "live at", "live near", "live by", "from", "home is", "living in"])
                .asks("Where do you live?"),
        )
        .slot(Slot::optional("work", "station").after(["to", "work in", "work at", "work near", "office is at"]))
        .slot(Slot::optional("lines", "lines"))
        .then_calls("save_preference", saved("home station", "home"))
        .then_calls("save_preference", saved("work station", "work"))
        .then_calls("save_preference", |outcome| {
            let line = lines_of(&outcome.slots().value("lines")).into_iter().next()?;
            Some(json!({"key": USUAL_LINE, "value": SPEECH.system.line_name(&line)}))
        })
        .says(|outcome| all_lines(outcome, "save_preference"))
}

fn all_lines(outcome: &Outcome<'_>, tool: &str) -> String {
    all_texts(outcome, tool).replace("\n\n", "\n")
}

fn all_texts(outcome: &Outcome<'_>, tool: &str) -> String {
    let calls = outcome.exchanges().iter().filter(|exchange| exchange.call.name == tool);
    let texts: Vec<String> = calls.filter_map(|exchange| exchange.value().as_str().map(str::to_owned)).collect();
    texts.join("\n\n")
}

/// Answers whether the trains to a terminus stop at a station: "does the Edgware one stop there?"
fn whether_train_stops(outcome: &Outcome<'_>) -> Option<String> {
    let ids =
        |name: &str| SPEECH.system.places(name).into_iter().flat_map(|place| place.stations).collect::<Vec<String>>();
    let terminus = outcome.slots().get("train")?.label.clone();
    let (here, end) = (ids(&station(outcome, "station")?), ids(&terminus));
    let named = lines_of(&outcome.slots().value("lines"));
    let lines: Vec<_> = network().lines().iter().filter(|line| named.contains(&line.id)).collect();
    let stations = |sequence: &[usize]| -> Vec<&String> {
        sequence.iter().map(|index| &network().stations()[*index].id).collect()
    };
    let sequences = lines.iter().flat_map(|line| &line.sequences).map(|sequence| stations(&sequence.stations));
    let to_end: Vec<Vec<&String>> =
        sequences.filter(|stations| stations.last().is_some_and(|last| end.contains(last))).collect();
    if here.is_empty() || to_end.is_empty() {
        return None;
    }
    let calls = to_end.iter().any(|stations| stations.iter().any(|id| here.contains(id)));
    let line = lines.first().map(|line| line.name.as_str()).unwrap_or_default();
    let name = outcome.slots().label("station");
    Some(match calls {
        true => format!("Yes, trains of the {line} to {terminus} stop at {name}."),
        false => format!("No, trains of the {line} to {terminus} do not stop at {name}."),
    })
}

/// First or last trains, or how often trains run.
fn train_times(name: &str, what: &'static str) -> Intent {
    let intent = Intent::new(name)
        .restored_from_calls()
        .slot(at_station("station").without_cues(["to"]).carried_from("from_station").pronoun_from("from_station"))
        .slot(Slot::optional("edge", "edge").momentary())
        .slot(Slot::optional("lines", "lines").argument("line").inherited_by(lines_there))
        .slot(Slot::optional("direction", "direction"))
        .slot(Slot::optional("towards", "station").after(TOWARDS.iter().copied()).opposite_by(away_from))
        .slot(Slot::optional("day", "depart"));
    with_saved(intent, &ENDS)
        .then_calls("get_train_times", move |outcome| {
            let here = station(outcome, "station")?;
            let named = lines_of(&outcome.slots().value("lines"));
            let there = station(outcome, "towards");
            let lines = if named.is_empty() { only_line(&here, there.as_deref()) } else { named };
            let Some(line) = lines.first() else { return Some(json!({"station": here, "what": what})) };
            // If the line does not serve a station from an earlier question, that station is not meant.
            let is_served =
                SPEECH.system.places(&here).iter().any(|place| SPEECH.system.view_of(place).lines.contains(line));
            let terminal = || Some((SPEECH.system.network)().stations_on(line).first()?.name.clone());
            let here = if is_served { here } else { terminal().unwrap_or(here) };
            Some(json!({"station": here, "what": what, "line": line}))
        })
        .says(|outcome| SPEECH.missing(outcome, &ENDS).unwrap_or_else(|| with_direction(outcome)))
}

/// Returns the lines of an earlier question about the same station.
fn lines_there(earlier: &Slots, now: &Slots) -> Option<Choice> {
    let is_same = earlier.get("station")?.label == now.get("station")?.label;
    earlier.get("lines").filter(|_| is_same).cloned()
}

/// Explains why the answer lists both directions, if the message named a direction that the timetable does not use.
fn with_direction(outcome: &Outcome<'_>) -> String {
    let text = last_result_text(outcome);
    let direction = outcome.slots().label("direction");
    match !direction.is_empty() && text.contains(" inbound") && text.contains(" outbound") {
        true => format!(
            "{text}\nThe timetables call the directions inbound and outbound, so I list both, not only {direction}."
        ),
        false => text,
    }
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
        .says(|outcome| {
            let lines = lines_of(&outcome.slots().value("lines"));
            let verdict = |line: &String| {
                let (name, runs) = (SPEECH.system.line_name(line), night_lines().contains(&line.as_str()));
                if runs {
                    format!("Yes, parts of the {name} have Night Tube.")
                } else {
                    format!("No, the {name} has no Night Tube.")
                }
            };
            let verdicts: Vec<String> = lines.iter().map(verdict).collect();
            format!("{}\n{}", verdicts.join(" "), last_result_text(outcome)).trim_start().to_owned()
        })
}

/// Keeps the line that is under discussion for "is it running?" after a question about where it meets other lines.
fn first_line(outcome: &Outcome<'_>) -> Vec<(String, Choice)> {
    let line = outcome.slots().get("from_line");
    let line = line.map(|line| ("lines".to_owned(), Choice::new(json!([line.value]), line.label.as_str())));
    // "Which lines stop there?", if they meet at one station only
    let text = last_result_text(outcome);
    let only = text.strip_prefix("You can change from the ").filter(|text| !text.contains(" stations: "));
    let place = only.and_then(|text| text.split_once(" at ")).map(|(_, place)| place.trim_end_matches('.'));
    let found = place.map(|place| SPEECH.find_stations(&Utterance::new(format!("at {place}")))).unwrap_or_default();
    let place = match &found[..] {
        [place] => place.choices.first().cloned(),
        _ => None,
    };
    line.into_iter().chain(place.map(|place| ("station".to_owned(), place))).collect()
}

/// Makes the lines of a route available to follow-ups such as "is it delayed?" and "avoiding it".
fn ridden_lines(outcome: &Outcome<'_>) -> Vec<(String, Choice)> {
    let lines = lines_of_route(&all_texts(outcome, "get_route"));
    let Some(first) = lines.first() else { return Vec::new() };
    vec![
        ("lines".to_owned(), Choice::new(json!(lines), "the lines of the route")),
        ("avoided".to_owned(), Choice::new(json!([first]), "the first line of the route")),
        ("line".to_owned(), Choice::new(json!(first), "the first line of the route")),
    ]
}

fn lines_of_route(text: &str) -> Vec<String> {
    let steps: Vec<&str> = text.lines().filter(|line| line.contains("ake the ")).collect();
    lines_in(&steps.join("\n"))
}

/// Makes the lines at a station available to follow-ups such as "any delays on them?"
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
