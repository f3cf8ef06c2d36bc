//! Conversations with the London assistant, against a local server that speaks TfL's protocol.

mod conversations;
mod env;
mod faults;
mod readme;
mod sets;
mod tfl;
