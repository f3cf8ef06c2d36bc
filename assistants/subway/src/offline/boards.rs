//! Intents about a station or a line: next trains, station information, stops.

use serde_json::json;
use threadkeep::Value;
use threadkeep::dialogue::{Choice, Intent, Outcome, Slot};
use threadkeep_transit::offline::{
    at_station, away_from, last_result_text, line_ends, line_meeting, lines_of, lines_to, other_saved, station,
    station_info, stations_on_line, stops_at, with_saved,
};
use threadkeep_transit::wording::LAST_STOP;

use super::corridor::{expresses_at, places};
use super::speech::SPEECH;
use super::trains::{REPORTED, first_reported, nth_train};
use crate::direction::heading_of;
use crate::place::{direction_at, find};
use crate::service::usual_service;
use crate::system::network;

/// Maximum number of lines looked up for one message.
const MAX_LINES: usize = 4;

/// Words that introduce the station to which a train goes.
pub(super) const TOWARDS: [&str; 21] = [
    "to",
    "for",
    "toward",
    "towards",
    "bound for",
    "heading to",
    "headed to",
    "going to",
    "in the direction of",
    "direction",
    "direction of",
    "up to",
    "down to",
    "back to",
    // The flight is not the trip.
    "flight from",
    "fly from",
    "flying from",
    "flies from",
    "fly out of",
    "flying out of",
    "flight out of",
];

pub(super) fn intents() -> [Intent; 9] {
    [
        line_ends(&SPEECH),
        lines_to(&SPEECH),
        line_meeting(&SPEECH),
        arrivals(),
        express_arrivals(),
        stops_at(&SPEECH, "Does the 4 stop at 96 St?"),
        station_info(&SPEECH, "Is Bleecker St accessible?").yields(lines_there),
        stations_on_line(&SPEECH, "Which stations are on the G?"),
        service_hours(),
    ]
}

/// "Does the B run on Sundays?"
fn service_hours() -> Intent {
    Intent::new("service_hours")
        .slot(Slot::required("lines", "lines").asks("Which line?"))
        .slot(Slot::optional("at", "depart"))
        .slot(Slot::optional("until", "arrive"))
        .slot(Slot::optional("direction", "direction"))
        .slot(Slot::optional("now", "now"))
        .says(|outcome| {
            let lines = lines_of(&outcome.slots().value("lines"));
            let sentence = |line: &String| {
                let unknown = || format!("I do not know when the {line} runs.");
                usual_service(&SPEECH.system.line_name(line)).map_or_else(unknown, str::to_owned)
            };
            let sentences: Vec<String> = lines.iter().take(MAX_LINES).map(sentence).collect();
            let verdict = runs_at_weekends(outcome, &sentences).unwrap_or_default();
            format!(
                "{verdict}{}\nThat is the usual service; for the timetable see mta.info/schedules.",
                sentences.join("\n")
            )
        })
}

/// Answers whether a line runs at weekends, if the message asks about a day of the weekend and the usual service says so.
fn runs_at_weekends(outcome: &Outcome<'_>, sentences: &[String]) -> Option<&'static str> {
    let at = outcome.slots().label("at").to_lowercase();
    let [sentence] = sentences else { return None };
    if !["saturday", "sunday", "weekend"].iter().any(|day| at.contains(day)) {
        return None;
    }
    match sentence {
        text if text.contains("runs on weekdays only") => Some("No. "),
        text if text.contains("runs all day") => Some("Yes. "),
        _ => None,
    }
}

fn arrivals() -> Intent {
    let intent = Intent::new("arrivals")
        .example("When is the next 6 at Astor Place?")
        .restored_from_calls()
        .alternatives("direction", "towards")
        .continued_by("route")
        .decided_by("due", |_, _| true)
        .excluded_by("ridetime")
        .excluded_by("own_arrival")
        .excluded_by("unknown_line")
        .slot(
            at_board("station_name")
                .pronoun_from("from_station")
                .carried_from("from_station")
                .relocated_by(|here, board| SPEECH.on_named_line(here, board))
                .complemented_by(|slots| other_saved(slots, "towards")),
        )
        .slot(Slot::optional("lines", "lines").argument("line"))
        .slot(Slot::optional("direction", "direction"))
        .slot(Slot::optional("back", "back").momentary())
        .slot(
            Slot::optional("towards", "station")
                .after(TOWARDS)
                .opposite_by(away_from)
                .narrowed_by(|choices, slots| SPEECH.on_lines_or_connected(choices, slots, "station_name"))
                .narrowing_assumed()
                .preferred_for(|place, board| SPEECH.is_where_board_goes(place, board, "station_name"))
                .inherited_by(|trip, board| SPEECH.end_of_direct_trip(trip, board, "station_name")),
        )
        .slot(Slot::optional("train", "train").momentary())
        // A departure board is live, and so is a trip that is asked about next.
        .slot(Slot::optional("now", "now").or(Choice::new(true, "now")));
    let intent = ["ask:later", "ask:wait"].into_iter().fold(intent, |intent, aspect| {
        intent.aspect(aspect, |outcome| {
            SPEECH.missing(outcome, &["station_name"]).unwrap_or_else(|| board_texts(outcome))
        })
    });
    boards(with_saved(intent, &["station_name", "towards"]), |outcome| lines_of(&outcome.slots().value("lines")))
        .says_first(|outcome| Some(format!("{}\n\n{}", nth_train(outcome)?, board_texts(outcome))))
        .records(REPORTED, first_reported)
}

/// Like [`at_station`], but "to" introduces where the train goes: "next L to Canarsie".
fn at_board(name: &str) -> Slot {
    at_station(name).without_cues(["to"]).after(["get to", "gets to", "come to", "comes to", "arrive to", "get into"])
}

/// "And the express?", after a departure board.
fn express_arrivals() -> Intent {
    let intent = Intent::new("express_arrivals")
        .follows(["arrivals"])
        .excluded_by("ridetime")
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
            let (direction, towards) = (outcome.slots().value("direction"), station(outcome, "towards"));
            let direction = direction.as_str().or(towards.as_deref());
            match direction {
                Some(direction) if is_direction(direction, &arguments) => {
                    arguments["direction"] = Value::from(direction);
                }
                Some(direction) => {
                    if let Some(heading) = same_heading(direction, &arguments) {
                        arguments["direction"] = Value::from(heading);
                    }
                }
                None => {}
            }
            Some(arguments)
        })
    });
    intent
        .says(|outcome| SPEECH.missing(outcome, &["station_name"]).unwrap_or_else(|| board_texts(outcome)))
        .yields(announced_line)
}

