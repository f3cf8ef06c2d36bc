//! The turns of a thread.

pub(crate) mod cancel;
pub(crate) mod get;
