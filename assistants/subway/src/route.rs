//! `get_route` and `get_route_with_arrivals`.

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::Serialize;
pub(crate) use threadkeep_transit::rides;
use threadkeep_transit::{Journey, Leg, Line, Query, Ride, RouteTimes, Schedule, TripEnds};
pub use threadkeep_transit::{
    MetConditions, RideLeg, RouteAnswer, RouteLeg, RouteRequest, RouteSource, TripConditions,
};

use crate::arrivals::{LiveStatus, TrainArrival, arrivals_in, clock, routes_at, status_of};
use crate::place::{QueryError, direction_at, name_of};
use crate::service;
use crate::subway::{Subway, line_name_of};
use crate::system::{SUBWAY, network};
use crate::travel::{ServiceMoment, new_york};

/// The duration of a change without a timetable: three minutes on foot, which is the MTA's value for most stations, plus half
/// the usual interval between trains.
const CHANGE_SECONDS: u32 = 180 + 240;

/// How much time a route with one more change must save to be proposed.
const WORTH_A_CHANGE_SECONDS: u32 = 120;

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
        self.route_between(&SUBWAY.ends_of(request.from, request.to)?, request)
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
    /// [`get_route_with_arrivals`](Self::get_route_with_arrivals). A trip planned for a given time does not use live trains.
    ///
    /// # Errors
    /// Those of [`get_route`](Self::get_route).
    pub async fn find_route_with_arrivals(&self, request: &RouteRequest<'_>) -> Result<RouteWithArrivals, QueryError> {
        let (ends, now) = (SUBWAY.ends_of(request.from, request.to)?, request.now);
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

    fn route_between(&self, ends: &TripEnds, request: &RouteRequest<'_>) -> Result<RouteAnswer, QueryError> {
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
        let by_network = |unserved| {
            SUBWAY.route_by_network(ends, conditions, CHANGE_SECONDS, unserved, |_| RouteSource::TwoMinutesAStop)
        };
        let usual = by_network(service::unserved(at));
        // Some trips can only be made by day: a daytime route is better than none.
        if usual.is_ok() { usual } else { by_network(HashSet::new()) }
    }
}

/// Returns the journey that arrives first, or one with fewer changes that arrives shortly after.
fn best(schedule: &Schedule, moment: ServiceMoment, ends: &TripEnds, conditions: &TripConditions) -> Option<Journey> {
    let query = Query {
        accessible_only: conditions.step_free,
        avoid: conditions.avoided_lines(&SUBWAY),
        ..Query::between(ends.from.ids(), ends.to.ids())
    };
    let at = schedule.time(instant_of(moment.at)?)?;
    if conditions.arrive_by.is_some() {
        return schedule.latest_departure(&query, at);
    }
    let choices = schedule.choices(&query, at);
    if conditions.fewest_changes {
        return choices.into_iter().next();
    }
    let earliest = choices.last()?.arrives().0;
    choices.into_iter().find(|journey| journey.arrives().0 <= earliest + WORTH_A_CHANGE_SECONDS)
}

fn instant_of(at: DateTime) -> Option<Timestamp> {
    new_york().to_ambiguous_timestamp(at).compatible().ok()
}

fn timed_route(
    schedule: &Schedule,
    journey: &Journey,
    ends: &TripEnds,
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
    SUBWAY.route_answer(ends, legs.collect(), RouteTimes { seconds, clocks, source }, conditions)
}

fn timed_leg(ride: &Ride) -> RideLeg {
    let way = ride.from_platform.strip_prefix(&ride.from).unwrap_or_default();
    RideLeg {
        line: line_name_of(&ride.route),
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
