//! The context that a model receives from a thread.

pub(crate) mod assemble;
pub(crate) mod report;
