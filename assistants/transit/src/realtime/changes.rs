//! Applies realtime messages to a timetable.

use std::collections::HashSet;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use super::feed::{LiveFeed, LiveTrip};
use crate::schedule::service_day_start;
use crate::timetable::{PatternStop, StopTime, Timetable};

/// The changes of realtime messages to a timetable: replaced, added and cancelled trips.
///
/// A realtime trip replaces the scheduled trip with the same name on its service day, or is added if there is none. If a
/// message claims to be complete for a line and period, scheduled trips that it does not contain are cancelled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Replaced or cancelled trips, by trip index and service day.
    replaced: HashSet<(u32, Date)>,
    pub(crate) runs: Vec<LiveRun>,
    /// The number of cancelled scheduled trips.
    cancelled: usize,
    /// The number of runs that replace a scheduled trip.
    matched: usize,
}

/// A run with realtime times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveRun {
    pub(crate) trip: String,
    pub(crate) route: String,
    pub(crate) headsign: String,
    pub(crate) calls: Vec<LiveCall>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LiveCall {
    platform: u32,
    arrival: Timestamp,
    departure: Timestamp,
}

impl LiveCall {
    pub(crate) fn stop(&self) -> PatternStop {
        PatternStop { platform: self.platform, may_board: true, may_alight: true }
    }

    /// Converts the times to seconds since `start`. Returns `None` if one is before `start` or more than four days after it.
    pub(crate) fn since(&self, start: Timestamp) -> Option<StopTime> {
        const MAX_SECONDS: i64 = 4 * 86_400;
        let seconds = |at: Timestamp| {
            let seconds = at.duration_since(start).as_secs();
            u32::try_from(seconds).ok().filter(|_| seconds < MAX_SECONDS)
        };
        Some(StopTime { arrival: seconds(self.arrival)?, departure: seconds(self.departure)? })
    }
}

impl Changes {
    /// Computes the changes of messages to a timetable at `now`. Stale messages are ignored.
    pub fn new(timetable: &Timetable, feeds: &[LiveFeed], zone: &TimeZone, now: Timestamp) -> Self {
        let names = TripNames::new(timetable);
        let mut changes = Self::default();
        for feed in feeds.iter().filter(|feed| !feed.is_stale(now)) {
            for trip in feed.trips.iter().filter(|trip| !trip.is_overdue(now)) {
                changes.apply_trip(timetable, &names, trip);
            }
            changes.cancel_missing(timetable, feed, zone);
        }
        changes
    }

    /// Returns the number of cancelled scheduled trips.
    pub fn cancelled_count(&self) -> usize {
        self.cancelled
    }

    /// Returns the number of runs that replace a scheduled trip.
    pub fn matched_count(&self) -> usize {
        self.matched
    }

    /// Returns the number of added runs.
    pub fn added_count(&self) -> usize {
        self.runs.len() - self.matched
    }

    pub(crate) fn replaces(&self, trip: u32, day: Date) -> bool {
        self.replaced.contains(&(trip, day))
    }

    fn apply_trip(&mut self, timetable: &Timetable, names: &TripNames<'_>, trip: &LiveTrip) {
        let calls = calls_of(timetable, trip);
        let scheduled = names.find(timetable, trip);
        if trip.is_cancelled {
            self.cancelled += usize::from(scheduled.is_some_and(|key| self.replaced.insert(key)));
            return;
        }
        let Some(last) = calls.last().filter(|_| calls.len() > 1) else { return };
        let station = timetable.platforms[last.platform as usize].station;
        let headsign = match scheduled {
            Some((index, _)) => timetable.trips[index as usize].headsign.clone(),
            None => timetable.stations[station as usize].name.clone(),
        };
        if let Some(key) = scheduled {
            // If two realtime trips match one scheduled trip, the first replaces it and the second is added.
            self.matched += usize::from(self.replaced.insert(key));
        }
        self.runs.push(LiveRun { trip: trip.id.clone(), route: trip.route.clone(), headsign, calls });
    }

