//! What realtime messages change in a timetable.

use std::collections::HashSet;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use super::feed::{LiveFeed, LiveTrip};
use crate::schedule::service_day_start;
use crate::timetable::{PatternStop, StopTime, Timetable};

/// Trips that do not run as the timetable has them, and the runs that take their place or are added.
///
/// A trip of a message takes the place of the scheduled trip of the same name on its service day; one without such a
/// trip is added. A scheduled trip that a message leaves out, of a line and a period for which it claims to be complete,
/// does not run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// By trip of the timetable and service day.
    replaced: HashSet<(u32, Date)>,
    pub(crate) runs: Vec<LiveRun>,
    /// How many scheduled trips do not run at all.
    cancelled: usize,
    /// How many runs have a scheduled trip.
    matched: usize,
}

/// A run with times of its own.
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

    /// `None` for a time before the beginning, or absurdly long after it.
    pub(crate) fn since(&self, beginning: Timestamp) -> Option<StopTime> {
        const LONGEST_SECONDS: i64 = 4 * 86_400;
        let seconds = |at: Timestamp| {
            let seconds = at.duration_since(beginning).as_secs();
            u32::try_from(seconds).ok().filter(|_| seconds < LONGEST_SECONDS)
        };
        Some(StopTime { arrival: seconds(self.arrival)?, departure: seconds(self.departure)? })
    }
}

impl Changes {
    /// What some messages change in a timetable at `now`. Stale messages change nothing.
    pub fn new(timetable: &Timetable, feeds: &[LiveFeed], zone: &TimeZone, now: Timestamp) -> Self {
        let names = TripNames::new(timetable);
        let mut changes = Self::default();
        for feed in feeds.iter().filter(|feed| !feed.is_stale(now)) {
            for trip in feed.trips.iter().filter(|trip| !trip.is_overdue(now)) {
                changes.take_trip(timetable, &names, trip);
            }
            changes.cancel_left_out(timetable, feed, zone);
        }
        changes
    }

    /// How many scheduled trips were found not to run.
    pub fn cancelled_count(&self) -> usize {
        self.cancelled
    }

    /// How many runs take the place of a scheduled trip.
    pub fn matched_count(&self) -> usize {
        self.matched
    }

    /// How many runs have no scheduled trip.
    pub fn added_count(&self) -> usize {
        self.runs.len() - self.matched
    }

    pub(crate) fn replaces(&self, trip: u32, day: Date) -> bool {
        self.replaced.contains(&(trip, day))
    }

    fn take_trip(&mut self, timetable: &Timetable, names: &TripNames<'_>, trip: &LiveTrip) {
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
            // Two trips of a message with the name of one: the first took its place, the second is added.
            self.matched += usize::from(self.replaced.insert(key));
        }
        self.runs.push(LiveRun { trip: trip.id.clone(), route: trip.route.clone(), headsign, calls });
    }

    fn cancel_left_out(&mut self, timetable: &Timetable, feed: &LiveFeed, zone: &TimeZone) {
        let today = feed.made_at.to_zoned(zone.clone()).date();
        let days = [today.saturating_sub(1.day()), today, today.saturating_add(1.day())];
        let days = days.map(|day| (day, service_day_start(day, zone)));
        for period in &feed.replaced {
            let routes = routes_of(timetable, feed, &period.route);
            for (index, trip) in (0..).zip(&timetable.trips).filter(|(_, trip)| routes.contains(&trip.route)) {
                for (day, beginning) in days {
                    let starts_at = beginning + SignedDuration::from_secs(trip.start.into());
                    let is_inside = starts_at <= period.until && period.from.is_none_or(|from| starts_at >= from);
                    if is_inside && timetable.services[trip.service as usize].runs_on(day) {
                        self.cancelled += usize::from(self.replaced.insert((index, day)));
                    }
                }
            }
        }
    }
}

/// The lines that a period speaks of. New York names a line by its public name: S for the shuttle of this message, and
/// 6 for the express variant 6X as well; a line that the message has no train of is not meant.
fn routes_of(timetable: &Timetable, feed: &LiveFeed, name: &str) -> HashSet<u32> {
    let named = timetable.routes.iter().zip(0..).filter(|(route, _)| {
        let is_variant = route.name == name || route.id.strip_suffix('X') == Some(name);
        route.id == name || is_variant && feed.trips.iter().any(|trip| trip.route == route.id)
    });
    named.map(|(_, index)| index).collect()
}

/// The calls at platforms of the timetable, in time; points that are no stops for passengers are passed over.
fn calls_of(timetable: &Timetable, trip: &LiveTrip) -> Vec<LiveCall> {
    let mut calls: Vec<LiveCall> = Vec::with_capacity(trip.calls.len());
    for call in &trip.calls {
        let Some(platform) = timetable.platform(&call.platform) else { continue };
        let (Some(arrival), Some(departure)) = (call.at(), call.departure.or(call.arrival)) else { continue };
        // Predictions of neighbouring stops are made separately and may cross.
        let arrival = calls.last().map_or(arrival, |before| arrival.max(before.departure));
        calls.push(LiveCall { platform, arrival, departure: departure.max(arrival) });
    }
    calls
}

/// The trips of a timetable by the name that realtime feeds give them.
///
/// A feed calls a trip by its id, or as New York does by what follows the first underscore; lettered lines often leave
/// off the end of that as well.
struct TripNames<'a> {
    sorted: Vec<(&'a str, u32)>,
}

impl<'a> TripNames<'a> {
    fn new(timetable: &'a Timetable) -> Self {
        let trips = || (0..).zip(&timetable.trips);
        let tails = trips().filter_map(|(index, trip)| Some((trip.id.split_once('_')?.1, index)));
        let mut sorted: Vec<_> = trips().map(|(index, trip)| (trip.id.as_str(), index)).chain(tails).collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// The scheduled trip of a live one: of those with its name that run on its day, the one that calls at most of its
    /// platforms.
    fn find(&self, timetable: &Timetable, trip: &LiveTrip) -> Option<(u32, Date)> {
        /// A shorter beginning says too little.
        const SHORTEST_BEGINNING: usize = 6;
        /// Trips that may have one beginning: a name that begins more of them says too little, too.
        const NAMES: usize = 1_000;
        let day = trip.start_date?;
        let from = self.sorted.partition_point(|(name, _)| *name < trip.id.as_str());
        let is_long = trip.id.len() >= SHORTEST_BEGINNING;
        let is_named = |name: &str| name.starts_with(&trip.id) && (is_long || name.len() == trip.id.len());
        // Of the names with one beginning, the one that is no longer stands first.
        let named = self.sorted[from..].iter().take_while(|(name, _)| is_named(name)).take(NAMES);
        let platforms: HashSet<&str> = trip.calls.iter().map(|call| call.platform.as_str()).collect();
        let running = named
            .filter(|(_, index)| timetable.services[timetable.trips[*index as usize].service as usize].runs_on(day));
        // The shorter name is the better match where the platforms do not tell.
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
