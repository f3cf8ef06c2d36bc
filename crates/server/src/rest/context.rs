//! What a model is to see of a thread.

pub(crate) mod assemble;
pub(crate) mod policy;
pub(crate) mod report;
