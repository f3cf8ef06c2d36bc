//! Assembles the context that a model receives for a conversation: by policy, within a token budget, deterministically.
//!
//! Start with [`assemble`]. Its input is the loaded data ([`ContextInput`]) and a [`ContextPolicy`]. It returns a
//! [`Context`]: the messages to send, and a [`Report`] of what happened to every message of the thread. [`recall`] ranks
//! search results identically for every store.
//!
//! This crate performs no I/O, reads no clock, randomness or environment, and iterates over no hash map: equal inputs
//! produce equal bytes on every platform.
#![warn(missing_docs)]

mod assemble;
mod budget;
mod chat;
mod cut;
pub mod enrichment;
mod error;
mod input;
mod layout;
mod policy;
mod quote;
pub mod recall;
mod relevance;
mod report;
pub mod sources;
mod summary;
mod transcript;
mod units;
mod window;
mod writing;

pub use assemble::{Context, assemble};
pub use chat::WAITING;
pub use cut::{TRUNCATION_MARK, cut};
pub use error::ContextError;
pub use input::{ContextInput, PreferenceLine, Recalled, ThreadRange};
pub use policy::{ContextPolicy, Pruning, RecallFrom, RecallPolicy, Rendering, SummaryPolicy, Trimming};
pub use report::{Fate, FateReason, FateSpan, RecalledFate, Report, TokensByPart};
pub use summary::{ModelSummary, Summary, SummaryItem};
pub use threadkeep_core::{ChatMessage, count_tokens};
pub use transcript::{escape, unescape};
pub use writing::{SummaryTask, task_messages};
