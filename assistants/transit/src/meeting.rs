//! Where passengers can change from one line to another.

use serde::Serialize;

use crate::{Line, Place, QueryError, Station, StationView, System};

/// The stations at which two lines meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Meeting {
    /// The line's public name.
    pub line: String,
    /// The public name of the line to change to.
    pub other: String,
    /// Where the lines meet: in the order of the line, or the nearest first if a place was given.
    pub changes: Vec<Change>,
}

/// A station, or two stations of a complex, at which one can change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The station of the line.
    pub from: StationView,
    /// The station of the other line; the same one, or another one of the complex.
    pub to: StationView,
    /// Whether both can be reached without steps.
    pub step_free: bool,
}

/// Finds the stations at which one can change from a line to another. `near` orders them by their distance from a place.
///
/// # Errors
/// [`QueryError`] if a line or the place is unknown.
pub fn meeting(system: &System, line: &str, other: &str, near: Option<&str>) -> Result<Meeting, QueryError> {
    let (from, to) = ((system.find_lines)(line)?, (system.find_lines)(other)?);
    let near = near.map(|name| system.find(name, &[])).transpose()?;
    let position = near.and_then(|found| system.station(found.place.stations.first()?));
    let network = (system.network)();
    let mut found: Vec<(&Station, &Station)> = Vec::new();
    for station in from.iter().flat_map(|line| network.stations_on(&line.id)).filter(|station| serves(station, &from)) {
        let is_known = found.iter().any(|(known, _)| known.complex == station.complex);
        let mut complex = [station].into_iter().chain(network.stations_of(&station.complex));
        if let Some(reached) = complex.find(|reached| serves(reached, &to)).filter(|_| !is_known) {
            found.push((station, reached));
        }
    }
    if let Some(near) = position {
        let distance = |station: &Station| {
            (station.latitude - near.latitude).powi(2) + (station.longitude - near.longitude).powi(2)
        };
        found.sort_by(|(one, _), (other, _)| distance(one).total_cmp(&distance(other)));
    }
    let view = |station: &Station| {
        system.view_of(&Place { complex: station.complex.clone(), stations: vec![station.id.clone()] })
    };
    let changes = found.into_iter().map(|(from, to)| Change {
        from: view(from),
        to: view(to),
        step_free: !from.accessible.is_empty() && !to.accessible.is_empty(),
    });
    let name = |lines: &[&Line]| lines.first().map(|line| line.name.clone()).unwrap_or_default();
    Ok(Meeting { line: name(&from), other: name(&to), changes: changes.collect() })
}

/// Whether one of these lines usually stops at a station.
fn serves(station: &Station, lines: &[&'static Line]) -> bool {
    lines.iter().any(|line| station.lines.iter().any(|known| *known == line.name || *known == line.id))
}
