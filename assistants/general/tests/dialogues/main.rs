//! Dialogues with the general assistant: its tool calls, replies and stored messages.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod documents;
mod forgetting;
mod general_env;
mod hostile;
mod people;
mod preferences;
mod remembering;
mod restarts;
mod scripted;
mod sets;
mod test_env;
