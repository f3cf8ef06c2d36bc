//! Live events: what happens in threads, as it happens, from where the listener was last.

pub(crate) mod events;
mod following;
pub(crate) mod json;
mod listening;
pub(crate) mod socket;
pub(crate) mod telling;
