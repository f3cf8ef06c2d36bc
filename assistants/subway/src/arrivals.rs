//! `get_train_arrivals`: the departure board of a station.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use threadkeep_transit::{Arrival, Station};

use crate::direction::{heading_of, lines_towards};
use crate::live::LiveSnapshot;
use crate::place::{Assumption, QueryError, StationView, direction_at, find, name_of, view_of as view_of_place};
use crate::subway::{Subway, find_lines, line_name_of};
use crate::system::network;
use crate::travel::new_york;

/// Maximum number of trains in an answer.
const MAX_TRAINS: usize = 30;

/// An expected stop of a train at a station.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrainArrival {
    /// The line's name as passengers see it.
    pub line: String,
    /// The line's id in the feed, which also distinguishes express variants, such as 6X from 6.
    pub route_id: String,
    /// The heading of the train, N or S, as GTFS platform ids encode it.
    pub direction: String,
    /// The name of the direction on the station's signs.
    pub towards: String,
    /// The last station of the train's trip.
    pub destination: String,
    /// The platform's id.
    pub stop_id: String,
    /// Whole minutes from now, rounded down.
    pub minutes_until: i64,
    /// The arrival time in New York, such as `18:52`.
    pub clock: String,
    /// The arrival time in Unix seconds.
    pub at: i64,
    /// Whether a train has been assigned to the trip; otherwise the trip is only planned.
    pub is_assigned: bool,
    /// Whether the train has not moved for more than 90 seconds.
    pub is_stalled: bool,
    /// Whether the train was moved to another track and might not stop here.
    pub is_rerouted: bool,
}

/// For which of the requested lines live times are available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum LiveStatus {
    /// All requested lines.
    Available,
    /// Some lines.
    #[serde(rename = "partly")]
    Partial {
        /// The lines without live times.
        unavailable: Vec<String>,
    },
    /// No line.
    Unavailable,
}

/// The answer of `get_train_arrivals`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArrivalsAnswer {
    /// The station, or all stations of its complex.
    pub station: StationView,
    /// The requested line, if any.
    pub line: Option<String>,
    /// The requested direction in the user's words, if any. All trains in the answer go in this direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<String>,
    /// The station to which the trains go, if the direction is one. The answer has no trains of lines that do not go there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The trains, soonest first.
    pub arrivals: Vec<TrainArrival>,
    /// Whether live times are available for the requested lines.
    pub live: LiveStatus,
    /// The assumption made about the station name, if any.
    pub assumption: Option<Assumption>,
}

impl Subway {
    /// `get_train_arrivals(station_name, line?)`: the next trains at a station.
    ///
    /// # Errors
    /// [`QueryError`] if the station or line is unknown or ambiguous, or the line does not stop at the station.
    pub async fn get_train_arrivals(
        &self,
        station_name: &str,
        line: Option<&str>,
        now: Timestamp,
    ) -> Result<ArrivalsAnswer, QueryError> {
        self.get_train_arrivals_towards(station_name, line, None, now).await
    }

    /// Like [`get_train_arrivals`](Self::get_train_arrivals), but only in one direction, such as "uptown" or "toward Manhattan".
    ///
    /// # Errors
    /// Those of [`get_train_arrivals`](Self::get_train_arrivals), and [`QueryError::UnknownDirection`].
    pub async fn get_train_arrivals_towards(
        &self,
        station_name: &str,
        line: Option<&str>,
        direction: Option<&str>,
        now: Timestamp,
    ) -> Result<ArrivalsAnswer, QueryError> {
        let line = line.map(str::trim).filter(|line| !line.is_empty());
        let line_name = line.map(find_lines).transpose()?.map(|lines| lines[0].name.clone());
        let line_names: Vec<&str> = line_name.iter().map(String::as_str).collect();
        let found = match find(station_name, &line_names) {
            Err(error) => return self.off_hours_arrivals(error, direction, now).await,
            Ok(found) => found,
        };
        let heading = direction.map(|direction| heading_of(direction, &found.ids(), &line_names)).transpose()?;
        let (mut arrivals, live) = self.get_arrivals(&found.ids(), &line_names, now).await;
        // For a line that does not go there, the station only sets the direction.
        let goes = |lines: &BTreeSet<String>| line_name.as_ref().is_none_or(|line| lines.contains(line));
        let goal = direction.and_then(|direction| lines_towards(direction, &found.ids()));
        let goal = goal.filter(|(_, lines)| goes(lines));
        arrivals.retain(|train| heading.as_ref().is_none_or(|heading| train.direction == *heading));
        arrivals.retain(|train| goal.as_ref().is_none_or(|(_, lines)| lines.contains(&train.line)));
        arrivals.truncate(MAX_TRAINS);
        let direction = direction.map(str::to_owned);
        Ok(ArrivalsAnswer {
            station: found.view(),
            line: line_name,
            direction,
            to: goal.map(|(place, _)| view_of_place(&place).name),
            arrivals,
            live,
            assumption: found.assumption,
        })
    }

