//! The context that a model gets from a thread.

pub(crate) mod assemble;
pub(crate) mod policy;
pub(crate) mod report;
