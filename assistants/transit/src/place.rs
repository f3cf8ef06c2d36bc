//! Stations in answers, and errors of queries.

use serde::Serialize;

use crate::{Network, Place};

/// A place in an answer: a station, or the stations of a complex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StationView {
    /// The name on the signs.
    pub name: String,
    /// The lines that stop here during the day.
    pub lines: Vec<String>,
    /// The borough or zone.
    pub area: String,
    /// The ids of its stations.
    pub stop_ids: Vec<String>,
}

/// An ambiguous name that was resolved to its usual meaning. Answers state the assumption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// The name in the user's words.
    pub said: String,
    /// The station that the name was taken to mean.
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
    #[error("there is no line {line}")]
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
    #[error("there is no route from {from} to {to}{conditions}")]
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
    let one = |view: &StationView| format!("{} ({}, {})", view.name, view.lines.join(" "), view.area);
    choices.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The place that a name resolved to, and the assumption made.
#[derive(Debug, Clone)]
pub struct StationMatch {
    /// The place.
    pub place: Place,
    /// The assumption made about the name, if any.
    pub assumption: Option<Assumption>,
    /// The place in answers.
    pub(crate) view: StationView,
}

impl StationMatch {
    /// Returns the place as it appears in answers.
    #[must_use]
    pub fn view(&self) -> StationView {
        self.view.clone()
    }

    /// Returns the ids of the stations.
    #[must_use]
    pub fn ids(&self) -> Vec<&str> {
        self.place.stations.iter().map(String::as_str).collect()
    }

    /// Returns the station of the place at which a line stops.
    #[must_use]
    pub fn station_on(&self, line: &str, network: &Network) -> Option<&str> {
        self.ids().into_iter().find(|id| network.calls_at(line, id))
    }
}