/// Whether words name a direction at the station of a call. The direction of an earlier board may not exist on another line: after the
/// 7 to Manhattan, the G; or no train leaves in it, because the line ends there.
pub(super) fn is_direction(direction: &str, arguments: &Value) -> bool {
    let text = |name: &str| arguments[name].as_str().unwrap_or_default();
    let lines: Vec<&str> = arguments["line"].as_str().into_iter().collect();
    match find(text("station_name"), &lines) {
        Ok(found) => {
            let ids = found.ids();
            heading_of(direction, &ids, &lines).is_ok_and(|heading| leaves_towards(&heading, &ids))
        }
        // The tool reports the unknown station.
        Err(_) => true,
    }
}

/// Whether trains leave any of the stations with a heading. At the end of a line, there is only the opposite one.
fn leaves_towards(heading: &str, stations: &[&str]) -> bool {
    stations.iter().any(|id| direction_at(id, heading) != LAST_STOP)
}

/// Returns the heading of the trains to a place to which the line of a call does not go, if other lines do from the same platforms: after
/// the Q to Brighton Beach, "and the N?" means the N downtown.
fn same_heading(direction: &str, arguments: &Value) -> Option<&'static str> {
    let line = arguments["line"].as_str()?;
    let found = find(arguments["station_name"].as_str()?, &[line]).ok()?;
    let shared =
        |id: &&str| network().find_station(id).is_some_and(|station| station.lines.iter().any(|own| own == line));
    let platforms: Vec<&str> = found.ids().into_iter().filter(shared).collect();
    let heading = heading_of(direction, &platforms, &[]).ok().filter(|heading| leaves_towards(heading, &platforms))?;
    match heading.as_str() {
        "N" => Some("uptown"),
        "S" => Some("downtown"),
        _ => None,
    }
}

/// Makes the line of a departure board available to follow-ups such as "does it run at weekends?", if it has only one line.
fn announced_line(outcome: &Outcome<'_>) -> Vec<(String, Choice)> {
    let here = outcome.slots().get("station_name").filter(|here| here.value.is_string());
    // "From there" means where the board is, not where its trains go.
    let here = here.map(|here| ("station".to_owned(), Choice { others: Vec::new(), ..here.clone() }));
    let text = board_texts(outcome);
    let mut lines: Vec<&str> = text.lines().filter_map(|row| row.strip_prefix("- ")?.split(' ').next()).collect();
    lines.dedup();
    let line = match &lines[..] {
        [line] => Some(("lines".to_owned(), Choice::new(json!([line]), "the line of the board"))),
        _ => None,
    };
    here.into_iter().chain(line).collect()
}

/// Makes the lines of a station available to follow-ups such as "the next one of those".
fn lines_there(outcome: &Outcome<'_>) -> Vec<(String, Choice)> {
    let text = last_result_text(outcome);
    let head = text.lines().next().unwrap_or_default();
    let names = head.split_once(": lines ").or_else(|| head.split_once(": line ")).map(|(_, names)| names);
    let lines: Vec<&str> = names.unwrap_or_default().split(' ').map(|name| name.trim_matches(['.', ','])).collect();
    let are_known = lines.iter().all(|name| network().lines().iter().any(|line| line.name == *name));
    match are_known && lines.len() <= MAX_LINES {
        true => vec![("lines".to_owned(), Choice::new(json!(lines), "the lines of the station"))],
        false => Vec::new(),
    }
}

fn board_texts(outcome: &Outcome<'_>) -> String {
    let boards = outcome.exchanges().iter().filter(|exchange| exchange.call.name == "get_train_arrivals");
    let has_direction = boards.clone().any(|exchange| exchange.arguments().get("direction").is_some());
    let mut texts: Vec<String> = boards.filter_map(|exchange| exchange.value().as_str().map(str::to_owned)).collect();
    // Without a train, it matters when the line does not run.
    for text in &mut texts {
        let line = text.strip_prefix("No train of the ").and_then(|rest| rest.split(' ').next());
        let service = line.and_then(usual_service).filter(|service| !service.contains("all day and all night"));
        if let Some(service) = service {
            text.push('\n');
            text.push_str(service);
        }
    }
    let direction =
        ["direction", "towards"].iter().map(|slot| outcome.slots().label(slot)).find(|label| !label.is_empty());
    if let Some(direction) = direction.filter(|_| !has_direction && !texts.is_empty()) {
        texts.push(format!("No direction there is called “{direction}”, so I list all trains."));
    }
    texts.join("\n\n")
}
