use threadkeep_transit::wording::LAST_STOP;

use crate::info::{Accessibility, LineStations, StationInfo, StationPart};
use crate::place::StationView;
use crate::system::SUBWAY;

/// Returns a station's name, qualified if the name alone is ambiguous.
pub(crate) fn place(view: &StationView) -> String {
    threadkeep_transit::wording::place(&SUBWAY, view)
}

/// Returns the name of the whole complex of a station.
pub(crate) fn whole_place(view: &StationView) -> String {
    threadkeep_transit::wording::whole_place(&SUBWAY, view)
}

pub(crate) fn station_info(info: &StationInfo) -> String {
    let head = format!("{}, {}: {}.", info.station.name, info.station.area, lines(&info.station.lines));
    let parts = info.parts.iter().map(|part| Some(part_of(part, info.parts.len() > 1)));
    super::join_lines([Some(head)].into_iter().chain(parts).chain([info.assumption.as_ref().map(super::assumption)]))
}

fn part_of(part: &StationPart, is_one_of_several: bool) -> String {
    let access = match &part.accessibility {
        Accessibility::All => "accessible, step-free to all platforms".to_owned(),
        Accessibility::None => "not step-free".to_owned(),
        Accessibility::Only { towards } => format!("accessible only in part, step-free only towards {towards}"),
    };
    let directions: Vec<&str> = part.directions.iter().map(String::as_str).filter(|name| *name != LAST_STOP).collect();
    let name = if is_one_of_several {
        format!("{} ({})", part.name, part.lines.join(" "))
    } else {
        "At this station".to_owned()
    };
    let towards = if directions.is_empty() {
        String::new()
    } else {
        format!("; trains towards {}", super::join_with_and(&directions))
    };
    let place = format!("GTFS stop {}, at {:.4}, {:.4}", part.stop_id, part.latitude, part.longitude);
    format!("- {name}: {access}{towards} ({place})")
}

fn lines(lines: &[String]) -> String {
    format!("{} {}", if lines.len() == 1 { "line" } else { "lines" }, lines.join(" "))
}

/// Formats the stations of a line in order.
pub(crate) fn line_stations(line: &LineStations) -> String {
    threadkeep_transit::wording::line_stations(&SUBWAY, &line.line, &line.ways)
}

#[cfg(test)]
mod tests {
    use threadkeep_transit::Place;

    use super::*;
    use crate::place::{find, view_of};
    use crate::system::network;

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
