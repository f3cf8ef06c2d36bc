//! The conversation manager: everything that an application calls.
//!
//! Start with [`Memory`]: it opens threads, appends and reads messages, and carries policy (titles, retention, retries)
//! that no store decides. [`Memory::subscribe`] tells of every change and misses none, [`Memory::search`] finds what was
//! said, [`Memory::recall`] what answers a question, [`Memory::import`] and [`Memory::export`] move conversations in and out.
//!
//! [`turns`] is how a turn takes a thread, holds it and ends, whatever drives it.
//!
//! [`Memory::context`] loads what a model is to see of a thread, chosen and written by `threadkeep_context`. This crate
//! deliberately runs no agent and knows no backend: it works over any [`threadkeep_core::Backend`]. What it runs on is a
//! [`Platform`]: without another one it needs a tokio runtime with its timer, for pauses between retries and for subscriptions.
#![warn(missing_docs)]

mod analytics;
mod append;
mod batch;
mod candidates;
mod config;
mod context;
mod copies;
mod draft;
mod edit;
mod erase;
mod erasures;
mod error;
mod export;
mod fingerprint;
mod import;
mod library;
mod memory;
mod messages;
pub mod migrate;
mod platform;
mod preferences;
mod recall;
mod records;
mod retention;
mod retry;
mod search;
mod snippet;
mod subscribe;
mod sweep;
mod tails;
mod task;
mod threads;
mod title;
pub mod turns;
mod upsert;

pub use analytics::{Analytics, Durations, Selection, SourceUse};
pub use append::{AppendOptions, Appended, Placed};
pub use batch::BatchBuilder;
pub use config::ThreadConfig;
pub use context::{AssembledContext, CachedContext, ContextOptions, Prefetched, RecallOutcome, SummaryRenewal};
pub use draft::Draft;
pub use erase::{EraseOptions, EraseReport, SharedMessages};
pub use erasures::{
    AppliedErasures, ErasedItem, ErasedUser, Erasure, ErasureBound, ErasureLog, ErasureReceipt, KnownErasures,
};
pub use error::{MemoryError, Result};
pub use export::ExportLines;
pub use import::{ImportOptions, ImportReport, Problem};
pub use library::{
    DOCUMENT_ID_BYTES, DOCUMENT_PASSAGES, FoundPassage, FoundPassages, LibraryDocument, NewLibraryDocument, Passage,
    PassageOptions,
};
pub use memory::{Memory, MemoryOptions, Titles};
#[cfg(target_os = "linux")]
pub use platform::LinuxProcesses;
pub use platform::Platform;
#[cfg(not(target_arch = "wasm32"))]
pub use platform::{SystemClock, TokioRuntime};
pub use preferences::Preference;
pub use recall::{Meaning, RecallOptions, RecallResults, Recalled, ThreadTail};
pub use retention::Retention;
pub use search::{Hit, SearchOptions, SearchResults};
pub use snippet::Snippet;
pub use subscribe::{
    Start, SubscribeOptions, ThreadEvent, ThreadUpdate, ThreadUpdates, ThreadsUpdate, ThreadsUpdates, UpdatesPage,
    Watch,
};
pub use tails::{CachedMessages, ThreadCacheStats};
pub use title::make_title;
