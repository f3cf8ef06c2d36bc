//! Clients of providers' models and embedders, over real sockets.

mod anthropic;
mod clients;
mod embeddings;
mod failures;
mod ignored;
mod malformed;
mod openai;
mod server;
