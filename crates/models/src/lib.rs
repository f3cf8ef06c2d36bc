//! What stands behind core's ports of language models and embedders.
//!
//! - [`ScriptedModel`] plays a script in tests: each step asserts the request that it got and takes its arguments from
//!   the tools' results.
//! - [`OfflineModel`] answers without a network: an assistant declares intents, and their words become tool calls.
//!
//! - [`ProviderModel`] is a language model of a provider, over HTTP: OpenAI, Groq, Anthropic, Ollama, and every server
//!   that speaks OpenAI's chat completions. [`EmbeddingModel`] is an embedder of such a server. On `wasm32` they are not
//!   there.
//! - [`select`] says which model speaks, by name or by what the environment holds.
//!
//! [`Turn`] reads a request: what was asked, which tools were called for it and what they gave.
#![warn(missing_docs)]

mod calls;
mod offline;
#[cfg(not(target_arch = "wasm32"))]
mod price;
#[cfg(not(target_arch = "wasm32"))]
mod provider;
#[cfg(not(target_arch = "wasm32"))]
mod repair;
mod scripted;
#[cfg(not(target_arch = "wasm32"))]
mod secret;
#[cfg(not(target_arch = "wasm32"))]
mod selection;
mod turn;

pub use calls::is_written;
pub use offline::{
    Choice, Extractor, Intent, Mention, Names, Numbers, OfflineModel, OfflineModelBuilder, OfflineModelError, Outcome,
    Passage, Phrases, Slot, Slots, Utterance, Word, is_question,
};
#[cfg(not(target_arch = "wasm32"))]
pub use price::{Price, PriceTable, PriceTableError, Tokens};
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub use provider::fuzzing;
#[cfg(not(target_arch = "wasm32"))]
pub use provider::{
    ConnectError, EmbedderConfig, EmbeddingModel, HttpOptions, Pacing, Ping, Provider, ProviderConfig, ProviderModel,
    SystemPacing, client_tls,
};
pub use scripted::{Failure, Reply, ScriptedModel};
#[cfg(not(target_arch = "wasm32"))]
pub use secret::Secret;
#[cfg(not(target_arch = "wasm32"))]
pub use selection::{FoundModel, Origin, Selected, SelectionError, find_models, select, select_embedder};
pub use turn::{Exchange, Turn};
