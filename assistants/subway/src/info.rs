//! `get_station_info` and `find_stations_on_line`.

use serde::Serialize;
use threadkeep_transit::{Place, Station};

use crate::place::{Assumption, QueryError, StationView, find};
use crate::subway::find_lines;
use crate::system::network;

/// The answer of `get_station_info`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StationInfo {
    /// The station, or the stations of its complex.
    pub station: StationView,
    /// The stations of the complex, one for each set of tracks.
    pub parts: Vec<StationPart>,
    /// The assumption made about the station name, if any.
    pub assumption: Option<Assumption>,
}

/// One station of a complex.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StationPart {
    /// The GTFS id of the station.
    pub stop_id: String,
    /// The name on its signs.
    pub name: String,
    /// The lines that stop here during the day.
    pub lines: Vec<String>,
    /// Which platforms a wheelchair can reach.
    pub accessibility: Accessibility,
    /// The names of the directions on the signs.
    pub directions: Vec<String>,
    /// Latitude in degrees north.
    pub latitude: f64,
    /// Longitude in degrees east.
    pub longitude: f64,
}

/// Which platforms of a station a wheelchair can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "platforms", rename_all = "snake_case")]
pub enum Accessibility {
    /// All platforms.
    All,
    /// No platform.
    None,
    /// Only the platforms of one direction.
    Only {
        /// The name of the direction on the signs.
        towards: String,
    },
}

/// The answer of `find_stations_on_line`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineStations {
    /// The line's name as passengers see it.
    pub line: String,
    /// One list of stations for most lines; one per shuttle for S.
    pub ways: Vec<Vec<StationView>>,
}

/// `get_station_info(station)`: lines, accessibility and directions of a station.
///
/// # Errors
/// [`QueryError`] if the station is unknown or ambiguous.
pub fn get_station_info(station: &str) -> Result<StationInfo, QueryError> {
    let found = find(station, &[])?;
    let stations = found.place.stations.iter().filter_map(|id| network().find_station(id));
    let parts = stations.map(part_of).collect();
    Ok(StationInfo { station: found.view(), parts, assumption: found.assumption })
}

fn part_of(station: &Station) -> StationPart {
    let accessibility = match station.accessible.as_slice() {
        [] => Accessibility::None,
        [way] if station.towards.len() > 1 => {
            Accessibility::Only { towards: crate::place::direction_at(&station.id, way) }
        }
        _ => Accessibility::All,
    };
    StationPart {
        stop_id: station.id.clone(),
        name: station.name.clone(),
        lines: station.lines.clone(),
        accessibility,
        directions: station.towards.iter().map(|(_, name)| name.clone()).collect(),
        latitude: station.latitude,
        longitude: station.longitude,
    }
}

/// `find_stations_on_line(line)`: the stations of a line in the order of travel, with branches where they diverge.
///
/// # Errors
/// [`QueryError::UnknownLine`].
pub fn find_stations_on_line(line: &str) -> Result<LineStations, QueryError> {
    let lines = find_lines(line)?;
    let sign = lines[0].name.clone();
    // Express variants stop only at stations of their line.
    let own = lines.iter().filter(|line| line.id == sign || !line.id.ends_with('X'));
    let view = |station: &&Station| {
        let place = Place { complex: station.complex.clone(), stations: vec![station.id.clone()] };
        crate::place::view_of(&place)
    };
    let ways = own.map(|line| network().stations_on(&line.id).iter().map(view).collect()).collect();
    Ok(LineStations { line: sign, ways })
}
