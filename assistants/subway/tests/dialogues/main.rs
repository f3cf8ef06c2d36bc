//! Conversations with the assistant, by what it calls, says and keeps; and two hundred questions.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../live/mta.rs"]
mod mta;
mod questions;
mod world;
