//! The general assistant. It answers from a user's conversations, documents and preferences.
//!
//! [`General::new`] creates it, [`PLUGIN`] registers it with a program, and [`Manifest`] reads an assistant from YAML. Before the
//! model is called, documents and earlier conversations are searched ([`threadkeep::agent::ContextProvider`]). The sources of an
//! answer are those that it cites. Without a language model, the offline model quotes the search results, or reports that there
//! are none.
#![warn(missing_docs)]

mod assistant;
mod calculation;
mod called_by_name;
mod clock;
mod erase_tools;
mod evidence;
mod graph;
mod manifest;
mod offline;
mod plugin;
mod preference_tools;
mod remembered;
mod search_tools;
mod widened;

pub use assistant::{General, GeneralError, GeneralOptions, TOOLS};
pub use manifest::{Manifest, ManifestError, McpServerEntry, MemoryBackend, MemorySpec};
pub use offline::offline_model;
pub use plugin::PLUGIN;
