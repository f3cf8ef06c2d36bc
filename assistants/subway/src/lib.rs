//! An assistant for the New York subway: stations and lines, routes, live trains, and local-or-express comparisons.
//!
//! Pass [`SubwayAssistant`] to an agent. Without a language model, it answers with its [`offline_model`]. [`PLUGIN`] registers
//! the assistant with a program.
//!
//! [`Subway`] answers queries. Its methods and the free functions of this crate implement the tools that a model calls: they
//! take typed arguments, and return answers that serialise to JSON or a [`QueryError`] that says what to ask the user. The
//! built-in [`network`] is sufficient; a timetable adds scheduled times, and the MTA's feeds add live trains.
#![warn(missing_docs)]

mod arrivals;
mod assistant;
mod compare;
mod direction;
mod gtfs;
mod info;
mod live;
mod map;
mod offline;
mod place;
mod plugin;
mod preferences;
mod prompt;
mod route;
mod service;
mod subway;
mod system;
mod tools;
mod transfer;
mod travel;
mod vocabulary;
mod wording;

pub use arrivals::{ArrivalsAnswer, LiveStatus, TrainArrival};
pub use assistant::SubwayAssistant;
pub use compare::{Comparison, ComparisonAnswer, ComparisonRemark, Recommendation, TripOption};
pub use gtfs::{GTFS_ADDRESS, GtfsError, covers_today, download_gtfs, load_timetable, read_gtfs, read_gtfs_at};
pub use info::{Accessibility, LineStations, StationInfo, StationPart, find_stations_on_line, get_station_info};
pub use live::{FetchError, LIVE_ADDRESS, LiveOptions, LiveSnapshot, LiveTrains};
pub use offline::{REFERRALS, offline_model};
pub use place::{Assumption, QueryError, StationView};
pub use plugin::PLUGIN;
pub use preferences::{CommonTrip, count_trip, get_common_trips, get_preference, save_preference};
pub use prompt::REFUSAL;
pub use route::{
    MetConditions, RideLeg, RouteAnswer, RouteLeg, RouteRequest, RouteSource, RouteWithArrivals, TripConditions,
};
pub use subway::{Subway, SubwayOptions};
pub use system::{names, network};
pub use threadkeep_transit::Timetable;
pub use tools::{SubwayTools, TOOLS};
pub use transfer::TransferTiming;
pub use travel::{TimeSource, TravelTime, new_york, travel_time_on_line};
