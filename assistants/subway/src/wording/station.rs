use threadkeep_transit::{Place, Resolution, Station};

use crate::info::{Accessibility, LineStations, StationInfo, StationPart};
use crate::place::{StationView, view_of};
use crate::preferences::CommonTrip;
use crate::system::{names, network};

/// Returns a station's name, qualified by its lines or trunk line if the name alone is ambiguous. Every tool resolves the
/// result to the same station.
pub(crate) fn place(view: &StationView) -> String {
    let complex = complex_of(view);
    let resolves_back = |text: &String| match names().resolve(text) {
        Resolution::Certain(place) => Some(place.complex.as_str()) == complex,
        _ => false,
    };
    let stations = view.stop_ids.iter().filter_map(|id| network().find_station(id));
    // A complex may include stations with other names; their lines would not resolve together with this name.
    let named: Vec<&Station> = stations.filter(|station| station.name == view.name).collect();
    let with = |qualifier: &str| format!("{} ({qualifier})", view.name);
    let with_lines = || with(&super::distinct(named.iter().flat_map(|station| &station.lines)).join(" "));
    let with_trunk = || with(named.first().map_or("", |station| station.trunk.as_str()));
    let forms: [&dyn Fn() -> String; 3] = [&|| view.name.clone(), &with_lines, &with_trunk];
    forms.into_iter().map(|form| form()).find(resolves_back).unwrap_or_else(with_lines)
}

pub(super) fn with_lines(view: &StationView) -> String {
    format!("{} ({})", view.name, view.lines.join(" "))
}

fn complex_of(view: &StationView) -> Option<&'static str> {
    let first = view.stop_ids.first().and_then(|id| network().find_station(id));
    first.map(|station| station.complex.as_str())
}

/// Returns the name of the whole complex of a station, so that all of its platforms have the same name.
pub(crate) fn whole_place(view: &StationView) -> String {
    let Some(complex) = complex_of(view) else { return place(view) };
    let stations = network().stations_of(complex).map(|station| station.id.clone()).collect();
    place(&view_of(&Place { complex: complex.to_owned(), stations }))
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

/// The direction on the signs of a terminal.
pub(super) const LAST_STOP: &str = "Last Stop";

fn lines(lines: &[String]) -> String {
    format!("{} {}", if lines.len() == 1 { "line" } else { "lines" }, lines.join(" "))
}

/// Formats the stations of a line in order. Starts a new line where the next station is not the next stop, as at the end of a
/// branch.
pub(crate) fn line_stations(line: &LineStations) -> String {
    let is_next_stop = |one: &StationView, next: &StationView| {
        let ids = one.stop_ids.iter().flat_map(|one| next.stop_ids.iter().map(move |next| (one, next)));
        ids.into_iter().any(|(one, next)| {
            let rides = network().lines_named(&line.line).flat_map(|line| {
                [network().ride(&line.id, one, next), network().ride(&line.id, next, one)].into_iter().flatten()
            });
            rides.into_iter().any(|ride| ride.stops() == 1)
        })
    };
    let ways = line.ways.iter().map(|way| {
        let branches = way
            .chunk_by(is_next_stop)
            .map(|branch| branch.iter().map(|view| view.name.as_str()).collect::<Vec<_>>().join(" · "));
        let count = super::counted(way.len(), "station", "stations");
        Some(format!("The {} stops at {count} by day:\n{}", line.line, branches.collect::<Vec<_>>().join("\n")))
    });
    super::lines_of(ways)
}

pub(crate) fn common_trips(trips: &[CommonTrip]) -> String {
    if trips.is_empty() {
        return "You have not asked for any trips yet.".to_owned();
    }
    let trip = |trip: &CommonTrip| {
        let often = if trip.count == 1 { "once".to_owned() } else { format!("{} times", trip.count) };
        format!("- {} to {}: {often}", trip.from, trip.to)
    };
    let lines: Vec<String> = trips.iter().map(trip).collect();
    format!("Your most common trips:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::find;

    /// Covers all places that share a name with another, and some of the rest.
    #[test]
    fn place_names_resolve_to_their_place() {
        let mut complexes: Vec<&str> = network().stations().iter().map(|station| station.complex.as_str()).collect();
        complexes.dedup();
        let is_shared = |complex: &str| {
            let names: Vec<&str> = network().stations_of(complex).map(|station| station.name.as_str()).collect();
            network().stations().iter().any(|other| other.complex != complex && names.contains(&other.name.as_str()))
        };
        let (shared, rest): (Vec<&str>, Vec<&str>) = complexes.into_iter().partition(|complex| is_shared(complex));
        assert!(shared.len() > 100, "{}", shared.len());
        let mut lost = Vec::new();
        for complex in shared.into_iter().chain(rest.into_iter().step_by(8)) {
            let stations: Vec<String> = network().stations_of(complex).map(|station| station.id.clone()).collect();
            let text = place(&view_of(&Place { complex: complex.to_owned(), stations }));
            if find(&text, &[]).map(|found| found.place.complex).as_deref() != Ok(complex) {
                lost.push(text);
            }
        }
        assert_eq!(lost, Vec::<String>::new());
    }
}
