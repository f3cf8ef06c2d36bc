//! `get_next_trains`: the next trains at a station.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::Serialize;
use threadkeep_transit::{Assumption, QueryError, StationView};

use crate::lines::LineInfo;
use crate::network::{LONDON, network};
use crate::tfl::Prediction;
use crate::underground::{Underground, clean_name};

/// Maximum number of trains in an answer.
const MAX_TRAINS: usize = 40;

/// The next trains at a station.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArrivalsAnswer {
    /// The station.
    pub station: StationView,
    /// The id of the line, if one was asked for.
    pub line: Option<String>,
    /// The direction in the user's words, if one was asked for.
    pub towards: Option<String>,
    /// The trains, soonest first.
    pub trains: Vec<Train>,
    /// Whether TfL could be reached.
    pub is_live: bool,
    /// The assumption made about the station's name, if any.
    pub assumption: Option<Assumption>,
}

/// An announced train.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Train {
    /// The name of the line.
    pub line: String,
    /// The last station.
    pub destination: String,
    /// The route shown on the train, if it shows more than the destination.
    pub via: Option<String>,
    /// The platform.
    pub platform: String,
    /// Whole minutes from now, rounded down.
    pub minutes: i64,
    /// The local time.
    pub clock: String,
}

impl Underground {
    /// Returns the next trains at a station, restricted to one line and one direction if they are given. A direction is a word
    /// such as "northbound", or a station.
    ///
    /// # Errors
    /// [`QueryError`] if the station is unknown or ambiguous, the line does not stop there, or the direction is unknown.
    pub async fn arrivals(
        &self,
        station: &str,
        line: Option<&'static LineInfo>,
        towards: Option<&str>,
        now: Timestamp,
    ) -> Result<ArrivalsAnswer, QueryError> {
        let lines: Vec<&str> = line.iter().map(|line| line.id).collect();
        let found = LONDON.find(station, &lines)?;
        let is_served = |id: &&str| line.is_none_or(|line| network().calls_at(line.id, id));
        let stops: Vec<&str> = found.ids().into_iter().filter(is_served).collect();
        let ways = towards.map_or(Ok(Vec::new()), |towards| Way::parse_all(towards, line))?;
        let mut predictions: Vec<(&str, Prediction)> = Vec::new();
        let mut answered = false;
        for stop in &stops {
            if let Ok(trains) = self.tfl.arrivals(stop, now).await {
                answered = true;
                predictions.extend(trains.into_iter().map(|train| (*stop, train)));
            }
        }
        predictions.retain(|(_, train)| line.is_none_or(|line| line.id == train.line_id));
        // Some platforms, as those of the Waterloo & City line, have no direction. If all trains end at one station, there is none to choose.
        let has_compass = |train: &Prediction| train.platform_name.to_lowercase().contains("bound");
        let ends: HashSet<&Option<String>> = predictions.iter().map(|(_, train)| &train.destination_name).collect();
        let is_one_way = line.is_some() && ends.len() == 1 && !predictions.iter().any(|(_, train)| has_compass(train));
        predictions.retain(|(stop, train)| {
            ways.iter().all(|way| is_one_way && matches!(way, Way::Compass(_)) || way.is_way_of(stop, train))
        });
        predictions.sort_by_key(|(_, train)| train.time_to_station);
        predictions.truncate(MAX_TRAINS);
        Ok(ArrivalsAnswer {
            station: found.view(),
            line: line.map(|line| line.id.to_owned()),
            towards: towards.map(str::to_owned),
            trains: predictions.iter().map(|(_, train)| train_of(train, now)).collect(),
            is_live: answered,
            assumption: found.assumption,
        })
    }
}

fn train_of(train: &Prediction, now: Timestamp) -> Train {
    let destination = train.destination_name.as_deref().or(train.towards.as_deref()).map(clean_name);
    let via = train.towards.as_deref().and_then(|towards| towards.split_once(" via ")).map(|(_, via)| match via {
        "CX" => "Charing Cross".to_owned(),
        other => other.to_owned(),
    });
    let at = now + jiff::SignedDuration::from_secs(train.time_to_station);
    Train {
        line: LONDON.line_name(&train.line_id),
        destination: destination.unwrap_or_else(|| "check the front of the train".to_owned()),
        via,
        platform: train.platform_name.clone(),
        minutes: train.time_to_station / 60,
        clock: LONDON.clock(at),
    }
}

