//! The documents of applications that belong to a thread: written by commits of it, gone with it.

pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod put;
