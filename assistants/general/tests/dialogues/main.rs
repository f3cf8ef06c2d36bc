//! Dialogues with the general assistant, by what it calls, says and stores.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod documents;
mod hostile;
mod people;
mod preferences;
mod remembering;
mod restarts;
mod scripted;
mod world;
