//! Approvals: what assistants ask leave for, and the decisions.

pub(crate) mod decide;
pub(crate) mod get;
pub(crate) mod list;
