//! Conversations with the legal assistant, with stores in files or in PostgreSQL, a counting embedder and scripted models.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod conversations;
mod importing;
mod models;
mod runs;
mod test_env;
mod transcript;
