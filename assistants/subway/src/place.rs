//! Stations in answers.

pub use threadkeep_transit::{Assumption, QueryError, StationView};
use threadkeep_transit::{Place, StationMatch};

use crate::system::{SUBWAY, network};

/// Resolves a name to a place. Prefers places on `lines`, if any are given.
pub(crate) fn find(name: &str, lines: &[&str]) -> Result<StationMatch, QueryError> {
    SUBWAY.find(name, lines)
}

pub(crate) fn view_of(place: &Place) -> StationView {
    SUBWAY.view_of(place)
}

pub(crate) fn name_of(id: &str) -> String {
    SUBWAY.station_name(id)
}

/// Returns the name of a direction on the station's signs, such as "Uptown" or "Manhattan".
pub(crate) fn direction_at(id: &str, way: &str) -> String {
    let towards = network().find_station(id).map(|station| station.towards.as_slice()).unwrap_or_default();
    let named = towards.iter().find(|(suffix, _)| suffix == way).map(|(_, name)| name.clone());
    named.unwrap_or_else(|| if way == "N" { "northbound".to_owned() } else { "southbound".to_owned() })
}
