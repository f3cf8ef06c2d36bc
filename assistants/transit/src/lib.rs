//! Stations, networks, timetables and realtime data for public transport assistants.
//!
//! - [`Timetable`] is the content of a GTFS feed;
//! - [`Schedule`] is searched for journeys; it combines a timetable with realtime [`Changes`];
//! - [`LiveFeed`] is a GTFS-Realtime message.
//!
//! This crate does no I/O except reading feeds from files, and does not read the clock: instants are arguments.
#![warn(missing_docs)]

mod feed;
mod names;
mod network;
mod realtime;
mod routing;
mod schedule;
mod timetable;
mod walks;

pub use feed::{FeedError, FieldProblem};
pub use names::{Names, Place, Resolution, Vocabulary};
pub use network::{
    Line, LineDefinition, LineRide, LineSequence, Network, NetworkError, NetworkLeg, NetworkPath, PathConditions,
    SECONDS_A_STOP, Station,
};
pub use realtime::{Arrival, Call, Changes, Direction, LiveError, LiveFeed, LiveTrip, Replacement};
pub use routing::{Journey, Leg, Query, Ride, Walk};
pub use schedule::{Schedule, Time};
pub use timetable::{CacheError, RouteRow, StationRow, Timetable, Trip};
pub use walks::Walks;
