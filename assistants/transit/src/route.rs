//! Routes in answers, and routing through a network without a timetable.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::Serialize;

use crate::{Assumption, Line, LineRide, NetworkLeg, PathConditions, QueryError, StationMatch, StationView, System};

/// A request for a route.
#[derive(Debug, Clone)]
pub struct RouteRequest<'a> {
    /// The origin, in the user's words.
    pub from: &'a str,
    /// The destination, in the user's words.
    pub to: &'a str,
    /// The present time.
    pub now: Timestamp,
    /// Conditions on the trip.
    pub conditions: TripConditions,
}

/// Conditions on a trip.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TripConditions {
    /// The earliest time to leave. Default: now.
    pub leave_at: Option<Timestamp>,
    /// The latest time to arrive.
    pub arrive_by: Option<Timestamp>,
    /// Whether to board and alight only at accessible platforms.
    pub step_free: bool,
    /// The names or ids of the lines to avoid.
    pub avoid: Vec<String>,
    /// The names or ids of the only lines to use; empty for all lines.
    pub only: Vec<String>,
    /// Whether fewer changes matter more than a shorter time.
    pub fewest_changes: bool,
}

impl TripConditions {
    /// Whether the trip is planned for a time, so live trains say nothing about it.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        self.leave_at.is_some() || self.arrive_by.is_some()
    }

    /// Describes the conditions that restrict the choice of routes: ` that has step-free platforms only and avoids the
    /// Q`.
    #[must_use]
    pub fn restrictions(&self, system: &System) -> String {
        let step_free = self.step_free.then(|| "has step-free platforms only".to_owned());
        let names: Vec<String> = self.avoid.iter().map(|line| system.line_name(line)).collect();
        let avoided = (!names.is_empty()).then(|| format!("avoids the {}", names.join(" and the ")));
        let only: Vec<String> = self.only.iter().map(|line| system.line_name(line)).collect();
        let only = (!only.is_empty()).then(|| format!("uses only the {}", only.join(" and the ")));
        let all: Vec<String> = step_free.into_iter().chain(avoided).chain(only).collect();
        if all.is_empty() { String::new() } else { format!(" that {}", all.join(" and ")) }
    }

    /// Returns the ids of the lines to avoid.
    #[must_use]
    pub fn avoided_lines(&self, system: &System) -> Vec<&'static str> {
        let lines = self.avoid.iter().flat_map(|name| (system.network)().lines_named(name));
        let is_other = |line: &&Line| {
            let is_named = |name: &String| line.name.eq_ignore_ascii_case(name) || line.id.eq_ignore_ascii_case(name);
            !self.only.is_empty() && !self.only.iter().any(is_named)
        };
        let others = (system.network)().lines().iter().filter(is_other);
        lines.chain(others).map(|line| line.id.as_str()).collect()
    }
}

/// The conditions that a route meets, in local time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MetConditions {
    /// The requested time to leave, such as `Wed 6 May 08:00`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leave_at: Option<String>,
    /// The requested time to arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrive_by: Option<String>,
    /// Whether all platforms at which to board and alight are accessible.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub step_free: bool,
    /// The lines that the route does not use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub avoided: Vec<String>,
    /// The only lines that the route uses; empty for all lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Whether the route has as few changes as possible.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fewest_changes: bool,
}

/// A route: the result of `get_route`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteAnswer {
    /// The origin.
    pub from: StationView,
    /// The destination.
    pub to: StationView,
    /// The rides and walks, in order.
    pub legs: Vec<RouteLeg>,
    /// The number of changes.
    pub changes: usize,
    /// The seconds from the first departure to the last arrival; without a timetable, excluding the wait for the first train.
    pub seconds: u32,
    /// `seconds`, rounded to minutes.
    pub minutes: u32,
    /// The local time of the first departure, if known.
    pub departs: Option<String>,
    /// The local time of the last arrival, if known.
    pub arrives: Option<String>,
    /// Rides without a change that are slower, or on other lines; only without a timetable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub direct: Vec<RideLeg>,
    /// The source of the times.
    pub source: RouteSource,
    /// The conditions that the route meets.
    pub conditions: MetConditions,
    /// The assumptions made about station names.
    pub assumptions: Vec<Assumption>,
}

