//! Models and embedders of providers, over a real socket.

mod anthropic;
mod clients;
mod embeddings;
mod failures;
mod malformed;
mod openai;
mod server;
