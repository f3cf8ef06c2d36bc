//! Journeys through a [`Schedule`]: the earliest arrival, the latest departure, and what else there is to choose from.
//!
//! The search goes by rounds, one more ride in each (Delling, Pajor and Werneck, "Round-Based Public Transit Routing",
//! 2012), so that a journey with fewer changes is never hidden by a faster one. Decision record 0008 says why it is our
//! own.

mod journey;
mod search;

use crate::schedule::{Schedule, Time};
pub use journey::{Journey, Leg, Ride, Walk};
use search::{Found, Request};

/// What is asked of a [`Schedule`].
///
/// Origin and destination are sets of stations: any of them will do, as with the stations of one complex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query<'a> {
    /// Station ids to start from. Unknown ids count for nothing.
    pub from: Vec<&'a str>,
    /// Station ids to come to.
    pub to: Vec<&'a str>,
    /// How often to change trains at most.
    pub max_changes: u32,
    /// Whether to walk between stations: before the first ride, between rides and after the last.
    pub may_walk: bool,
    /// Whether to board and alight only where [`Schedule::set_accessible`] or the feed says that a wheelchair can.
    pub accessible_only: bool,
}

impl<'a> Query<'a> {
    /// A journey between two stations with up to four changes, on foot where it helps.
    pub fn new(from: &'a str, to: &'a str) -> Self {
        Self::between(vec![from], vec![to])
    }

    /// A journey between any of some stations and any of others.
    pub fn between(from: Vec<&'a str>, to: Vec<&'a str>) -> Self {
        Self { from, to, max_changes: 4, may_walk: true, accessible_only: false }
    }

    /// A single ride: transfers switched off.
    pub fn one_seat(from: &'a str, to: &'a str) -> Self {
        Self { max_changes: 0, may_walk: false, ..Self::new(from, to) }
    }
}

impl Schedule {
    /// The journey that arrives first of those that leave at or after a time; of several the one with the fewest
    /// changes, and of those the one that leaves last.
    ///
    /// `None` where there is no journey, the stations are unknown, or origin and destination are the same.
    pub fn earliest_arrival(&self, query: &Query<'_>, not_before: Time) -> Option<Journey> {
        let found = self.forwards(query, not_before).pop()?;
        Some(self.leaving_last(query, found, not_before))
    }

    /// The journey that leaves last of those that arrive at or before a time; of several the one with the fewest
    /// changes, and of those the one that arrives first.
    pub fn latest_departure(&self, query: &Query<'_>, arrive_by: Time) -> Option<Journey> {
        let request = self.request(query, true);
        let found = search::run(self.mirrored(), &request, self.layout.mirror_time(arrive_by.0)).pop()?;
        let latest = found.to_journey_in_mirror(self);
        let again = Query { max_changes: found.changes(), ..query.clone() };
        let request = Request { before: arrive_by.0.saturating_add(1), ..self.request(&again, false) };
        let first = search::run(&self.layout, &request, latest.departs().0).pop();
        Some(first.map_or(latest, |first| first.to_journey(self)))
    }

    /// For each number of changes the journey that arrives first, where it arrives before all with fewer changes; fewest
    /// changes first, so that the last is the [`earliest_arrival`](Self::earliest_arrival).
    pub fn choices(&self, query: &Query<'_>, not_before: Time) -> Vec<Journey> {
        let found = self.forwards(query, not_before).into_iter();
        found.map(|found| self.leaving_last(query, found, not_before)).collect()
    }

    /// The journeys from `not_before` on of which none is worse than another in departure, arrival and changes, in
    /// order of departure; at most `count`, leaving within three hours.
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

    /// One journey for each number of changes that arrives earlier than all with fewer, fewest changes first.
    fn forwards(&self, query: &Query<'_>, not_before: Time) -> Vec<Found> {
        search::run(&self.layout, &self.request(query, false), not_before.0)
    }

    /// The same arrival with the same number of changes, leaving as late as can be.
    fn leaving_last(&self, query: &Query<'_>, found: Found, not_before: Time) -> Journey {
        let again = Query { max_changes: found.changes(), ..query.clone() };
        let at = self.layout.mirror_time(found.arrival());
        let before = self.layout.mirror_time(not_before.0).saturating_add(1);
        let last = search::run(self.mirrored(), &Request { before, ..self.request(&again, true) }, at).pop();
        last.map_or_else(|| found.to_journey(self), |last| last.to_journey_in_mirror(self))
    }

    fn request(&self, query: &Query<'_>, is_mirrored: bool) -> Request<'_> {
        let stations = |ids: &[&str]| -> Vec<u32> { ids.iter().filter_map(|id| self.timetable.station(id)).collect() };
        let (from, to) = (stations(&query.from), stations(&query.to));
        let (from, to) = if is_mirrored { (to, from) } else { (from, to) };
        Request {
            from,
            to,
            max_rides: query.max_changes.saturating_add(1).min(search::MOST_RIDES),
            may_walk: query.may_walk,
            before: search::NEVER,
            platforms: query.accessible_only.then_some(&self.accessible),
        }
    }
}