/// The source of a route's times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "times", rename_all = "snake_case")]
pub enum RouteSource {
    /// The timetable of the day.
    Timetable,
    /// The timetable of the day, updated with live trains.
    LiveTrains,
    /// A timetable that does not cover the day; the times of another date are used.
    OlderTimetable {
        /// The date that is used.
        date: String,
    },
    /// An estimate: two minutes per stop and seven per change, without the wait for the first train.
    TwoMinutesAStop,
    /// The operator's journey planner, when the question was asked.
    Planner,
    /// The running times between stations, and a fixed time per change, without the wait for the first train.
    RunningTimes {
        /// The date of the timetables.
        date: String,
        /// The lines of the route whose running times are estimates by distance.
        estimated: Vec<String>,
        /// The minutes per change.
        change_minutes: u32,
    },
}

/// A part of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RouteLeg {
    /// A ride on one train.
    Ride(RideLeg),
    /// A walk to another station of the complex, or to one nearby.
    Walk {
        /// The start of the walk.
        from: String,
        /// The end of the walk.
        to: String,
        /// The duration in seconds.
        seconds: u32,
    },
}

/// A ride of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RideLeg {
    /// The name of the line on the signs.
    pub line: String,
    /// The direction of travel, as the network names it.
    pub direction: String,
    /// The name of the direction on the signs at `from`.
    pub towards: String,
    /// The station at which to board.
    pub from: String,
    /// The id of `from`.
    pub from_stop: String,
    /// The station at which to alight.
    pub to: String,
    /// The id of `to`.
    pub to_stop: String,
    /// The number of stops.
    pub stops: usize,
    /// The duration in seconds.
    pub seconds: u32,
    /// The local time of departure, if known.
    pub departs: Option<String>,
    /// The local time of arrival, if known.
    pub arrives: Option<String>,
}

/// The cost of a change in a search for the fewest changes: longer than any ride.
const COST_OF_CHANGE_SECONDS: u32 = 100_000;

/// The resolved origin and destination.
#[derive(Debug, Clone)]
pub struct TripEnds {
    /// The origin.
    pub from: StationMatch,
    /// The destination.
    pub to: StationMatch,
}

/// The duration of a route, and its clock times if they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteTimes {
    /// The duration in seconds.
    pub seconds: u32,
    /// The local times of departure and arrival.
    pub clocks: Option<(String, String)>,
    /// Where the times come from.
    pub source: RouteSource,
}

impl System {
    /// Resolves the ends of a trip.
    ///
    /// # Errors
    /// A name is unknown or ambiguous, or both mean the same station.
    pub fn ends_of(&self, from: &str, to: &str) -> Result<TripEnds, QueryError> {
        let ends = TripEnds { from: self.find(from, &[])?, to: self.find(to, &[])? };
        if ends.from.place.stations.iter().any(|id| ends.to.place.stations.contains(id)) {
            return Err(QueryError::SameStation { station: Box::new(ends.from.view()) });
        }
        Ok(ends)
    }

    /// Returns the error for a trip without a route.
    #[must_use]
    pub fn no_route(&self, ends: &TripEnds, conditions: &TripConditions) -> QueryError {
        QueryError::NoRoute {
            conditions: conditions.restrictions(self),
            from: ends.from.view().name,
            to: ends.to.view().name,
        }
    }

    /// Finds the fastest route through the network. `unserved` contains pairs of a line and a station at which it does
    /// not stop at the time of the trip; `source` says where the times of the legs come from.
    ///
    /// # Errors
    /// [`QueryError::NoRoute`].
    pub fn route_by_network(
        &self,
        ends: &TripEnds,
        conditions: &TripConditions,
        change_seconds: u32,
        unserved: HashSet<(&str, &str)>,
        source: impl FnOnce(&[NetworkLeg]) -> RouteSource,
    ) -> Result<RouteAnswer, QueryError> {
        let avoid = conditions.avoided_lines(self);
        let limits = PathConditions { accessible_only: conditions.step_free, avoid, unserved };
        let network = (self.network)();
        let cost = if conditions.fewest_changes { COST_OF_CHANGE_SECONDS } else { change_seconds };
        let path = network.find_path(&ends.from.ids(), &ends.to.ids(), cost, &limits);
        let path = path.ok_or_else(|| self.no_route(ends, conditions))?;
        let changes = u32::try_from(path.legs.len().saturating_sub(1)).unwrap_or_default();
        let seconds = path.seconds - changes * (cost - change_seconds);
        let times = RouteTimes { seconds, clocks: None, source: source(&path.legs) };
        let legs: Vec<RouteLeg> = path.legs.iter().map(|leg| RouteLeg::Ride(self.untimed_ride(leg))).collect();
        let direct = match conditions.step_free {
            // Which platforms of these rides are accessible was not checked.
            true => Vec::new(),
            false => self.direct_rides(ends, &limits, &path.legs),
        };
        Ok(RouteAnswer { direct, ..self.route_answer(ends, legs, times, conditions) })
    }