    fn cancel_missing(&mut self, timetable: &Timetable, feed: &LiveFeed, zone: &TimeZone) {
        let today = feed.made_at.to_zoned(zone.clone()).date();
        let days = [today.saturating_sub(1.day()), today, today.saturating_add(1.day())];
        let days = days.map(|day| (day, service_day_start(day, zone)));
        for period in &feed.replaced {
            let routes = routes_of(timetable, feed, &period.route);
            for (index, trip) in (0..).zip(&timetable.trips).filter(|(_, trip)| routes.contains(&trip.route)) {
                for (day, day_start) in days {
                    let starts_at = day_start + SignedDuration::from_secs(trip.start.into());
                    let is_inside = starts_at <= period.until && period.from.is_none_or(|from| starts_at >= from);
                    if is_inside && timetable.services[trip.service as usize].runs_on(day) {
                        self.cancelled += usize::from(self.replaced.insert((index, day)));
                    }
                }
            }
        }
    }
}

/// Returns the routes of a replacement period. New York uses public names: S for the shuttle of this message, and 6 for the
/// express variant 6X as well. Such a route matches only if the message contains one of its trips.
fn routes_of(timetable: &Timetable, feed: &LiveFeed, name: &str) -> HashSet<u32> {
    let named = timetable.routes.iter().zip(0..).filter(|(route, _)| {
        let is_variant = route.name == name || route.id.strip_suffix('X') == Some(name);
        route.id == name || is_variant && feed.trips.iter().any(|trip| trip.route == route.id)
    });
    named.map(|(_, index)| index).collect()
}

/// Returns the calls at platforms of the timetable, with ascending times. Other points are ignored.
fn calls_of(timetable: &Timetable, trip: &LiveTrip) -> Vec<LiveCall> {
    let mut calls: Vec<LiveCall> = Vec::with_capacity(trip.calls.len());
    for call in &trip.calls {
        let Some(platform) = timetable.platform(&call.platform) else { continue };
        let (Some(arrival), Some(departure)) = (call.at(), call.departure.or(call.arrival)) else { continue };
        // Stops are predicted independently, so an arrival can be before the previous departure.
        let arrival = calls.last().map_or(arrival, |before| arrival.max(before.departure));
        calls.push(LiveCall { platform, arrival, departure: departure.max(arrival) });
    }
    calls
}

/// The trips of a timetable by their name in realtime feeds.
///
/// A feed identifies a trip by its id or, as in New York, by the part after the first underscore. For lettered lines the end of
/// that part is often missing as well.
struct TripNames<'a> {
    sorted: Vec<(&'a str, u32)>,
}

impl<'a> TripNames<'a> {
    fn new(timetable: &'a Timetable) -> Self {
        let trips = || (0..).zip(&timetable.trips);
        let suffixes = trips().filter_map(|(index, trip)| Some((trip.id.split_once('_')?.1, index)));
        let mut sorted: Vec<_> = trips().map(|(index, trip)| (trip.id.as_str(), index)).chain(suffixes).collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// Finds the scheduled trip of a realtime trip: of those with a matching name that run on its day, the one that shares the
    /// most platforms.
    fn find(&self, timetable: &Timetable, trip: &LiveTrip) -> Option<(u32, Date)> {
        /// A shorter prefix would match too many trips.
        const MIN_PREFIX_BYTES: usize = 6;
        /// The maximum number of names that are compared for a prefix.
        const MAX_NAMES: usize = 1_000;
        let day = trip.start_date?;
        let from = self.sorted.partition_point(|(name, _)| *name < trip.id.as_str());
        let is_long = trip.id.len() >= MIN_PREFIX_BYTES;
        let is_named = |name: &str| name.starts_with(&trip.id) && (is_long || name.len() == trip.id.len());
        // An exact match sorts before longer names with the same prefix.
        let named = self.sorted[from..].iter().take_while(|(name, _)| is_named(name)).take(MAX_NAMES);
        let platforms: HashSet<&str> = trip.calls.iter().map(|call| call.platform.as_str()).collect();
        let running = named
            .filter(|(_, index)| timetable.services[timetable.trips[*index as usize].service as usize].runs_on(day));
        // If they share equally many platforms, the shorter name is the better match.
        let best = running.max_by_key(|(name, index)| {
            (
                name.len() == trip.id.len(),
                shared_platforms(timetable, *index, &platforms),
                std::cmp::Reverse(name.len()),
            )
        })?;
        Some((best.1, day))
    }
}

fn shared_platforms(timetable: &Timetable, index: u32, platforms: &HashSet<&str>) -> usize {
    let stops = &timetable.pattern_of(&timetable.trips[index as usize]).stops;
    stops.iter().filter(|stop| platforms.contains(timetable.platforms[stop.platform as usize].id.as_str())).count()
}
