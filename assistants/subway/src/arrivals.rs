//! `get_train_arrivals`: what a departure board shows.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use threadkeep_transit::{Arrival, Station};

use crate::live::LivePicture;
use crate::place::{Assumption, StationView, Trouble, direction_at, find, name_of};
use crate::subway::{Subway, lines_called, sign_of};
use crate::system::network;
use crate::travel::new_york;

/// Trains that an answer has at most.
const SHOWN: usize = 30;

/// A train that is about to call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrainArrival {
    /// The line as the signs write it.
    pub line: String,
    /// The line's id in the feed, which tells an express variant from its line.
    pub route_id: String,
    /// N or S: the railway's direction.
    pub direction: String,
    /// What the signs of the station call the direction.
    pub towards: String,
    /// The last station of the train.
    pub destination: String,
    /// The platform's id.
    pub stop_id: String,
    /// Whole minutes from now, rounded down.
    pub minutes_until: i64,
    /// The time on the clock.
    pub clock: String,
    /// Unix seconds.
    pub at: i64,
    /// Whether a train is on its way; otherwise the trip is only planned.
    pub is_assigned: bool,
    /// Whether the train has not moved for more than 90 seconds.
    pub is_stalled: bool,
    /// Whether the train was put on another track, so that it may not call.
    pub is_rerouted: bool,
}

/// Whether live times could be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum LiveStatus {
    /// For all lines.
    Available,
    /// For some lines; nothing is known of the others.
    Partly {
        /// The lines without live times.
        unavailable: Vec<String>,
    },
    /// For none: live times unavailable.
    Unavailable,
}

/// The answer of `get_train_arrivals`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArrivalsAnswer {
    /// The station, or all of its complex.
    pub station: StationView,
    /// The line that was asked for.
    pub line: Option<String>,
    /// Trains, soonest first.
    pub arrivals: Vec<TrainArrival>,
    /// Whether live times could be had.
    pub live: LiveStatus,
    /// What was assumed about the station.
    pub assumption: Option<Assumption>,
}

impl Subway {
    /// `get_train_arrivals(station_name, line?)`: the trains that call next.
    ///
    /// # Errors
    /// [`Trouble`], where the station or the line is unknown, unclear, or do not go together.
    pub async fn get_train_arrivals(
        &self,
        station_name: &str,
        line: Option<&str>,
        now: Timestamp,
    ) -> Result<ArrivalsAnswer, Trouble> {
        let line = line.map(str::trim).filter(|line| !line.is_empty());
        let sign = line.map(lines_called).transpose()?.map(|lines| lines[0].name.clone());
        let signs: Vec<&str> = sign.iter().map(String::as_str).collect();
        let found = match find(station_name, &signs) {
            Err(trouble) => return self.unusual_arrivals(trouble, now).await,
            Ok(found) => found,
        };
        let (mut arrivals, live) = self.get_arrivals(&found.ids(), &signs, now).await;
        arrivals.truncate(SHOWN);
        Ok(ArrivalsAnswer { station: found.view(), line: sign, arrivals, live, assumption: found.assumption })
    }

    /// The trains of a line at a station where it does not stop by day: late at night expresses run as locals. Where none
    /// is announced, the trouble remains.
    async fn unusual_arrivals(&self, trouble: Trouble, now: Timestamp) -> Result<ArrivalsAnswer, Trouble> {
        let Trouble::NotOnLine { lines, choices, .. } = &trouble else { return Err(trouble) };
        let [station] = choices.as_slice() else { return Err(trouble) };
        let ids: Vec<&str> = station.stop_ids.iter().map(String::as_str).collect();
        let signs: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (mut arrivals, live) = self.get_arrivals(&ids, &signs, now).await;
        if arrivals.is_empty() {
            return Err(trouble);
        }
        arrivals.truncate(SHOWN);
        let line = Some(lines.join("/"));
        Ok(ArrivalsAnswer { station: station.clone(), line, arrivals, live, assumption: None })
    }

    /// The trains of some lines, or of all, that call next at some stations, by id.
    pub async fn get_arrivals(
        &self,
        stations: &[&str],
        lines: &[&str],
        now: Timestamp,
    ) -> (Vec<TrainArrival>, LiveStatus) {
        let routes = routes_at(stations, lines);
        let picture = self.live.picture(&routes, now).await;
        (arrivals_in(&picture, stations, lines, now), status_of(&picture, &routes))
    }
}

/// The ids of the lines that call at some stations, or of those among them that were asked for.
pub(crate) fn routes_at(stations: &[&str], lines: &[&str]) -> Vec<&'static str> {
    let at: Vec<&Station> = stations.iter().filter_map(|id| network().find_station(id)).collect();
    let calls_here = |sign: &str| at.iter().any(|station| station.lines.iter().any(|line| line == sign));
    let is_asked_for = |sign: &str| if lines.is_empty() { calls_here(sign) } else { lines.contains(&sign) };
    let asked = network().lines().iter().filter(|line| is_asked_for(&line.name));
    let here = asked.clone().filter(|line| stations.iter().any(|id| network().calls_at(&line.id, id)));
    let here: Vec<&str> = here.map(|line| line.id.as_str()).collect();
    // A line that was named and does not call here by day may do so now.
    if here.is_empty() { asked.map(|line| line.id.as_str()).collect() } else { here }
}

/// The trains of a picture at some stations, soonest first. A feed may name a planned trip twice.
pub(crate) fn arrivals_in(
    picture: &LivePicture,
    stations: &[&str],
    lines: &[&str],
    now: Timestamp,
) -> Vec<TrainArrival> {
    let is_here = |platform: &str| platform.len() > 1 && stations.contains(&&platform[..platform.len() - 1]);
    let all = picture.feeds.iter().flat_map(|feed| feed.arrivals(is_here, now));
    let mut seen = BTreeSet::new();
    let mut arrivals: Vec<TrainArrival> = all
        .filter(|arrival| seen.insert((arrival.trip.clone(), arrival.platform.clone(), arrival.at)))
        .map(|arrival| view_of(&arrival, now))
        .filter(|arrival| lines.is_empty() || lines.contains(&arrival.line.as_str()))
        .collect();
    arrivals.sort_by(|one, other| (one.at, &one.stop_id, &one.line).cmp(&(other.at, &other.stop_id, &other.line)));
    arrivals
}

pub(crate) fn status_of(picture: &LivePicture, routes: &[&str]) -> LiveStatus {
    let mut unavailable: Vec<String> = picture.unavailable.iter().map(|route| sign_of(route)).collect();
    unavailable.dedup();
    match unavailable.len() {
        0 => LiveStatus::Available,
        _ if picture.unavailable.len() >= routes.len() => LiveStatus::Unavailable,
        _ => LiveStatus::Partly { unavailable },
    }
}

fn view_of(arrival: &Arrival, now: Timestamp) -> TrainArrival {
    let (station, way) = arrival.platform.split_at(arrival.platform.len() - 1);
    let last = arrival.last_platform.get(..arrival.last_platform.len().saturating_sub(1)).unwrap_or_default();
    TrainArrival {
        line: sign_of(&arrival.route),
        route_id: arrival.route.clone(),
        direction: way.to_owned(),
        towards: direction_at(station, way),
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

/// The time on a clock in New York, such as `18:52`.
pub(crate) fn clock(at: Timestamp) -> String {
    at.to_zoned(new_york()).strftime("%H:%M").to_string()
}
