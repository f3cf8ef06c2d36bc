//! A compact timetable: stations, lines, services and trips.
//!
//! Trips with the same platforms share a [`Pattern`]. Trips that also have the same relative times share a [`Profile`], so that
//! a trip consists of a profile and a start time. A timetable is read from a feed ([`Timetable::from_zip`],
//! [`Timetable::from_folder`]) or from a cache ([`Timetable::from_cache`]), and is searched as a [`Schedule`](crate::Schedule).

mod cache;
mod calendar;

use serde::{Deserialize, Serialize};

pub use cache::CacheError;
pub(crate) use calendar::{Service, date_number};

/// The content of a GTFS feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timetable {
    pub(crate) timezone: String,
    /// Sorted by id, as are platforms, routes, services and trips.
    pub(crate) stations: Vec<StationRow>,
    pub(crate) platforms: Vec<PlatformRow>,
    pub(crate) routes: Vec<RouteRow>,
    pub(crate) services: Vec<Service>,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) trips: Vec<TripRow>,
    pub(crate) transfers: Vec<Transfer>,
}

/// A station of the feed: a parent station, or a stop without a parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StationRow {
    /// `stop_id` of the station.
    pub id: String,
    /// `stop_name`.
    pub name: String,
    /// The latitude in degrees.
    pub latitude: f64,
    /// The longitude in degrees.
    pub longitude: f64,
}

/// A platform of the feed, where trips stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlatformRow {
    pub(crate) id: String,
    pub(crate) station: u32,
    /// `wheelchair_boarding`, inherited from the station if the platform has no value.
    pub(crate) wheelchair: Option<bool>,
}

/// A line of the feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouteRow {
    /// `route_id`.
    pub id: String,
    /// The public name: `route_short_name`, else the id.
    pub name: String,
}

/// The platforms of a trip, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Pattern {
    pub(crate) stops: Vec<PatternStop>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct PatternStop {
    pub(crate) platform: u32,
    pub(crate) may_board: bool,
    pub(crate) may_alight: bool,
}

/// A pattern and the seconds from the trip's start to each arrival and departure.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Profile {
    pub(crate) pattern: u32,
    pub(crate) times: Vec<StopTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct StopTime {
    pub(crate) arrival: u32,
    pub(crate) departure: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TripRow {
    pub(crate) id: String,
    pub(crate) route: u32,
    pub(crate) service: u32,
    pub(crate) headsign: String,
    pub(crate) profile: u32,
    /// Seconds since the start of the service day.
    pub(crate) start: u32,
}

/// A walk between two stations, or a change of trains within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transfer {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) seconds: u32,
}

impl Timetable {
    /// Returns the IANA name of the feed's time zone.
    pub fn timezone(&self) -> &str {
        &self.timezone
    }

    /// Returns all stations, sorted by id.
    pub fn stations(&self) -> &[StationRow] {
        &self.stations
    }

    /// Returns all lines, sorted by id. A line can have no trips.
    pub fn routes(&self) -> &[RouteRow] {
        &self.routes
    }

    /// Returns the number of trips of all services.
    pub fn trip_count(&self) -> usize {
        self.trips.len()
    }

    /// Returns the direct rides between two stations on one line and service, in order of departure: the departure in seconds
    /// since the start of the service day, and the duration in seconds.
    pub fn ride_times(&self, route: &str, service: &str, from: &str, to: &str) -> Vec<(u32, u32)> {
        let (Some(from), Some(to)) = (self.station(from), self.station(to)) else { return Vec::new() };
        let station_of = |platform: u32| self.platforms[platform as usize].station;
        // Each pattern is scanned once for all its trips.
        let spans: Vec<Option<(usize, usize)>> = self
            .patterns
            .iter()
            .map(|pattern| {
                let start = pattern.stops.iter().position(|stop| station_of(stop.platform) == from)?;
                let length = pattern.stops[start..].iter().position(|stop| station_of(stop.platform) == to)?;
                (length > 0).then_some((start, start + length))
            })
            .collect();
        let is_requested = |trip: &&TripRow| {
            self.routes[trip.route as usize].id == route && self.services[trip.service as usize].id == service
        };
        let rides = self.trips.iter().filter(is_requested).filter_map(|trip| {
            let profile = self.profile_of(trip);
            let (board, alight) = spans[profile.pattern as usize]?;
            let departure = profile.times[board].departure;
            Some((trip.start + departure, profile.times[alight].arrival - departure))
        });
        let mut rides: Vec<(u32, u32)> = rides.collect();
        rides.sort_unstable();
        rides
    }

    pub(crate) fn station(&self, id: &str) -> Option<u32> {
        index_by(&self.stations, |station| &station.id, id)
    }

    pub(crate) fn platform(&self, id: &str) -> Option<u32> {
        index_by(&self.platforms, |platform| &platform.id, id)
    }

    /// Returns all trips, sorted by id.
    pub fn trips(&self) -> impl Iterator<Item = Trip<'_>> {
        self.trips.iter().map(|row| Trip { timetable: self, row })
    }

    pub(crate) fn profile_of(&self, trip: &TripRow) -> &Profile {
        &self.profiles[trip.profile as usize]
    }

    pub(crate) fn pattern_of(&self, trip: &TripRow) -> &Pattern {
        &self.patterns[self.profile_of(trip).pattern as usize]
    }
}

/// A trip of a [`Timetable`].
#[derive(Debug, Clone, Copy)]
pub struct Trip<'a> {
    timetable: &'a Timetable,
    row: &'a TripRow,
}

impl<'a> Trip<'a> {
    /// `trip_id`.
    pub fn id(&self) -> &'a str {
        &self.row.id
    }

    /// `route_id`.
    pub fn route(&self) -> &'a str {
        &self.timetable.routes[self.row.route as usize].id
    }

    /// `service_id`.
    pub fn service(&self) -> &'a str {
        &self.timetable.services[self.row.service as usize].id
    }

    /// Returns the ids of the trip's platforms, with arrival and departure in seconds since the start of the service day.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = (&'a str, u32, u32)> {
        let (timetable, start) = (self.timetable, self.row.start);
        let stops = &timetable.pattern_of(self.row).stops;
        stops.iter().zip(&timetable.profile_of(self.row).times).map(move |(stop, time)| {
            let platform = &timetable.platforms[stop.platform as usize];
            (platform.id.as_str(), start + time.arrival, start + time.departure)
        })
    }
}

fn index_by<T>(sorted: &[T], id_of: impl Fn(&T) -> &String, id: &str) -> Option<u32> {
    let found = sorted.binary_search_by(|row| id_of(row).as_str().cmp(id));
    found.ok().map(|index| u32::try_from(index).expect("tables are bounded far below 2^32 rows"))
}
