//! A timetable as it is kept: stations, lines, services and trips, in little room.
//!
//! Trips that call at the same platforms share a [`Pattern`]; trips that also take the same time between them share a
//! [`Profile`], so that a trip is a profile and a start. It comes from a feed ([`Timetable::from_zip`],
//! [`Timetable::from_folder`]) or from a cache ([`Timetable::from_cache`]); it is searched as a
//! [`Schedule`](crate::Schedule).

mod cache;
mod calendar;

use serde::{Deserialize, Serialize};

pub use cache::CacheError;
pub(crate) use calendar::{Service, date_number};

/// Everything that a feed says about who runs where and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timetable {
    pub(crate) timezone: String,
    /// By id, as are platforms, routes, services and trips.
    pub(crate) stations: Vec<StationRow>,
    pub(crate) platforms: Vec<PlatformRow>,
    pub(crate) routes: Vec<RouteRow>,
    pub(crate) services: Vec<Service>,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) trips: Vec<TripRow>,
    pub(crate) transfers: Vec<Transfer>,
}

/// A station of the feed: a parent station, or a stop that has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StationRow {
    /// `stop_id` of the parent.
    pub id: String,
    /// `stop_name`.
    pub name: String,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

/// A platform of the feed: what a trip calls at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlatformRow {
    pub(crate) id: String,
    pub(crate) station: u32,
    /// `wheelchair_boarding`, inherited from the station where the platform says nothing.
    pub(crate) wheelchair: Option<bool>,
}

/// A line of the feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouteRow {
    /// `route_id`.
    pub id: String,
    /// What the line is called in public: `route_short_name`, or the id where there is none.
    pub name: String,
}

/// The platforms that a trip calls at, in order.
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
    /// Seconds after the beginning of the service day.
    pub(crate) start: u32,
}

/// A way on foot between two stations, or the change of trains within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transfer {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) seconds: u32,
}

impl Timetable {
    /// The IANA name of the time zone that all times of the feed are in.
    pub fn timezone(&self) -> &str {
        &self.timezone
    }

    /// All stations, by id.
    pub fn stations(&self) -> &[StationRow] {
        &self.stations
    }

    /// All lines, by id. A line may have no trips.
    pub fn routes(&self) -> &[RouteRow] {
        &self.routes
    }

    /// How many trips the feed has, over all services.
    pub fn trip_count(&self) -> usize {
        self.trips.len()
    }

    /// The rides on one line between two stations without a change, of the trips of one service: when each departs, in
    /// seconds of the service day, and how many seconds it takes; in order of departure.
    pub fn ride_times(&self, route: &str, service: &str, from: &str, to: &str) -> Vec<(u32, u32)> {
        let (Some(from), Some(to)) = (self.station(from), self.station(to)) else { return Vec::new() };
        let station_of = |platform: u32| self.platforms[platform as usize].station;
        // A pattern is looked through once for all its trips.
        let spans: Vec<Option<(usize, usize)>> = self
            .patterns
            .iter()
            .map(|pattern| {
                let start = pattern.stops.iter().position(|stop| station_of(stop.platform) == from)?;
                let length = pattern.stops[start..].iter().position(|stop| station_of(stop.platform) == to)?;
                (length > 0).then_some((start, start + length))
            })
            .collect();
        let is_asked_for = |trip: &&TripRow| {
            self.routes[trip.route as usize].id == route && self.services[trip.service as usize].id == service
        };
        let rides = self.trips.iter().filter(is_asked_for).filter_map(|trip| {
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

    /// All trips that ever run, by id.
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

    /// The ids of the platforms that the trip calls at, with arrival and departure in seconds of the service day.
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
