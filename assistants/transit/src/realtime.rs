//! Trains on their way: GTFS-Realtime with the extension of New York City Transit.
//!
//! [`LiveFeed::decode`] reads one message; [`LiveFeed::arrivals`] is what a departure board shows of it; [`Changes`] is
//! what several messages change in a timetable. Nothing here asks the clock: `now` is an argument.

mod arrivals;
mod changes;
mod feed;
#[rustfmt::skip]
mod wire;

pub use arrivals::Arrival;
pub use changes::Changes;
pub(crate) use changes::LiveRun;
pub use feed::{Call, Direction, LiveError, LiveFeed, LiveTrip, Replacement};