    /// Returns the shortest ride without a change on each line that serves both ends, except the route itself.
    fn direct_rides(&self, ends: &TripEnds, limits: &PathConditions<'_>, route: &[NetworkLeg]) -> Vec<RideLeg> {
        const MAX_RIDES: usize = 3;
        let is_route = |line: &Line| matches!(route, [only] if self.line_name(&only.line) == line.name);
        let lines = (self.network)().lines().iter();
        let lines = lines.filter(|line| !limits.avoid.contains(&line.id.as_str()) && !is_route(line));
        let mut rides: Vec<RideLeg> = lines.filter_map(|line| self.direct_ride(line, ends, limits)).collect();
        rides.sort_by(|one, other| (one.seconds, &one.line).cmp(&(other.seconds, &other.line)));
        let mut named = HashSet::new();
        rides.retain(|ride| named.insert(ride.line.clone()));
        rides.truncate(MAX_RIDES);
        rides
    }

    fn direct_ride(&self, line: &Line, ends: &TripEnds, limits: &PathConditions<'_>) -> Option<RideLeg> {
        let is_served = |station: &str| !limits.unserved.contains(&(line.id.as_str(), station));
        let (from, to) = (ends.from.ids(), ends.to.ids());
        let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to)));
        let pairs = pairs.filter(|(from, to)| is_served(from) && is_served(to));
        let rides = pairs.filter_map(|(from, to)| (self.network)().ride(&line.id, from, to));
        let ride = rides.min_by_key(LineRide::seconds)?;
        Some(self.untimed_ride(&NetworkLeg {
            line: line.id.clone(),
            way: ride.way.to_owned(),
            stations: ride.stations.iter().map(|station| station.id.clone()).collect(),
            seconds: ride.seconds(),
            terminal: ride.terminal.id.clone(),
        }))
    }

    fn untimed_ride(&self, leg: &NetworkLeg) -> RideLeg {
        let from = leg.stations.first().map_or("", String::as_str);
        let to = leg.stations.last().map_or("", String::as_str);
        RideLeg {
            line: self.line_name(&leg.line),
            direction: leg.way.clone(),
            towards: (self.towards)(leg),
            from: self.station_name(from),
            from_stop: from.to_owned(),
            to: self.station_name(to),
            to_stop: to.to_owned(),
            stops: leg.stops(),
            seconds: leg.seconds,
            departs: None,
            arrives: None,
        }
    }

    /// Returns the answer with the legs of a route.
    #[must_use]
    pub fn route_answer(
        &self,
        ends: &TripEnds,
        legs: Vec<RouteLeg>,
        times: RouteTimes,
        conditions: &TripConditions,
    ) -> RouteAnswer {
        let rides = legs.iter().filter(|leg| matches!(leg, RouteLeg::Ride(_))).count();
        let (departs, arrives) = times.clocks.unzip();
        let assumptions = [&ends.from, &ends.to].into_iter().filter_map(|found| found.assumption.clone()).collect();
        RouteAnswer {
            from: ends.from.view(),
            to: ends.to.view(),
            legs,
            changes: rides.saturating_sub(1),
            seconds: times.seconds,
            minutes: (times.seconds + 30) / 60,
            departs,
            arrives,
            direct: Vec::new(),
            source: times.source,
            conditions: self.met(conditions),
            assumptions,
        }
    }

    fn met(&self, conditions: &TripConditions) -> MetConditions {
        let local = |at: Timestamp| at.to_zoned((self.zone)()).strftime("%a %-d %b %H:%M").to_string();
        MetConditions {
            leave_at: conditions.leave_at.map(local),
            arrive_by: conditions.arrive_by.map(local),
            step_free: conditions.step_free,
            avoided: conditions.avoid.clone(),
            only: conditions.only.clone(),
            fewest_changes: conditions.fewest_changes,
        }
    }
}

/// Returns the rides of a route.
pub fn rides(route: &RouteAnswer) -> impl Iterator<Item = &RideLeg> {
    route.legs.iter().filter_map(|leg| match leg {
        RouteLeg::Ride(ride) => Some(ride),
        RouteLeg::Walk { .. } => None,
    })
}
