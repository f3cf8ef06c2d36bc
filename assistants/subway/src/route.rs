//! `get_route` and `get_route_with_arrivals`.

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::Serialize;
use threadkeep_transit::{Journey, Leg, Line, NetworkLeg, Query, Ride, SECONDS_A_STOP, Schedule};

use crate::arrivals::{LiveStatus, TrainArrival, arrivals_in, clock, routes_at, status_of};
use crate::place::{Assumption, Found, StationView, Trouble, direction_at, find, name_of};
use crate::subway::{Subway, sign_of};
use crate::system::network;
use crate::travel::{ServiceMoment, new_york};

/// What a change of trains counts for without a timetable: three minutes on foot, which is what the MTA gives for most
/// stations, and half the usual time between two trains.
const CHANGE_SECONDS: u32 = 180 + 240;

/// What one more change has to save to be proposed.
const WORTH_A_CHANGE_SECONDS: u32 = 120;

/// What is wanted of a route.
#[derive(Debug, Clone, Copy)]
pub struct RouteWish<'a> {
    /// The origin, as a person says it.
    pub from: &'a str,
    /// The destination.
    pub to: &'a str,
    /// When to leave at the earliest.
    pub at: Timestamp,
    /// Whether to board and alight only where there are no steps.
    pub accessible_only: bool,
}

/// A route: the answer of `get_route`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteAnswer {
    /// The origin.
    pub from: StationView,
    /// The destination.
    pub to: StationView,
    /// Rides and walks in order.
    pub legs: Vec<RouteLeg>,
    /// How often one changes trains.
    pub changes: usize,
    /// From the first departure to the last arrival; without a timetable the time without waiting.
    pub seconds: u32,
    /// The same, rounded to minutes.
    pub minutes: u32,
    /// The time of the first departure, where it is known.
    pub departs: Option<String>,
    /// The time of the last arrival, where it is known.
    pub arrives: Option<String>,
    /// Where the times come from.
    pub source: RouteSource,
    /// What was assumed about the stations.
    pub assumptions: Vec<Assumption>,
}

/// Where the times of a route come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "times", rename_all = "snake_case")]
pub enum RouteSource {
    /// The timetable of the day.
    Timetable,
    /// The timetable of the day, with the trains as they run.
    LiveTrains,
    /// A timetable that does not reach the day; its times are those of this date.
    OlderTimetable {
        /// The date.
        date: String,
    },
    /// Two minutes a stop and seven a change, without waiting for the first train.
    TwoMinutesAStop,
}

/// A part of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RouteLeg {
    /// On one train.
    Ride(RideLeg),
    /// On foot to another station of the complex, or nearby.
    Walk {
        /// The station to leave.
        from: String,
        /// The station to come to.
        to: String,
        /// How long it takes.
        seconds: u32,
    },
}

/// A ride of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RideLeg {
    /// The line as the signs write it.
    pub line: String,
    /// N or S: the railway's direction.
    pub direction: String,
    /// What the signs call the direction where one boards.
    pub towards: String,
    /// Where to board.
    pub from: String,
    /// Its GTFS id.
    pub from_stop: String,
    /// Where to alight.
    pub to: String,
    /// Its GTFS id.
    pub to_stop: String,
    /// How many stops it is.
    pub stops: usize,
    /// How long it takes.
    pub seconds: u32,
    /// The time of departure, where it is known.
    pub departs: Option<String>,
    /// The time of arrival, where it is known.
    pub arrives: Option<String>,
}

/// The answer of `get_route_with_arrivals`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteWithArrivals {
    /// The route.
    pub route: RouteAnswer,
    /// The next trains at its origin that go its way.
    pub next_trains: Vec<TrainArrival>,
    /// Whether live times could be had.
    pub live: LiveStatus,
}

/// Origin and destination, resolved.
struct Ends {
    from: Found,
    to: Found,
}

impl Subway {
    /// `get_route(from, to)`: the best route. Asks no feed.
    ///
    /// # Errors
    /// [`Trouble`], where a station is unknown or unclear, both are the same, or no way leads there.
    pub fn get_route(&self, from: &str, to: &str, now: Timestamp) -> Result<RouteAnswer, Trouble> {
        self.find_route(&RouteWish { from, to, at: now, accessible_only: false })
    }

    /// The best route by more wishes than [`get_route`](Self::get_route) takes.
    ///
    /// # Errors
    /// As [`get_route`](Self::get_route).
    pub fn find_route(&self, wish: &RouteWish<'_>) -> Result<RouteAnswer, Trouble> {
        self.route_between(&ends_of(wish.from, wish.to)?, wish)
    }