/// A direction of travel.
enum Way {
    /// A word on platforms, such as "northbound".
    Compass(&'static str),
    /// Towards a place, given by the ids of its stations.
    To(Vec<String>),
    /// The opposite of the direction to these stations.
    AwayFrom(Vec<String>),
}

impl Way {
    /// Parses a direction, and the branch after "via" if there is one: "southbound via Bank".
    fn parse_all(text: &str, line: Option<&LineInfo>) -> Result<Vec<Self>, QueryError> {
        let (way, via) = match text.strip_prefix("via ") {
            Some(via) => ("", Some(via)),
            None => text.split_once(" via ").map_or((text, None), |(way, via)| (way, Some(via))),
        };
        let parts = [way].into_iter().chain(via).filter(|part| !part.is_empty());
        parts.map(|part| Self::parse(part, line)).collect()
    }

    fn parse(text: &str, line: Option<&LineInfo>) -> Result<Self, QueryError> {
        let lower = text.to_lowercase();
        for word in ["northbound", "southbound", "eastbound", "westbound"] {
            if lower.contains(word) || lower.contains(word.trim_end_matches("bound")) && lower.len() <= word.len() {
                return Ok(Self::Compass(word));
            }
        }
        if let Some(station) = text.strip_prefix("away from ") {
            let Self::To(stations) = Self::parse(station, line)? else {
                return Err(QueryError::UnknownStation { name: station.to_owned() });
            };
            return Ok(Self::AwayFrom(stations));
        }
        let lines: Vec<&str> = line.iter().map(|line| line.id).collect();
        let found = LONDON.find(text, &lines).or_else(|_| LONDON.find(text, &[]))?;
        Ok(Self::To(found.place.stations))
    }

    /// Whether a train at a stop goes this way.
    fn is_way_of(&self, stop: &str, train: &Prediction) -> bool {
        match self {
            Self::Compass(word) => train.platform_name.to_lowercase().contains(word),
            Self::To(stations) => stations.iter().any(|station| goes_to(stop, station, train)),
            Self::AwayFrom(stations) => stations.iter().any(|station| goes_away_from(stop, station, train)),
        }
    }
}

/// Whether a train goes in the opposite direction to the trains of its line that go to a station.
fn goes_away_from(stop: &str, station: &str, train: &Prediction) -> bool {
    let destination =
        train.destination_name.as_deref().or(train.towards.as_deref()).map(clean_name).unwrap_or_default();
    let Some(there) = network().ride(&train.line_id, stop, station) else { return false };
    let mut ends = network().stations().iter().filter(|known| known.name == destination);
    ends.any(|end| network().ride(&train.line_id, stop, &end.id).is_some_and(|ride| ride.way != there.way))
}

/// Whether a train stops at a station after the given stop. On the Northern line, the branch shown on the train decides.
fn goes_to(stop: &str, station: &str, train: &Prediction) -> bool {
    let destination =
        train.destination_name.as_deref().or(train.towards.as_deref()).map(clean_name).unwrap_or_default();
    let via = train.towards.as_deref().and_then(|towards| towards.split_once(" via ")).map(|(_, via)| via);
    calls_at(&AnnouncedTrain { line: &train.line_id, stop, destination: &destination, via }, station)
}

/// A train, by what the board says about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnnouncedTrain<'a> {
    /// The id of the line.
    pub(crate) line: &'a str,
    /// The id of the station of the board.
    pub(crate) stop: &'a str,
    /// The name of the last station.
    pub(crate) destination: &'a str,
    /// The branch that the train shows, if any.
    pub(crate) via: Option<&'a str>,
}

/// Whether a train stops at a station, given by its id, after the station of the board.
pub(crate) fn calls_at(train: &AnnouncedTrain<'_>, station: &str) -> bool {
    let Some(target) = LONDON.station(station) else { return false };
    if target.name == train.destination {
        return true;
    }
    let ends = network().stations().iter().filter(|known| known.name == train.destination);
    let passes = ends.filter_map(|end| {
        let ride = network().ride(train.line, train.stop, station)?;
        network().ride(train.line, station, &end.id).filter(|rest| rest.way == ride.way)
    });
    let is_on_branch = match train.via {
        Some(via) if train.line == "northern" => {
            let via_bank = via.starts_with("Bank");
            let of_bank =
                ["BNK", "ODS", "MGT", "AGL", "KSX", "LNB", "BOR", "EAC"].iter().any(|code| station.ends_with(code));
            let of_charing_cross =
                ["CHX", "LSQ", "TCR", "GDG", "WRR", "MTC", "EMB", "WLO"].iter().any(|code| station.ends_with(code));
            (via_bank || !of_bank) && (!via_bank || !of_charing_cross)
        }
        _ => true,
    };
    is_on_branch && passes.count() > 0
}
