//! Stations, networks and timetables: what assistants for public transport share.
//!
//! - [`Timetable`] is what a GTFS feed is read into, and kept as;
//! - [`Schedule`] is what is searched for journeys, with the trains on their way ([`Changes`]) merged in;
//! - [`LiveFeed`] is a realtime message.
//!
//! This crate fetches nothing and reads no clock: bytes and instants are arguments.
#![warn(missing_docs)]

mod feed;
mod names;
mod network;
mod realtime;
mod routing;
mod schedule;
mod timetable;
mod walks;

pub use feed::{FeedError, Problem};
pub use names::{Names, Place, Resolution, Vocabulary};
pub use network::{
    Line, LineFacts, LineRide, LineSequence, Network, NetworkError, NetworkLeg, NetworkPath, SECONDS_A_STOP, Station,
};
pub use realtime::{Arrival, Call, Changes, Direction, LiveError, LiveFeed, LiveTrip, Replacement};
pub use routing::{Journey, Leg, Query, Ride, Walk};
pub use schedule::{Schedule, Time};
pub use timetable::{CacheError, RouteRow, StationRow, Timetable, Trip};
pub use walks::Walks;
