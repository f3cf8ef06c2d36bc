//! JSON types that several actions share. They are separate from the engine's types, so that those can change.

pub(crate) mod approval;
pub(crate) mod message;
pub(crate) mod part;
pub(crate) mod thread;
pub(crate) mod turn;
pub(crate) mod writer;
