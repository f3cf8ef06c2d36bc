//! Stations in answers, and errors of queries.

use serde::Serialize;
use threadkeep_transit::{Place, Resolution, Station};

use crate::system::{names, network};

/// A place in an answer: a station, or the stations of a complex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StationView {
    /// The name on the signs.
    pub name: String,
    /// The lines that stop here during the day.
    pub lines: Vec<String>,
    /// The borough.
    pub borough: &'static str,
    /// The GTFS ids of its stations.
    pub stop_ids: Vec<String>,
}

/// An ambiguous name that was resolved to its usual meaning. Answers state the assumption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// The name in the user's words.
    pub said: String,
    /// The place that was assumed.
    pub taken: StationView,
    /// The other places with this name.
    pub others: Vec<StationView>,
}

/// Why a query has no answer. Each variant can be explained to the user, or resolved by asking them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "problem", rename_all = "snake_case")]
#[non_exhaustive]
pub enum QueryError {
    /// No station matches the name.
    #[error("unknown station {name:?}")]
    UnknownStation {
        /// The name in the user's words.
        name: String,
    },
    /// Several stations match the name.
    #[error("ambiguous station {name:?}; it can be any of {}", listed(choices))]
    WhichStation {
        /// The name in the user's words.
        name: String,
        /// The matching stations.
        choices: Vec<StationView>,
    },
    /// The line does not stop at the station.
    #[error("the {} does not stop at {}", lines.join("/"), listed(choices))]
    NotOnLine {
        /// The lines.
        lines: Vec<String>,
        /// The name in the user's words.
        name: String,
        /// The stations that match the name.
        choices: Vec<StationView>,
    },
    /// No line has the name.
    #[error("there is no {line} train")]
    UnknownLine {
        /// The name in the user's words.
        line: String,
    },
    /// The direction matches no sign, or trains go there in both directions.
    #[error("unknown direction {direction:?}; the signs say {}", signs.join(", "))]
    UnknownDirection {
        /// The direction in the user's words.
        direction: String,
        /// The directions on the station's signs.
        signs: Vec<String>,
    },
    /// Origin and destination are the same place.
    #[error("origin and destination are the same station: {}", station.name)]
    SameStation {
        /// The station.
        station: Box<StationView>,
    },
    /// The transfer is not a stop between origin and destination.
    #[error("{transfer} is not on the way from {from} to {to}")]
    NotOnTheWay {
        /// Where to change.
        transfer: String,
        /// The origin's name.
        from: String,
        /// The destination's name.
        to: String,
    },
    /// No route connects the stations.
    #[error("there is no subway route from {from} to {to}{conditions}")]
    NoRoute {
        /// The conditions that it would have to meet, such as ` that avoids the Q`; empty if there are none.
        conditions: String,
        /// The origin's name.
        from: String,
        /// The destination's name.
        to: String,
    },
}

fn listed(choices: &[StationView]) -> String {
    let one = |view: &StationView| format!("{} ({}, {})", view.name, view.lines.join(" "), view.borough);
    choices.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The place that a name resolved to, and the assumption made.
#[derive(Debug, Clone)]
pub(crate) struct StationMatch {
    pub(crate) place: Place,
    pub(crate) assumption: Option<Assumption>,
}

impl StationMatch {
    pub(crate) fn view(&self) -> StationView {
        view_of(&self.place)
    }

    pub(crate) fn ids(&self) -> Vec<&str> {
        self.place.stations.iter().map(String::as_str).collect()
    }

    /// Returns the station of the place at which a line stops.
    pub(crate) fn station_on(&self, line: &str) -> Option<&str> {
        self.ids().into_iter().find(|id| network().calls_at(line, id))
    }
}

/// Resolves a name to a place. Prefers places on `lines`, if any are given.
pub(crate) fn find(name: &str, lines: &[&str]) -> Result<StationMatch, QueryError> {
    let trimmed = || name.trim().to_owned();
    let views = |places: &[Place]| places.iter().map(view_of).collect::<Vec<_>>();
    match names().resolve_on(name, lines) {
        Resolution::Certain(place) => Ok(StationMatch { place, assumption: None }),
        Resolution::Assumed { taken, others } => {
            let assumption = Assumption { said: trimmed(), taken: view_of(&taken), others: views(&others) };
            Ok(StationMatch { place: taken, assumption: Some(assumption) })
        }
        Resolution::Several(places) => Err(QueryError::WhichStation { name: trimmed(), choices: views(&places) }),
        Resolution::NotOnLine { lines, places } => {
            Err(QueryError::NotOnLine { lines, name: trimmed(), choices: views(&places) })
        }
        Resolution::Unknown => Err(QueryError::UnknownStation { name: trimmed() }),
    }
}

pub(crate) fn view_of(place: &Place) -> StationView {
    let stations: Vec<&Station> = place.stations.iter().filter_map(|id| network().find_station(id)).collect();
    let mut lines: Vec<String> = Vec::new();
    for line in stations.iter().flat_map(|station| &station.lines) {
        if !lines.contains(line) {
            lines.push(line.clone());
        }
    }
    let first = stations.first();
    StationView {
        name: first.map(|station| station.name.clone()).unwrap_or_default(),
        lines,
        borough: first.map_or("", |station| borough(&station.area)),
        stop_ids: place.stations.clone(),
    }
}

fn borough(code: &str) -> &'static str {
    match code {
        "M" => "Manhattan",
        "Bk" => "Brooklyn",
        "Bx" => "the Bronx",
        "Q" => "Queens",
        "SI" => "Staten Island",
        _ => "New York",
    }
}

pub(crate) fn name_of(id: &str) -> String {
    network().find_station(id).map_or_else(|| id.to_owned(), |station| station.name.clone())
}

/// Returns the name of a direction on the station's signs, such as "Uptown" or "Manhattan".
pub(crate) fn direction_at(id: &str, way: &str) -> String {
    let towards = network().find_station(id).map(|station| station.towards.as_slice()).unwrap_or_default();
    let named = towards.iter().find(|(suffix, _)| suffix == way).map(|(_, name)| name.clone());
    named.unwrap_or_else(|| if way == "N" { "northbound".to_owned() } else { "southbound".to_owned() })
}
