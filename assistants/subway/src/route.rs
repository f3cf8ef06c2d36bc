//! `get_route` and `get_route_with_arrivals`.

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::Serialize;
use threadkeep_transit::{Journey, Leg, Line, NetworkLeg, PathConditions, Query, Ride, SECONDS_A_STOP, Schedule};

use crate::arrivals::{LiveStatus, TrainArrival, arrivals_in, clock, routes_at, status_of};
use crate::place::{Assumption, QueryError, StationMatch, StationView, direction_at, find, name_of};
use crate::subway::{Subway, sign_of};
use crate::system::network;
use crate::travel::{ServiceMoment, new_york};

/// The duration of a change without a timetable: three minutes on foot, which is the MTA's value for most stations, and half
/// of the usual interval between trains.
const CHANGE_SECONDS: u32 = 180 + 240;

/// The minimum saving for which a route with one more change is proposed.
const WORTH_A_CHANGE_SECONDS: u32 = 120;

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
    /// The names on the signs of the lines not to use.
    pub avoid: Vec<String>,
}

impl TripConditions {
    /// Whether the trip is planned for a time, so that live trains say nothing about it.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        self.leave_at.is_some() || self.arrive_by.is_some()
    }

    /// Describes what restricts the choice of routes: ` that has step-free platforms only and avoids the Q`.
    fn restrictions(&self) -> String {
        let step_free = self.step_free.then(|| "has step-free platforms only".to_owned());
        let avoided = (!self.avoid.is_empty()).then(|| format!("avoids the {}", self.avoid.join(" and the ")));
        let all: Vec<String> = step_free.into_iter().chain(avoided).collect();
        if all.is_empty() { String::new() } else { format!(" that {}", all.join(" and ")) }
    }

    /// Returns the ids of the lines not to use.
    fn avoided_lines(&self) -> Vec<&'static str> {
        let lines = self.avoid.iter().flat_map(|sign| network().lines_named(sign));
        lines.map(|line| line.id.as_str()).collect()
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
}

/// A route: the answer of `get_route`.
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
    /// The direction of travel, N or S.
    pub direction: String,
    /// The name of the direction on the signs at `from`.
    pub towards: String,
    /// The station at which to board.
    pub from: String,
    /// The GTFS id of `from`.
    pub from_stop: String,
    /// The station at which to alight.
    pub to: String,
    /// The GTFS id of `to`.
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

/// The answer of `get_route_with_arrivals`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteWithArrivals {
    /// The route.
    pub route: RouteAnswer,
    /// The next trains from its origin that make the first ride.
    pub next_trains: Vec<TrainArrival>,
    /// For which lines live times are available.
    pub live: LiveStatus,
}

/// The resolved origin and destination.
struct Ends {
    from: StationMatch,
    to: StationMatch,
}

impl Subway {
    /// `get_route(from, to)`: the best route, without live feeds.
    ///
    /// # Errors
    /// [`QueryError`] if a station is unknown or ambiguous, both are the same, or no route connects them.
    pub fn get_route(&self, from: &str, to: &str, now: Timestamp) -> Result<RouteAnswer, QueryError> {
        self.find_route(&RouteRequest { from, to, now, conditions: TripConditions::default() })
    }

    /// Finds the best route, with more options than [`get_route`](Self::get_route).
    ///
    /// # Errors
    /// Those of [`get_route`](Self::get_route).
    pub fn find_route(&self, request: &RouteRequest<'_>) -> Result<RouteAnswer, QueryError> {
        self.route_between(&ends_of(request.from, request.to)?, request)
    }

    /// `get_route_with_arrivals(from, to)`: the best route with live trains, and the next trains at its origin.
    ///
    /// # Errors
    /// Those of [`get_route`](Self::get_route). Unavailable feeds are not an error: [`RouteWithArrivals::live`] reports them.
    pub async fn get_route_with_arrivals(
        &self,
        from: &str,
        to: &str,
        now: Timestamp,
    ) -> Result<RouteWithArrivals, QueryError> {
        let request = RouteRequest { from, to, now, conditions: TripConditions::default() };
        self.find_route_with_arrivals(&request).await
    }