    /// `get_route_with_arrivals(from, to)`: the route as trains run now, and the next trains at its origin.
    ///
    /// # Errors
    /// As [`get_route`](Self::get_route). Feeds that do not answer are no error; the answer says so.
    pub async fn get_route_with_arrivals(
        &self,
        from: &str,
        to: &str,
        now: Timestamp,
    ) -> Result<RouteWithArrivals, Trouble> {
        let ends = ends_of(from, to)?;
        let wish = RouteWish { from, to, at: now, accessible_only: false };
        let scheduled = self.route_between(&ends, &wish)?;
        let mut routes = routes_at(&ends.from.ids(), &[]);
        for leg in rides(&scheduled) {
            routes.extend(network().lines_named(&leg.line).map(|line| line.id.as_str()));
        }
        routes.sort_unstable();
        routes.dedup();
        let picture = self.live.picture(&routes, now).await;
        let with_live = self.live_schedule(&picture, now).filter(|_| !picture.feeds.is_empty());
        let with_live = with_live.and_then(|(schedule, moment)| {
            let journey = best(&schedule, moment, &ends, &wish)?;
            Some(timed_route(&schedule, &journey, &ends, RouteSource::LiveTrains))
        });
        let route = with_live.unwrap_or(scheduled);
        let next_trains = next_trains(&route, |station, lines| arrivals_in(&picture, &[station], lines, now));
        Ok(RouteWithArrivals { route, next_trains, live: status_of(&picture, &routes) })
    }

    fn route_between(&self, ends: &Ends, wish: &RouteWish<'_>) -> Result<RouteAnswer, Trouble> {
        let no_route = || Trouble::NoRoute { from: ends.from.view().name, to: ends.to.view().name };
        if let Some((schedule, moment)) = self.schedule(wish.at)
            && let Some(journey) = best(&schedule, moment, ends, wish)
        {
            let source = if moment.is_covered {
                RouteSource::Timetable
            } else {
                RouteSource::OlderTimetable { date: moment.at.date().to_string() }
            };
            return Ok(timed_route(&schedule, &journey, ends, source));
        }
        let path = network().find_path(&ends.from.ids(), &ends.to.ids(), CHANGE_SECONDS).ok_or_else(no_route)?;
        let accessible = |leg: &NetworkLeg| {
            let ends = [leg.stations.first(), leg.stations.last()];
            ends.into_iter()
                .flatten()
                .all(|id| network().find_station(id).is_some_and(|station| station.accessible.contains(&leg.way)))
        };
        if wish.accessible_only && !path.legs.iter().all(accessible) {
            return Err(no_route());
        }
        let legs: Vec<RouteLeg> = path.legs.iter().map(untimed_leg).collect();
        Ok(answer(ends, legs, path.seconds, None, RouteSource::TwoMinutesAStop))
    }
}

fn ends_of(from: &str, to: &str) -> Result<Ends, Trouble> {
    let ends = Ends { from: find(from, &[])?, to: find(to, &[])? };
    if ends.from.place.stations.iter().any(|id| ends.to.place.stations.contains(id)) {
        return Err(Trouble::SameStation { station: Box::new(ends.from.view()) });
    }
    Ok(ends)
}

/// The journey that arrives first; but one with fewer changes that arrives little later is the better one.
fn best(schedule: &Schedule, moment: ServiceMoment, ends: &Ends, wish: &RouteWish<'_>) -> Option<Journey> {
    let query = Query { accessible_only: wish.accessible_only, ..Query::between(ends.from.ids(), ends.to.ids()) };
    let choices = schedule.choices(&query, schedule.time(instant_of(moment.at)?)?);
    let earliest = choices.last()?.arrives().0;
    choices.into_iter().find(|journey| journey.arrives().0 <= earliest + WORTH_A_CHANGE_SECONDS)
}

fn instant_of(at: DateTime) -> Option<Timestamp> {
    new_york().to_ambiguous_timestamp(at).compatible().ok()
}

fn timed_route(schedule: &Schedule, journey: &Journey, ends: &Ends, source: RouteSource) -> RouteAnswer {
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
    answer(ends, legs.collect(), seconds, clocks, source)
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
        assumptions,
    }
}

pub(crate) fn rides(route: &RouteAnswer) -> impl Iterator<Item = &RideLeg> {
    route.legs.iter().filter_map(|leg| match leg {
        RouteLeg::Ride(ride) => Some(ride),
        RouteLeg::Walk { .. } => None,
    })
}

/// The lines that make a ride, by their signs: its own, and those that run along with it.
pub(crate) fn lines_making(ride: &RideLeg) -> Vec<&str> {
    let makes_it = |line: &&Line| network().ride(&line.id, &ride.from_stop, &ride.to_stop).is_some();
    let along = network().lines().iter().filter(makes_it).map(|line| line.name.as_str());
    let mut lines: Vec<&str> = along.chain([ride.line.as_str()]).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// The next trains of every line that makes the first ride, in its direction.
fn next_trains(route: &RouteAnswer, arrivals: impl Fn(&str, &[&str]) -> Vec<TrainArrival>) -> Vec<TrainArrival> {
    const SHOWN: usize = 4;
    let Some(first) = rides(route).next() else { return Vec::new() };
    let mut trains = arrivals(&first.from_stop, &lines_making(first));
    trains.retain(|train| train.direction == first.direction);
    trains.truncate(SHOWN);
    trains
}
