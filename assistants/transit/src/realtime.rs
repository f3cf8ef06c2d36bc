//! GTFS-Realtime with the extension of New York City Transit.
//!
//! [`LiveFeed::decode`] decodes a message, [`LiveFeed::arrivals`] returns its departure board, and [`Changes`] combines messages
//! with a timetable. This module does not read the clock: `now` is an argument.

mod arrivals;
mod changes;
mod feed;
#[rustfmt::skip]
mod wire;

pub use arrivals::Arrival;
pub use changes::Changes;
pub(crate) use changes::LiveRun;
pub use feed::{Call, Direction, LiveError, LiveFeed, LiveTrip, Replacement};
