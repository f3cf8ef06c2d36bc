use crate::info::{Accessibility, LineStations, StationInfo, StationPart};
use crate::place::StationView;
use crate::preferences::CommonTrip;
use crate::system::network;

/// A station by its name, with its lines where others have the same name. It can be said back to any tool.
pub(crate) fn place(view: &StationView) -> String {
    if is_name_shared(view) { with_lines(view) } else { view.name.clone() }
}

pub(super) fn with_lines(view: &StationView) -> String {
    format!("{} ({})", view.name, view.lines.join(" "))
}

fn is_name_shared(view: &StationView) -> bool {
    network().stations().iter().any(|station| station.name == view.name && !view.stop_ids.contains(&station.id))
}

pub(crate) fn station_info(info: &StationInfo) -> String {
    let head = format!("{}, {}: {}.", info.station.name, info.station.borough, lines(&info.station.lines));
    let parts = info.parts.iter().map(|part| Some(part_of(part, info.parts.len() > 1)));
    super::lines_of([Some(head)].into_iter().chain(parts).chain([info.assumption.as_ref().map(super::assumption)]))
}

fn part_of(part: &StationPart, is_one_of_several: bool) -> String {
    let access = match &part.accessibility {
        Accessibility::All => "step-free to all platforms".to_owned(),
        Accessibility::None => "not step-free".to_owned(),
        Accessibility::Only { towards } => format!("step-free only towards {towards}"),
    };
    let directions: Vec<&str> = part.directions.iter().map(String::as_str).filter(|name| *name != LAST_STOP).collect();
    let name = if is_one_of_several { format!("{} ({})", part.name, part.lines.join(" ")) } else { "Here".to_owned() };
    let towards = if directions.is_empty() {
        String::new()
    } else {
        format!("; trains towards {}", super::enumerated(&directions))
    };
    let place = format!("stop {}, at {:.4}, {:.4}", part.stop_id, part.latitude, part.longitude);
    format!("- {name}: {access}{towards} ({place})")
}

/// What the signs say where no train goes on.
pub(super) const LAST_STOP: &str = "Last Stop";

fn lines(lines: &[String]) -> String {
    format!("{} {}", if lines.len() == 1 { "line" } else { "lines" }, lines.join(" "))
}

pub(crate) fn line_stations(line: &LineStations) -> String {
    let ways = line.ways.iter().map(|way| {
        let names: Vec<&str> = way.iter().map(|view| view.name.as_str()).collect();
        let (first, last) = (names.first().copied().unwrap_or_default(), names.last().copied().unwrap_or_default());
        let count = super::counted(names.len(), "station", "stations");
        Some(format!("The {} stops at {count} by day, from {first} to {last}:\n{}", line.line, names.join(" · ")))
    });
    super::lines_of(ways)
}

/// Trips that are told; a person has few that are common.
const TRIPS: usize = 10;

pub(crate) fn common_trips(trips: &[CommonTrip]) -> String {
    if trips.is_empty() {
        return "You have asked for no trip yet.".to_owned();
    }
    let trip = |trip: &CommonTrip| {
        let often = if trip.count == 1 { "once".to_owned() } else { format!("{} times", trip.count) };
        format!("- {} to {}: {often}", trip.from, trip.to)
    };
    let told: Vec<String> = trips.iter().take(TRIPS).map(trip).collect();
    format!("Your most common trips:\n{}", told.join("\n"))
}
