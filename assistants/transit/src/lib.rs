//! Stations, networks and timetables: what assistants for public transport share.
//!
//! Start with [`Timetable`], which a GTFS feed is read into. This crate fetches nothing and reads no clock: bytes and
//! instants are arguments.
#![warn(missing_docs)]

mod feed;
mod timetable;

pub use feed::{FeedError, Problem};
pub use timetable::{CacheError, RouteRow, StationRow, Timetable};
