//! Stations as answers name them, and what cannot be answered.

use serde::Serialize;
use threadkeep_transit::{Place, Resolution, Station};

use crate::system::{names, network};

/// A place as an answer names it: a station, or those of a complex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StationView {
    /// The name on the signs.
    pub name: String,
    /// The lines that call here by day.
    pub lines: Vec<String>,
    /// The borough.
    pub borough: &'static str,
    /// GTFS ids of its stations.
    pub stop_ids: Vec<String>,
}

/// A name that was taken for one of several places; an answer has to say so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// What was said.
    pub said: String,
    /// What it was taken for.
    pub taken: StationView,
    /// What else it may mean.
    pub others: Vec<StationView>,
}

/// Why a question has no answer. Each is something to tell or to ask the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "problem", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trouble {
    /// There is no such station.
    #[error("no station is called {name:?}")]
    UnknownStation {
        /// What was said.
        name: String,
    },
    /// The name fits several stations.
    #[error("{name:?} may be any of {}", listed(choices))]
    WhichStation {
        /// What was said.
        name: String,
        /// What it may mean.
        choices: Vec<StationView>,
    },
    /// The line does not call at the station.
    #[error("the {} does not stop at {}", lines.join("/"), listed(choices))]
    NotOnLine {
        /// The line or lines.
        lines: Vec<String>,
        /// What was said.
        name: String,
        /// The stations of that name.
        choices: Vec<StationView>,
    },
    /// There is no such line.
    #[error("there is no {line} train")]
    UnknownLine {
        /// What was said.
        line: String,
    },
    /// Origin and destination are one place.
    #[error("that is the same station: {}", station.name)]
    SameStation {
        /// The place.
        station: Box<StationView>,
    },
    /// A change that is no stop between the two.
    #[error("{transfer} is not on the way from {from} to {to}")]
    NotOnTheWay {
        /// Where to change.
        transfer: String,
        /// The origin's name.
        from: String,
        /// The destination's name.
        to: String,
    },
    /// No way leads there.
    #[error("there is no way from {from} to {to} by subway")]
    NoRoute {
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

/// A place that was found, and what was assumed in finding it.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) place: Place,
    pub(crate) assumption: Option<Assumption>,
}

impl Found {
    pub(crate) fn view(&self) -> StationView {
        view_of(&self.place)
    }

    pub(crate) fn ids(&self) -> Vec<&str> {
        self.place.stations.iter().map(String::as_str).collect()
    }

    /// The station of the place that a line calls at.
    pub(crate) fn station_on(&self, line: &str) -> Option<&str> {
        self.ids().into_iter().find(|id| network().calls_at(line, id))
    }
}

/// The place that a name means; with lines named, one of theirs if there is one.
pub(crate) fn find(name: &str, lines: &[&str]) -> Result<Found, Trouble> {
    let said = || name.trim().to_owned();
    let views = |places: &[Place]| places.iter().map(view_of).collect::<Vec<_>>();
    match names().resolve_on(name, lines) {
        Resolution::Certain(place) => Ok(Found { place, assumption: None }),
        Resolution::Assumed { taken, others } => {
            let assumption = Assumption { said: said(), taken: view_of(&taken), others: views(&others) };
            Ok(Found { place: taken, assumption: Some(assumption) })
        }
        Resolution::Several(places) => Err(Trouble::WhichStation { name: said(), choices: views(&places) }),
        Resolution::NotOnLine { lines, places } => {
            Err(Trouble::NotOnLine { lines, name: said(), choices: views(&places) })
        }
        Resolution::Unknown => Err(Trouble::UnknownStation { name: said() }),
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

/// What the signs of a station call a direction, such as "Uptown" or "Manhattan".
pub(crate) fn direction_at(id: &str, way: &str) -> String {
    let towards = network().find_station(id).map(|station| station.towards.as_slice()).unwrap_or_default();
    let named = towards.iter().find(|(suffix, _)| suffix == way).map(|(_, name)| name.clone());
    named.unwrap_or_else(|| if way == "N" { "northbound".to_owned() } else { "southbound".to_owned() })
}
