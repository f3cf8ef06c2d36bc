//! Journeys through a [`Schedule`]: the earliest arrival, the latest departure, and alternatives.
//!
//! The search runs in rounds with one more ride each (Delling, Pajor and Werneck, "Round-Based Public Transit Routing", 2012),
//! so that it also finds journeys with fewer changes than the fastest one. Decision record 0009 explains why this crate has its
//! own implementation.

mod journey;
mod search;

use crate::schedule::{RunSource, Schedule, Time};
pub use journey::{Journey, Leg, Ride, Walk};
use search::{FoundJourney, Request};

/// A query to a [`Schedule`].
///
/// Origin and destination are sets of alternative stations, such as the stations of one complex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query<'a> {
    /// Ids of the origin stations. Unknown ids are ignored.
    pub from: Vec<&'a str>,
    /// Ids of the destination stations. Unknown ids are ignored.
    pub to: Vec<&'a str>,
    /// The maximum number of changes of trains.
    pub max_changes: u32,
    /// Whether walking between stations is allowed: before the first ride, between rides and after the last.
    pub may_walk: bool,
    /// Whether to use only platforms that are wheelchair accessible, according to [`Schedule::set_accessible`] or the feed.
    pub accessible_only: bool,
    /// Ids of routes to avoid. Unknown ids are ignored.
    pub avoid: Vec<&'a str>,
}

impl<'a> Query<'a> {
    /// Creates a query between two stations, with up to four changes and with walking.
    pub fn new(from: &'a str, to: &'a str) -> Self {
        Self::between(vec![from], vec![to])
    }

    /// Creates a query between two sets of stations, with up to four changes and with walking.
    pub fn between(from: Vec<&'a str>, to: Vec<&'a str>) -> Self {
        Self { from, to, max_changes: 4, may_walk: true, accessible_only: false, avoid: Vec::new() }
    }

    /// Creates a query for a direct ride, without changes or walking.
    pub fn one_seat(from: &'a str, to: &'a str) -> Self {
        Self { max_changes: 0, may_walk: false, ..Self::new(from, to) }
    }
}

impl Schedule {
    /// Returns the journey with the earliest arrival that leaves at or after a time. Ties are broken by the fewest changes, then
    /// by the latest departure.
    ///
    /// Returns `None` if there is no journey, the stations are unknown, or origin and destination are the same.
    pub fn earliest_arrival(&self, query: &Query<'_>, not_before: Time) -> Option<Journey> {
        let found = self.search_forward(query, not_before).pop()?;
        Some(self.with_latest_departure(query, found, not_before))
    }

    /// Returns the journey with the latest departure that arrives at or before a time. Ties are broken by the fewest changes,
    /// then by the earliest arrival.
    pub fn latest_departure(&self, query: &Query<'_>, arrive_by: Time) -> Option<Journey> {
        let request = self.request(query, true);
        let found = search::run(self.mirrored(), &request, self.layout.mirror_time(arrive_by.0)).pop()?;
        let latest = found.to_journey_in_mirror(self);
        let same_changes = Query { max_changes: found.changes(), ..query.clone() };
        let request = Request { before: arrive_by.0.saturating_add(1), ..self.request(&same_changes, false) };
        let first = search::run(&self.layout, &request, latest.departs().0).pop();
        Some(first.map_or(latest, |first| first.to_journey(self)))
    }

    /// Returns, for each number of changes, the journey with the earliest arrival if it arrives before all journeys
    /// with fewer changes. Sorted by changes, so the last one is the [`earliest_arrival`](Self::earliest_arrival).
    pub fn choices(&self, query: &Query<'_>, not_before: Time) -> Vec<Journey> {
        let found = self.search_forward(query, not_before).into_iter();
        found.map(|found| self.with_latest_departure(query, found, not_before)).collect()
    }

    /// Returns the Pareto-optimal journeys by departure, arrival and changes that leave within three hours of `not_before`. At
    /// most `count`, sorted by departure.
    pub fn alternatives(&self, query: &Query<'_>, not_before: Time, count: usize) -> Vec<Journey> {
        const WINDOW_SECONDS: u32 = 3 * 3600;
        let mut journeys: Vec<Journey> = Vec::new();
        let mut at = not_before;
        while journeys.len() < count && at.0 <= not_before.0.saturating_add(WINDOW_SECONDS) {
            let round = self.choices(query, at);
            let Some(earliest) = round.iter().map(Journey::departs).min() else { break };
            for journey in round {
                if !journeys.iter().any(|known| known.is_as_good_as(&journey)) {
                    journeys.retain(|known| !journey.is_as_good_as(known));
                    journeys.push(journey);
                }
            }
            at = Time(earliest.0 + 1);
        }
        journeys.sort_by_key(|journey| (journey.departs(), journey.arrives(), journey.changes()));
        journeys.truncate(count);
        journeys
    }

    /// Returns a journey for each number of changes that improves the arrival, fewest changes first.
    fn search_forward(&self, query: &Query<'_>, not_before: Time) -> Vec<FoundJourney> {
        search::run(&self.layout, &self.request(query, false), not_before.0)
    }

    /// Returns the journey with the same arrival and number of changes that has the latest departure.
    fn with_latest_departure(&self, query: &Query<'_>, found: FoundJourney, not_before: Time) -> Journey {
        let same_changes = Query { max_changes: found.changes(), ..query.clone() };
        let at = self.layout.mirror_time(found.arrival());
        let before = self.layout.mirror_time(not_before.0).saturating_add(1);
        let last = search::run(self.mirrored(), &Request { before, ..self.request(&same_changes, true) }, at).pop();
        last.map_or_else(|| found.to_journey(self), |last| last.to_journey_in_mirror(self))
    }

    fn request(&self, query: &Query<'_>, is_mirrored: bool) -> Request<'_> {
        let stations = |ids: &[&str]| -> Vec<u32> { ids.iter().filter_map(|id| self.timetable.station(id)).collect() };
        let (from, to) = (stations(&query.from), stations(&query.to));
        let (from, to) = if is_mirrored { (to, from) } else { (from, to) };
        Request {
            from,
            to,
            max_rides: query.max_changes.saturating_add(1).min(search::MAX_RIDES),
            may_walk: query.may_walk,
            before: search::NEVER,
            platforms: query.accessible_only.then_some(&self.accessible),
            blocked: self.blocked(&query.avoid, is_mirrored),
        }
    }

    /// Returns, for each sequence, whether it belongs to one of the routes to avoid; empty if there are none.
    fn blocked(&self, avoid: &[&str], is_mirrored: bool) -> Vec<bool> {
        if avoid.is_empty() {
            return Vec::new();
        }
        let layout = if is_mirrored { self.mirrored() } else { &self.layout };
        let sequences = (0..).zip(&layout.sequences);
        sequences.map(|(number, _)| avoid.contains(&self.route_of(layout.run(number, 0).source))).collect()
    }

    /// Returns the id of a run's route.
    pub(crate) fn route_of(&self, source: RunSource) -> &str {
        match source {
            RunSource::Scheduled { trip, .. } => {
                let row = &self.timetable.trips[trip as usize];
                &self.timetable.routes[row.route as usize].id
            }
            RunSource::Live { index } => &self.layout.live[index as usize].route,
        }
    }
}
