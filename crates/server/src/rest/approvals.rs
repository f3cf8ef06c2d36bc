//! Approvals: calls for which assistants request permission, and decisions on them.

pub(crate) mod decide;
pub(crate) mod get;
pub(crate) mod list;
