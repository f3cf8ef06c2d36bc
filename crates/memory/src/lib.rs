//! Conversation memory: the interface that applications call.
//!
//! Start with [`Memory`]: it opens threads, appends and reads messages, and applies the policies that are not up to stores
//! (titles, retention, retries). [`Memory::subscribe`] reports every change, [`Memory::search`] finds messages by words,
//! [`Memory::recall`] finds messages that answer a question, [`Memory::import`] and [`Memory::export`] move conversations in
//! and out, and [`Memory::context`] assembles the messages that a model reads, using `threadkeep_context`.
//!
//! [`turns`] defines how turns lock their thread, and how they are found, stopped and ended, regardless of what executes them.
//!
//! This crate deliberately runs no agent and knows no backend: it works with any [`threadkeep_core::Backend`]. Its clock,
//! runtime and process list come from a [`Platform`]; the default platform requires a tokio runtime with its timer.
#![warn(missing_docs)]

mod analytics;
mod append;
mod batch;
mod candidates;
mod config;
mod context;
mod copy;
mod draft;
mod duplicates;
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
mod task;
mod thread_cache;
mod threads;
mod title;
pub mod turns;
mod upsert;

pub use analytics::{Analytics, CitationStats, Durations, ThreadSelection};
pub use append::{AppendOptions, Appended, AppendedMessage};
pub use batch::BatchBuilder;
pub use config::{ThreadConfig, ToolSwitch};
pub use context::{AssembledContext, CachedContext, ContextOptions, Prefetched, RecallOutcome, SummaryRenewal};
pub use draft::Draft;
pub use erase::{EraseOptions, EraseReport, SharedMessages};
pub use erasures::{
    AppliedErasures, ErasedItem, ErasedUser, Erasure, ErasureBound, ErasureEntries, ErasureLog, ErasureReceipt,
};
pub use error::{MemoryError, Result};
pub use export::ExportLines;
pub use import::{ImportOptions, ImportReport, Problem};
pub use library::{
    DOCUMENT_ID_BYTES, DOCUMENT_PASSAGES, FoundPassage, FoundPassages, LibraryDocument, LibraryUpload,
    NewLibraryDocument, Passage, PassageOptions, StoredUpload, UPLOAD_BYTES, UploadState,
};
pub use memory::{Memory, MemoryOptions, Titles};
#[cfg(target_os = "linux")]
pub use platform::LinuxProcesses;
pub use platform::Platform;
#[cfg(not(target_arch = "wasm32"))]
pub use platform::{SystemClock, TokioRuntime};
pub use preferences::Preference;
pub use recall::{EmbedderOutcome, RecallOptions, RecallResults, RecalledMessage, ThreadTail};
pub use records::RecordUpdate;
pub use retention::Retention;
pub use search::{Correction, Hit, SearchOptions, SearchResults};
pub use snippet::Snippet;
pub use subscribe::{
    Start, SubscribeOptions, ThreadEvent, ThreadUpdate, ThreadUpdates, ThreadsUpdate, ThreadsUpdates, UpdatesPage,
    Watch,
};
pub use thread_cache::{CachedMessages, ThreadCacheStats};
pub use title::make_title;
pub use upsert::{UpsertOutcome, Upserted, UpsertedMessage};
