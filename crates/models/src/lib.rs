//! Implementations of core's ports for language models and embedders.
//!
//! - [`ScriptedModel`] plays a script in tests. Each step checks the request and can use the results of earlier tools.
//! - [`ProviderModel`] calls a language model over HTTP: OpenAI, Groq, Anthropic, Ollama, or any server with OpenAI's chat
//!   completions API. [`EmbeddingModel`] calls an embedder of such a server. Both are unavailable on `wasm32`.
//! - [`select`] selects a model by name or by environment variables.
#![warn(missing_docs)]

mod calls;
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

pub use calls::is_text_call;
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
pub use selection::{AvailableModel, Origin, Selected, SelectionError, find_models, select, select_embedder};
pub use threadkeep_dialogue::{Exchange, Turn};
