//! `get_station_info` and `find_stations_on_line`.

use serde::Serialize;
use threadkeep_transit::{Place, Station};

use crate::place::{Assumption, StationView, Trouble, find};
use crate::subway::lines_called;
use crate::system::network;

/// The answer of `get_station_info`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StationInfo {
    /// The place.
    pub station: StationView,
    /// Its stations: one for each line of tracks.
    pub parts: Vec<StationPart>,
    /// What was assumed about the station.
    pub assumption: Option<Assumption>,
}

/// One station of a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StationPart {
    /// Its GTFS id.
    pub stop_id: String,
    /// The name on its signs.
    pub name: String,
    /// The lines that call here by day.
    pub lines: Vec<String>,
    /// Whether a wheelchair can reach all platforms, none, or those of one direction.
    pub accessibility: Accessibility,
    /// What the signs call the two directions.
    pub directions: Vec<String>,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

/// Which platforms of a station a wheelchair can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "platforms", rename_all = "snake_case")]
pub enum Accessibility {
    /// All.
    All,
    /// None.
    None,
    /// Only those towards this direction.
    Only {
        /// The direction, as the signs call it.
        towards: String,
    },
}

/// The answer of `find_stations_on_line`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineStations {
    /// The line as the signs write it.
    pub line: String,
    /// Its ways: one for most lines, one for each shuttle that is called S.
    pub ways: Vec<Vec<StationView>>,
}

/// `get_station_info(station)`: lines, accessibility and directions of a station.
///
/// # Errors
/// [`Trouble`], where the station is unknown or unclear.
pub fn get_station_info(station: &str) -> Result<StationInfo, Trouble> {
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

/// `find_stations_on_line(line)`: the stations in the order of travel, branches in between.
///
/// # Errors
/// [`Trouble::UnknownLine`].
pub fn find_stations_on_line(line: &str) -> Result<LineStations, Trouble> {
    let lines = lines_called(line)?;
    let sign = lines[0].name.clone();
    // An express variant calls only where its line does.
    let own = lines.iter().filter(|line| line.id == sign || !line.id.ends_with('X'));
    let view = |station: &&Station| {
        let place = Place { complex: station.complex.clone(), stations: vec![station.id.clone()] };
        crate::place::view_of(&place)
    };
    let ways = own.map(|line| network().stations_on(&line.id).iter().map(view).collect()).collect();
    Ok(LineStations { line: sign, ways })
}