    /// Returns the trains of a line at a station where it does not stop during the day: late at night, expresses run as
    /// locals. `error` is the failed lookup; it is returned unchanged if no train is announced.
    async fn off_hours_arrivals(
        &self,
        error: QueryError,
        direction: Option<&str>,
        now: Timestamp,
    ) -> Result<ArrivalsAnswer, QueryError> {
        let QueryError::NotOnLine { lines, choices, .. } = &error else { return Err(error) };
        let [station] = choices.as_slice() else { return Err(error) };
        let ids: Vec<&str> = station.stop_ids.iter().map(String::as_str).collect();
        let line_names: Vec<&str> = lines.iter().map(String::as_str).collect();
        let heading = direction.map(|direction| heading_of(direction, &ids, &line_names)).transpose()?;
        let (mut arrivals, live) = self.get_arrivals(&ids, &line_names, now).await;
        arrivals.retain(|train| heading.as_ref().is_none_or(|heading| train.direction == *heading));
        if arrivals.is_empty() {
            return Err(error);
        }
        arrivals.truncate(MAX_TRAINS);
        let line = Some(lines.join("/"));
        let direction = direction.map(str::to_owned);
        Ok(ArrivalsAnswer { station: station.clone(), line, direction, to: None, arrivals, live, assumption: None })
    }

    /// Returns the next trains of `lines` (all lines if empty) at the stations with the given ids, soonest first.
    pub async fn get_arrivals(
        &self,
        stations: &[&str],
        lines: &[&str],
        now: Timestamp,
    ) -> (Vec<TrainArrival>, LiveStatus) {
        let routes = routes_at(stations, lines);
        let snapshot = self.live.snapshot(&routes, now).await;
        (arrivals_in(&snapshot, stations, lines, now), status_of(&snapshot, &routes))
    }
}

/// Returns the ids of the requested lines (all if `lines` is empty) that stop at the stations.
pub(crate) fn routes_at(stations: &[&str], lines: &[&str]) -> Vec<&'static str> {
    let known_stations: Vec<&Station> = stations.iter().filter_map(|id| network().find_station(id)).collect();
    let stops_here = |name: &str| known_stations.iter().any(|station| station.lines.iter().any(|line| line == name));
    let is_requested = |name: &str| if lines.is_empty() { stops_here(name) } else { lines.contains(&name) };
    let requested = network().lines().iter().filter(|line| is_requested(&line.name));
    let here = requested.clone().filter(|line| stations.iter().any(|id| network().calls_at(&line.id, id)));
    let here: Vec<&str> = here.map(|line| line.id.as_str()).collect();
    // A requested line that does not stop here during the day may do so now.
    if here.is_empty() { requested.map(|line| line.id.as_str()).collect() } else { here }
}

/// Returns the trains of a snapshot at the given stations, soonest first. Removes duplicates: feeds may repeat planned trips.
pub(crate) fn arrivals_in(
    snapshot: &LiveSnapshot,
    stations: &[&str],
    lines: &[&str],
    now: Timestamp,
) -> Vec<TrainArrival> {
    let is_here = |platform: &str| platform.len() > 1 && stations.contains(&&platform[..platform.len() - 1]);
    let all = snapshot.feeds.iter().flat_map(|feed| feed.arrivals(is_here, now));
    let mut seen = BTreeSet::new();
    let mut arrivals: Vec<TrainArrival> = all
        .filter(|arrival| seen.insert((arrival.trip.clone(), arrival.platform.clone(), arrival.at)))
        .map(|arrival| view_of(&arrival, now))
        .filter(|arrival| lines.is_empty() || lines.contains(&arrival.line.as_str()))
        .collect();
    arrivals.sort_by(|one, other| (one.at, &one.stop_id, &one.line).cmp(&(other.at, &other.stop_id, &other.line)));
    arrivals
}

pub(crate) fn status_of(snapshot: &LiveSnapshot, routes: &[&str]) -> LiveStatus {
    let mut unavailable: Vec<String> = snapshot.unavailable.iter().map(|route| line_name_of(route)).collect();
    unavailable.dedup();
    match unavailable.len() {
        0 => LiveStatus::Available,
        _ if snapshot.unavailable.len() >= routes.len() => LiveStatus::Unavailable,
        _ => LiveStatus::Partial { unavailable },
    }
}

fn view_of(arrival: &Arrival, now: Timestamp) -> TrainArrival {
    let (station, heading) = arrival.platform.split_at(arrival.platform.len() - 1);
    let last = arrival.last_platform.get(..arrival.last_platform.len().saturating_sub(1)).unwrap_or_default();
    TrainArrival {
        line: line_name_of(&arrival.route),
        route_id: arrival.route.clone(),
        direction: heading.to_owned(),
        towards: direction_at(station, heading),
        destination: name_of(last),
        stop_id: arrival.platform.clone(),
        minutes_until: arrival.at.duration_since(now).as_secs() / 60,
        clock: clock(arrival.at),
        at: arrival.at.as_second(),
        is_assigned: arrival.is_assigned,
        is_stalled: arrival.is_stalled,
        is_rerouted: arrival.is_rerouted,
    }
}

/// Formats an instant as local time in New York, such as `18:52`.
pub(crate) fn clock(at: Timestamp) -> String {
    at.to_zoned(new_york()).strftime("%H:%M").to_string()
}
