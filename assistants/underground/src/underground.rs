//! The entry point for queries: the built-in network and TfL's service.

use std::collections::HashSet;

use std::time::Duration;

use jiff::Timestamp;
use threadkeep_transit::{QueryError, RideLeg, RouteAnswer, RouteLeg, RouteRequest, RouteSource, RouteTimes, TripEnds};

use crate::lines::find_line;
use crate::network::{LONDON, has_timetable, network};
use crate::services::TIMETABLE_DATE;
use crate::tfl::{Journey, JourneyLeg, JourneyRequest, Tfl};

/// The duration of a change: three minutes on foot, plus half the usual interval between trains.
pub const CHANGE_SECONDS: u32 = 300;
/// How long to wait for the journey planner before falling back to the built-in network.
const PLANNER_TIMEOUT: Duration = Duration::from_secs(6);

/// Answers queries about London's network. Methods that depend on the time take `now` as an argument.
#[derive(Debug)]
pub struct Underground {
    pub(crate) tfl: Tfl,
}

/// The running time of a ride on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RideTime {
    /// In seconds.
    pub seconds: u32,
    /// Whether it is estimated from the distance.
    pub is_estimate: bool,
}

/// Returns the running time of a direct ride between the stations with the given ids; `None` if the line makes no such ride.
#[must_use]
pub fn ride_time(line: &str, from: &str, to: &str) -> Option<RideTime> {
    let ride = network().ride(line, from, to)?;
    Some(RideTime { seconds: ride.seconds(), is_estimate: !has_timetable(line) })
}

/// Finds the fastest route according to the built-in running times.
///
/// # Errors
/// [`QueryError`] if a station is unknown or ambiguous, both are the same, or no route connects them.
pub fn find_route(request: &RouteRequest<'_>) -> Result<RouteAnswer, QueryError> {
    route_between(&LONDON.ends_of(request.from, request.to)?, request)
}

fn route_between(ends: &TripEnds, request: &RouteRequest<'_>) -> Result<RouteAnswer, QueryError> {
    LONDON.route_by_network(ends, &request.conditions, CHANGE_SECONDS, HashSet::new(), |legs| {
        let mut estimated: Vec<String> = Vec::new();
        for leg in legs.iter().filter(|leg| !has_timetable(&leg.line)) {
            let name = LONDON.line_name(&leg.line);
            if !estimated.contains(&name) {
                estimated.push(name);
            }
        }
        RouteSource::RunningTimes { date: TIMETABLE_DATE.to_owned(), estimated, change_minutes: CHANGE_SECONDS / 60 }
    })
}

impl Underground {
    /// Creates an instance that uses the given client.
    #[must_use]
    pub fn new(tfl: Tfl) -> Self {
        Self { tfl }
    }

    /// Plans a route with TfL's journey planner or, if it cannot be reached, with the built-in running times.
    ///
    /// # Errors
    /// Those of [`find_route`].
    pub async fn plan_route(&self, request: &RouteRequest<'_>) -> Result<RouteAnswer, QueryError> {
        let ends = LONDON.ends_of(request.from, request.to)?;
        let planned = tokio::time::timeout(PLANNER_TIMEOUT, self.planned_route(&ends, request)).await;
        match planned.ok().flatten() {
            Some(route) => Ok(route),
            None => route_between(&ends, request),
        }
    }

