//! What a model sees of a conversation. Pure: no I/O, no clock, no randomness, no environment.
//!
//! [`recall`] ranks what a search brought, the same over every store.
#![warn(missing_docs)]

pub mod recall;
