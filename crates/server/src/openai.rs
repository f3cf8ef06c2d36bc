//! The OpenAI wire.