    async fn planned_route(&self, ends: &TripEnds, request: &RouteRequest<'_>) -> Option<RouteAnswer> {
        let conditions = &request.conditions;
        let local = |at: Timestamp| at.to_zoned((LONDON.zone)()).datetime();
        let at = conditions.arrive_by.map(|at| (local(at), true));
        let planner = JourneyRequest {
            from: (*ends.from.ids().first()?).to_owned(),
            to: (*ends.to.ids().first()?).to_owned(),
            at: at.or_else(|| conditions.leave_at.map(|at| (local(at), false))),
            step_free: conditions.step_free,
        };
        let answer = self.tfl.journeys(&planner, request.now).await.ok()?;
        let avoided = conditions.avoided_lines(&LONDON);
        let uses =
            |journey: &Journey| journey.legs.iter().filter_map(JourneyLeg::line).any(|line| avoided.contains(&line));
        let mut journeys = answer.journeys.iter().filter(|journey| !uses(journey));
        let rides = |journey: &&Journey| journey.legs.iter().filter_map(JourneyLeg::line).count();
        let journey = if conditions.fewest_changes { journeys.min_by_key(rides) } else { journeys.next() }?;
        let legs: Vec<RouteLeg> = journey.legs.iter().filter_map(leg_of).collect();
        legs.iter().any(|leg| matches!(leg, RouteLeg::Ride(_))).then_some(())?;
        let clock = |text: &str| text.get(11..16).map(str::to_owned);
        let clocks = clock(&journey.start_date_time).zip(clock(&journey.arrival_date_time));
        let times = RouteTimes { seconds: journey.duration * 60, clocks, source: RouteSource::Planner };
        Some(LONDON.route_answer(ends, legs, times, conditions))
    }
}

/// Converts a leg from the journey planner to a leg of a route.
fn leg_of(leg: &JourneyLeg) -> Option<RouteLeg> {
    let name = |place: &Option<crate::tfl::Place>| {
        place.as_ref().map(|place| clean_name(&place.common_name)).unwrap_or_default()
    };
    let (from, to) = (name(&leg.departure_point), name(&leg.arrival_point));
    let seconds = leg.duration * 60;
    let Some(line) = leg.line() else {
        return Some(RouteLeg::Walk { from, to, seconds }).filter(|_| leg.duration > 0);
    };
    let id =
        |place: &Option<crate::tfl::Place>| place.as_ref().map(|place| place.naptan_id.clone()).unwrap_or_default();
    let directions = leg.route_options.first().map(|option| option.directions.as_slice()).unwrap_or_default();
    let towards = directions.first().map(|name| format!("towards {}", clean_name(name)));
    // The planner does not always list the stops.
    let stops = leg.path.as_ref().map(|path| path.stop_points.len()).filter(|stops| *stops > 0);
    let stops = stops.or_else(|| stops_between(line, &from, &to)).unwrap_or_default();
    Some(RouteLeg::Ride(RideLeg {
        line: find_line(line).map_or_else(|| line.to_owned(), |line| line.name.to_owned()),
        direction: String::new(),
        towards: towards.unwrap_or_else(|| threadkeep_transit::wording::LAST_STOP.to_owned()),
        from,
        from_stop: id(&leg.departure_point),
        to,
        to_stop: id(&leg.arrival_point),
        stops,
        seconds,
        departs: None,
        arrives: None,
    }))
}

/// Returns the number of stops of a ride between the stations with the given names, according to the built-in network.
fn stops_between(line: &str, from: &str, to: &str) -> Option<usize> {
    let ids = |name: &str| LONDON.places(name).into_iter().flat_map(|place| place.stations).collect::<Vec<_>>();
    let (from, to) = (ids(from), ids(to));
    let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from, to)));
    let rides = pairs.filter_map(|(from, to)| network().ride(line, from, to));
    rides.map(|ride| ride.stations.len() - 1).min()
}

/// Returns a station's name without TfL's additions, such as " Underground Station".
#[must_use]
pub fn clean_name(name: &str) -> String {
    let mut name = name.trim();
    for ending in [" Underground Station", " Rail Station", " DLR Station", " Station", "-Underground"] {
        // Battersea Power Station keeps its last word.
        if network().stations().iter().any(|known| known.name == name) {
            break;
        }
        name = name.strip_suffix(ending).unwrap_or(name);
    }
    for part in [" (H&C Line)", " (Circle Line)", " (Bakerloo)", " (Central)", " (Dist&Picc Line)", " (London)"] {
        name = name.strip_suffix(part).unwrap_or(name);
    }
    name.strip_prefix("London ")
        .filter(|rest| network().stations().iter().any(|known| known.name == *rest))
        .unwrap_or(name)
        .to_owned()
}
