//! Conversations with the assistant, by what it calls, says and keeps; and two hundred questions.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod boards;
mod comparing;
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
mod world;
