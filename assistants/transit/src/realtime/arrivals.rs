//! The departure board of a realtime message.

use jiff::Timestamp;

use super::feed::{Call, Direction, LiveFeed, LiveTrip};

/// A predicted stop of a train at a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// `route_id`.
    pub route: String,
    /// `trip_id`.
    pub trip: String,
    /// The platform's id.
    pub platform: String,
    /// The time of arrival, or of departure at the first stop of a trip.
    pub at: Timestamp,
    /// The railway direction, if the feed contains it.
    pub direction: Option<Direction>,
    /// The id of the last platform of the trip.
    pub last_platform: String,
    /// Whether a train is assigned. Otherwise the trip is only planned.
    pub is_assigned: bool,
    /// Whether the train has not moved for more than 90 seconds.
    pub is_stalled: bool,
    /// Whether the train is rerouted, so it may not stop here.
    pub is_rerouted: bool,
}

impl LiveFeed {
    /// Returns the arrivals at the matching platforms from `now` on, soonest first.
    ///
    /// Omits trains that have departed, cancelled trips, and overdue planned trips.
    pub fn arrivals(&self, is_requested: impl Fn(&str) -> bool, now: Timestamp) -> Vec<Arrival> {
        let running = self.trips.iter().filter(|trip| !trip.is_cancelled && !trip.is_overdue(now));
        let calls = running.flat_map(|trip| trip.calls.iter().map(move |call| (trip, call)));
        let requested = calls.filter(|(_, call)| is_requested(&call.platform));
        let mut arrivals: Vec<Arrival> = requested
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
