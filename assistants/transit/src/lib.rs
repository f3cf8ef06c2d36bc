//! Stations, networks, timetables and realtime data for public transport assistants.
//!
//! - [`Timetable`] is the content of a GTFS feed;
//! - [`Schedule`] finds journeys; it combines a timetable with realtime [`Changes`];
//! - [`LiveFeed`] is a GTFS-Realtime message;
//! - [`System`] is a network with its names and words: the code that the assistants for riders share is written for it.
//!
//! [`offline`] recognises stations and lines in messages, [`tools`] and [`wording`] produce the answers, and [`fetch`]
//! requests live data.
//!
//! Apart from [`fetch`] and reading feeds from files, this crate does no I/O. It does not read the clock: instants are
//! arguments.
#![warn(missing_docs)]

mod chat_graph;
mod feed;
pub mod fetch;
mod meeting;
mod names;
mod network;
mod network_map;
pub mod offline;
mod place;
mod preferences;
mod realtime;
mod route;
mod routing;
mod schedule;
mod system;
mod timetable;
pub mod tools;
mod walks;
pub mod wording;

pub use chat_graph::{Routing, TurnState, TurnStateUpdate, USER_ID, chat_graph, routed_graph};
pub use feed::{FeedError, FieldProblem};
pub use meeting::{Change, Meeting, meeting};
pub use names::{Names, Place, Resolution, Vocabulary};
pub use network::{
    Line, LineDefinition, LineRide, LineSequence, Network, NetworkError, NetworkLeg, NetworkPath, PathConditions,
    SECONDS_A_STOP, Station,
};
pub use network_map::network_map;
pub use place::{Assumption, QueryError, StationMatch, StationView};
pub use preferences::{CommonTrip, RiderMemory};
pub use realtime::{Arrival, Call, Changes, Direction, LiveError, LiveFeed, LiveTrip, Replacement};
pub use route::{
    MetConditions, RideLeg, RouteAnswer, RouteLeg, RouteRequest, RouteSource, RouteTimes, TripConditions, TripEnds,
    rides,
};
pub use routing::{Journey, Leg, Query, Ride, Walk};
pub use schedule::{Schedule, Time};
pub use system::{System, SystemWords};
pub use timetable::{CacheError, RouteRow, StationRow, Timetable, Trip};
pub use walks::Walks;