    /// Finds the best route with live trains, with more options than
    /// [`get_route_with_arrivals`](Self::get_route_with_arrivals). A trip that is planned for a time uses no live trains.
    ///
    /// # Errors
    /// Those of [`get_route`](Self::get_route).
    pub async fn find_route_with_arrivals(&self, request: &RouteRequest<'_>) -> Result<RouteWithArrivals, QueryError> {
        let (ends, now) = (ends_of(request.from, request.to)?, request.now);
        let scheduled = self.route_between(&ends, request)?;
        let mut routes = routes_at(&ends.from.ids(), &[]);
        for leg in rides(&scheduled) {
            routes.extend(network().lines_named(&leg.line).map(|line| line.id.as_str()));
        }
        routes.sort_unstable();
        routes.dedup();
        let snapshot = self.live.snapshot(&routes, now).await;
        let with_live = self.live_schedule(&snapshot, now).filter(|_| !snapshot.feeds.is_empty());
        let with_live = with_live.and_then(|(schedule, moment)| {
            let journey = best(&schedule, moment, &ends, &request.conditions)?;
            Some(timed_route(&schedule, &journey, &ends, RouteSource::LiveTrains, &request.conditions))
        });
        let route = with_live.unwrap_or(scheduled);
        let next_trains = next_trains(&route, |station, lines| arrivals_in(&snapshot, &[station], lines, now));
        Ok(RouteWithArrivals { route, next_trains, live: status_of(&snapshot, &routes) })
    }

    fn route_between(&self, ends: &Ends, request: &RouteRequest<'_>) -> Result<RouteAnswer, QueryError> {
        let no_route = || QueryError::NoRoute {
            conditions: request.conditions.restrictions(),
            from: ends.from.view().name,
            to: ends.to.view().name,
        };
        let conditions = &request.conditions;
        let at = conditions.arrive_by.or(conditions.leave_at).unwrap_or(request.now);
        if let Some((schedule, moment)) = self.schedule(at)
            && let Some(journey) = best(&schedule, moment, ends, conditions)
        {
            let source = if moment.is_covered {
                RouteSource::Timetable
            } else {
                RouteSource::OlderTimetable { date: moment.at.date().to_string() }
            };
            return Ok(timed_route(&schedule, &journey, ends, source, conditions));
        }
        let limits = PathConditions { accessible_only: conditions.step_free, avoid: conditions.avoided_lines() };
        let path =
            network().find_path(&ends.from.ids(), &ends.to.ids(), CHANGE_SECONDS, &limits).ok_or_else(no_route)?;
        let legs: Vec<RouteLeg> = path.legs.iter().map(untimed_leg).collect();
        Ok(answer(ends, legs, path.seconds, None, RouteSource::TwoMinutesAStop, conditions))
    }
}

fn ends_of(from: &str, to: &str) -> Result<Ends, QueryError> {
    let ends = Ends { from: find(from, &[])?, to: find(to, &[])? };
    if ends.from.place.stations.iter().any(|id| ends.to.place.stations.contains(id)) {
        return Err(QueryError::SameStation { station: Box::new(ends.from.view()) });
    }
    Ok(ends)
}

/// Returns the journey that arrives first, or one with fewer changes that arrives shortly after.
fn best(schedule: &Schedule, moment: ServiceMoment, ends: &Ends, conditions: &TripConditions) -> Option<Journey> {
    let query = Query {
        accessible_only: conditions.step_free,
        avoid: conditions.avoided_lines(),
        ..Query::between(ends.from.ids(), ends.to.ids())
    };
    let at = schedule.time(instant_of(moment.at)?)?;
    if conditions.arrive_by.is_some() {
        return schedule.latest_departure(&query, at);
    }
    let choices = schedule.choices(&query, at);
    let earliest = choices.last()?.arrives().0;
    choices.into_iter().find(|journey| journey.arrives().0 <= earliest + WORTH_A_CHANGE_SECONDS)
}

fn instant_of(at: DateTime) -> Option<Timestamp> {
    new_york().to_ambiguous_timestamp(at).compatible().ok()
}

