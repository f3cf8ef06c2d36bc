//! Approvals: calls for which assistants request permission, and the decisions.

pub(crate) mod decide;
pub(crate) mod get;
pub(crate) mod list;
