//! The messages of a thread.

pub(crate) mod append;
pub(crate) mod erase;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod replace;
mod time_order;
