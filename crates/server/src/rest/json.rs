//! The JSON that several actions speak. It is the server's own: a noun of the engine may change without it.

pub(crate) mod approval;
pub(crate) mod message;
pub(crate) mod part;
pub(crate) mod pieces;
pub(crate) mod thread;
pub(crate) mod turn;
