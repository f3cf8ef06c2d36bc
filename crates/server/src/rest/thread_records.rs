//! Key-value records that applications store for a thread. They are written by commits to the thread and deleted with it.

pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod put;
