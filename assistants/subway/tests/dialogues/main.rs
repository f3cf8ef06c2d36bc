//! Conversations with the assistant, checked by its tool calls, replies and stored data; and two hundred single questions.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod boards;
mod comparing;
mod env;
mod follow_ups;
mod hostile;
mod malformed;
#[path = "../live/mta.rs"]
mod mta;
mod people;
mod places;
mod questions;
mod readme;
mod routes;
mod scripted;
mod sets;
