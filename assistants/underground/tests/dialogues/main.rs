//! Conversations with the London assistant, against a local server that speaks TfL's protocol.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod conversations;
mod env;
mod faults;
mod follow_ups;
mod multi_turn;
mod notices;
mod readme;
mod records;
mod sets;
mod tfl;
