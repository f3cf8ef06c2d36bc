//! The New York subway for an assistant: stations and lines, routes, live trains, comparisons.
//!
//! [`SubwayAssistant`] is the whole of it, for an agent; without a language model [`offline_model`] speaks for it. [`PLUGIN`]
//! is what a program needs to offer it.
//! [`Subway`] answers. Its methods, and the functions beside it, are the tools that a model calls, by their names: typed
//! arguments in, answers that serialise out, and a [`Trouble`] that says what to ask the person. It works from the
//! built-in [`network`] alone; a timetable gives it times, the MTA's feeds the trains as they run.
#![warn(missing_docs)]

mod arrivals;
mod assistant;
mod compare;
mod graph;
mod gtfs;
mod info;
mod live;
mod offline;
mod place;
mod plugin;
mod preferences;
mod prompt;
mod route;
mod subway;
mod system;
mod tools;
mod transfer;
mod travel;
mod vocabulary;
mod wording;

pub use arrivals::{ArrivalsAnswer, LiveStatus, TrainArrival};
pub use assistant::SubwayAssistant;
pub use compare::{Comparison, ComparisonAnswer, Recommendation, Remark, TripOption};
pub use gtfs::{GTFS_ADDRESS, GtfsError, download_gtfs, knows_today, load_timetable, read_gtfs, read_gtfs_at};
pub use info::{Accessibility, LineStations, StationInfo, StationPart, find_stations_on_line, get_station_info};
pub use live::{FetchError, LIVE_ADDRESS, LiveOptions, LivePicture, LiveTrains};
pub use offline::offline_model;
pub use place::{Assumption, StationView, Trouble};
pub use plugin::PLUGIN;
pub use preferences::{CommonTrip, count_trip, get_common_trips, get_preference, list_preferences, save_preference};
pub use prompt::REFUSAL;
pub use route::{RideLeg, RouteAnswer, RouteLeg, RouteSource, RouteWish, RouteWithArrivals};
pub use subway::{Subway, SubwayOptions};
pub use system::{names, network};
pub use threadkeep_transit::Timetable;
pub use tools::{SubwayTools, TOOLS};
pub use transfer::TransferTiming;
pub use travel::{TimeSource, TravelTime, new_york, travel_time_on_line};
