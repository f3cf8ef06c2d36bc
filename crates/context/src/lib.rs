//! What a model sees of a conversation: chosen by policy, within a budget, the same every time, explained.
//!
//! Start with [`assemble`]: it takes what was loaded ([`ContextInput`]) and a [`ContextPolicy`], and gives a [`Context`],
//! the messages to send with a [`Report`] of what became of every message of the thread. [`recall`] ranks what a search
//! brought, the same over every store.
//!
//! This crate deliberately loads and stores nothing, reads no clock, no randomness and no environment, and iterates over
//! no hash map: the same inputs give the same bytes everywhere.
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

pub use assemble::{Context, assemble};
pub use chat::WAITING;
pub use cut::{MARK, cut};
pub use error::ContextError;
pub use input::{ContextInput, PreferenceLine, Recalled, ThreadRange};
pub use policy::{ContextPolicy, Pruning, RecallFrom, RecallPolicy, Rendering, SummaryPolicy, Trimming};
pub use report::{Fate, FateSpan, RecalledFate, Report, TokensByPart, Why};
pub use summary::{Summary, SummaryItem};
pub use threadkeep_core::{ChatMessage, count_tokens};
pub use transcript::{escape, unescape};