fn timed_route(
    schedule: &Schedule,
    journey: &Journey,
    ends: &Ends,
    source: RouteSource,
    conditions: &TripConditions,
) -> RouteAnswer {
    let is_today = !matches!(source, RouteSource::OlderTimetable { .. });
    let clock_at = |time| schedule.instant(time).filter(|_| is_today).map(clock);
    let legs = journey.legs.iter().map(|leg| match leg {
        Leg::Ride(ride) => RouteLeg::Ride(RideLeg {
            departs: clock_at(ride.departs),
            arrives: clock_at(ride.arrives),
            ..timed_leg(ride)
        }),
        Leg::Walk(walk) => RouteLeg::Walk { from: name_of(&walk.from), to: name_of(&walk.to), seconds: walk.seconds },
    });
    let seconds = journey.arrives().0 - journey.departs().0;
    let clocks = clock_at(journey.departs()).zip(clock_at(journey.arrives()));
    answer(ends, legs.collect(), seconds, clocks, source, conditions)
}

fn timed_leg(ride: &Ride) -> RideLeg {
    let way = ride.from_platform.strip_prefix(&ride.from).unwrap_or_default();
    RideLeg {
        line: sign_of(&ride.route),
        direction: way.to_owned(),
        towards: direction_at(&ride.from, way),
        from: name_of(&ride.from),
        from_stop: ride.from.clone(),
        to: name_of(&ride.to),
        to_stop: ride.to.clone(),
        stops: ride.stops_ridden(),
        seconds: ride.arrives.0 - ride.departs.0,
        departs: None,
        arrives: None,
    }
}

fn untimed_leg(leg: &NetworkLeg) -> RouteLeg {
    let from = leg.stations.first().map_or("", String::as_str);
    let to = leg.stations.last().map_or("", String::as_str);
    let stops = leg.stops();
    RouteLeg::Ride(RideLeg {
        line: sign_of(&leg.line),
        direction: leg.way.clone(),
        towards: direction_at(from, &leg.way),
        from: name_of(from),
        from_stop: from.to_owned(),
        to: name_of(to),
        to_stop: to.to_owned(),
        stops,
        seconds: u32::try_from(stops).unwrap_or(u32::MAX).saturating_mul(SECONDS_A_STOP),
        departs: None,
        arrives: None,
    })
}

fn answer(
    ends: &Ends,
    legs: Vec<RouteLeg>,
    seconds: u32,
    clocks: Option<(String, String)>,
    source: RouteSource,
    conditions: &TripConditions,
) -> RouteAnswer {
    let rides = legs.iter().filter(|leg| matches!(leg, RouteLeg::Ride(_))).count();
    let (departs, arrives) = clocks.unzip();
    let assumptions = [&ends.from, &ends.to].into_iter().filter_map(|found| found.assumption.clone()).collect();
    RouteAnswer {
        from: ends.from.view(),
        to: ends.to.view(),
        legs,
        changes: rides.saturating_sub(1),
        seconds,
        minutes: (seconds + 30) / 60,
        departs,
        arrives,
        source,
        conditions: met(conditions),
        assumptions,
    }
}

fn met(conditions: &TripConditions) -> MetConditions {
    let local = |at: Timestamp| at.to_zoned(new_york()).strftime("%a %-d %b %H:%M").to_string();
    MetConditions {
        leave_at: conditions.leave_at.map(local),
        arrive_by: conditions.arrive_by.map(local),
        step_free: conditions.step_free,
        avoided: conditions.avoid.clone(),
    }
}

pub(crate) fn rides(route: &RouteAnswer) -> impl Iterator<Item = &RideLeg> {
    route.legs.iter().filter_map(|leg| match leg {
        RouteLeg::Ride(ride) => Some(ride),
        RouteLeg::Walk { .. } => None,
    })
}

/// Returns the names of the lines that make a ride: its own, and those that share its tracks.
pub(crate) fn lines_making(ride: &RideLeg) -> Vec<&str> {
    let makes_it = |line: &&Line| network().ride(&line.id, &ride.from_stop, &ride.to_stop).is_some();
    let along = network().lines().iter().filter(makes_it).map(|line| line.name.as_str());
    let mut lines: Vec<&str> = along.chain([ride.line.as_str()]).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Returns the next trains of all lines that make the first ride, in its direction.
fn next_trains(route: &RouteAnswer, arrivals: impl Fn(&str, &[&str]) -> Vec<TrainArrival>) -> Vec<TrainArrival> {
    const MAX_TRAINS: usize = 4;
    let Some(first) = rides(route).next() else { return Vec::new() };
    let mut trains = arrivals(&first.from_stop, &lines_making(first));
    trains.retain(|train| train.direction == first.direction);
    trains.truncate(MAX_TRAINS);
    trains
}
