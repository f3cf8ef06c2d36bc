//! A departure board.

use jiff::Timestamp;

use super::feed::{Call, Direction, LiveFeed, LiveTrip};

/// A train that is about to call at a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// `route_id`.
    pub route: String,
    /// `trip_id`.
    pub trip: String,
    /// The platform's id.
    pub platform: String,
    /// When the train is there.
    pub at: Timestamp,
    /// The railway direction, where the feed tells it.
    pub direction: Option<Direction>,
    /// The last platform of the trip, by id.
    pub last_platform: String,
    /// Whether a train is on its way; otherwise the trip is only planned.
    pub is_assigned: bool,
    /// Whether the train has not moved for more than 90 seconds.
    pub is_stalled: bool,
    /// Whether the train was rerouted, so that it may not call here.
    pub is_rerouted: bool,
}

impl LiveFeed {
    /// The trains that call at any of the platforms from `now` on, soonest first.
    ///
    /// Left out are trains that have gone, trips that are cancelled, and planned trips that should have begun.
    pub fn arrivals(&self, is_asked_for: impl Fn(&str) -> bool, now: Timestamp) -> Vec<Arrival> {
        let running = self.trips.iter().filter(|trip| !trip.is_cancelled && !trip.is_overdue(now));
        let calls = running.flat_map(|trip| trip.calls.iter().map(move |call| (trip, call)));
        let asked_for = calls.filter(|(_, call)| is_asked_for(&call.platform));
        let mut arrivals: Vec<Arrival> = asked_for
            .filter_map(|(trip, call)| arrival_of(trip, call, now))
            .filter(|arrival| arrival.at >= now)
            .collect();
        arrivals.sort_by(|one, other| one.at.cmp(&other.at).then_with(|| one.trip.cmp(&other.trip)));
        arrivals
    }
}

fn arrival_of(trip: &LiveTrip, call: &Call, now: Timestamp) -> Option<Arrival> {
    Some(Arrival {
        route: trip.route.clone(),
        trip: trip.id.clone(),
        platform: call.platform.clone(),
        at: call.at()?,
        direction: trip.direction,
        last_platform: trip.calls.last()?.platform.clone(),
        is_assigned: trip.is_assigned,
        is_stalled: trip.is_stalled(now),
        is_rerouted: trip.calls.iter().any(|call| call.is_rerouted),
    })
}
