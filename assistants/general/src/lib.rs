//! The general assistant: it answers from what was said in any of a user's conversations, from documents, and by what the
//! user prefers.
//!
//! [`General::new`] makes it, [`PLUGIN`] is what a program needs to offer it; [`Manifest`] reads one that is written in
//! YAML. Before the model is asked, documents and earlier conversations are looked at
//! ([`threadkeep::agent::ContextProvider`]), and the answer's sources are those that it cites. Without a language model the
//! offline model quotes them, and says so where it finds nothing.
#![warn(missing_docs)]

mod assistant;
mod evidence;
mod graph;
mod manifest;
mod offline;
mod plugin;
mod preference_tools;
mod search_tools;

pub use assistant::{General, GeneralError, GeneralOptions, TOOLS};
pub use manifest::{Manifest, ManifestError, MemoryBackend, MemorySpec};
pub use offline::offline_model;
pub use plugin::PLUGIN;
