//! What stands behind core's ports of language models and embedders.
//!
//! - [`ScriptedModel`] plays a script in tests: each step asserts the request that it got and takes its arguments from
//!   the tools' results.
//! - [`OfflineModel`] answers without a network: an assistant declares intents, and their words become tool calls.
//!
//! [`Turn`] reads a request: what was asked, which tools were called for it and what they gave.
#![warn(missing_docs)]

mod calls;
mod offline;
mod scripted;
mod turn;

pub use offline::{
    Choice, Extractor, Intent, Mention, Names, Numbers, OfflineModel, OfflineModelBuilder, OfflineModelError, Outcome,
    Passage, Phrases, Slot, Slots, Utterance, Word,
};
pub use scripted::{Failure, Reply, ScriptedModel};
pub use turn::{Exchange, Turn};
