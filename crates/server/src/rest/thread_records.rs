//! Key-value records of applications that belong to a thread: they are written by commits of the thread and deleted with it.

pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod put;
