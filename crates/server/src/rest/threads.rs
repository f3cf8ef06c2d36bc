//! Threads.

pub(crate) mod delete;
pub(crate) mod fork;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod open;
pub(crate) mod patch;
