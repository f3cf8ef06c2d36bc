//! The data types of Threadkeep, and the ports that all other crates build on.
//!
//! Start with [`Message`] and [`Thread`] (the stored data), then [`Batch`] (the changes that one commit makes to a thread) and
//! [`Store`] (the contract of a backend). [`codec`] is the only module that encodes messages as text. The variants of
//! [`StoreError`] are named for what the caller can do about a failure.
//!
//! This crate does no I/O and does not read the clock, random numbers or the environment: time and ids are arguments, so
//! conversations can be replayed from their log. It needs no async runtime and builds for `wasm32`.
#![warn(missing_docs)]

mod address;
mod batch;
mod change;
mod checksum;
pub mod codec;
pub mod decide;
mod embed;
mod error;
pub mod exchange;
mod failure;
mod id;
mod json;
pub mod limits;
mod maintenance;
mod message;
mod metadata;
mod model;
mod page;
mod processes;
pub mod query;
mod record;
mod runtime;
mod scope;
mod search;
mod snapshot;
mod store;
mod tag;
pub mod text;
mod thread;
mod time;
mod tokens;
mod tool;
pub mod vectors;
mod view;

pub use address::{redact_address, redact_addresses};
pub use batch::{
    Batch, CommitOutcome, EncodedBatch, Expected, Fingerprint, IdempotencyKey, PutRecord, RecordCondition, RecordName,
    RecordState, Replacement, SyncPolicy,
};
pub use change::{Change, ChangePage, ChangesWithMessages, Effect, UserCursor, WakeUp, WakeUps};
pub use checksum::Checksum;
pub use embed::{Embedder, EmbedderError};
pub use error::{Conflict, Kind, Reason, Result, StoreError};
pub use failure::Failure;
pub use id::{MessageId, TenantId, ThreadId, UserId};
pub use json::{JsonText, Map, Value, json_line, on_one_line, plain_json_error, whole_number};
pub use limits::IDEMPOTENCY_WINDOW_MS;
pub use maintenance::{
    DrivenThread, Dump, DumpEntry, DumpedCommit, DumpedThread, Finding, Maintenance, Severity, StoreDurability,
    SweepReport, VerifyReport, message_damage,
};
pub use message::{
    Content, CorruptRow, ImageReference, Message, NewMessage, Part, Role, Source, TokenDetails, ToolCall, ToolResult,
    Usage,
};
pub use metadata::{METADATA_VALUE_BYTES, MetadataCondition, MetadataFilter, MetadataValue};
pub use model::{
    AnswerFormat, ChatAnswer, ChatDelta, ChatMessage, ChatModel, ChatRequest, DeltaSink, Finish, ModelError, Sampling,
    ToolChoice, ToolDescription, add_tokens, count_message_tokens, count_tokens,
};
pub use page::{Bound, MessagePage, MessageQuery, MessageRef, OnCorrupt, OrderBy, PageBuilder, RangeEnd};
pub use processes::Processes;
pub use record::{DerivedWrite, Namespace, Record, RecordOwner, RecordQuery, RecordWrite, WriteOutcome};
pub use runtime::{MonotonicTime, Runtime};
pub use scope::{Access, Owner, Scope};
pub use search::{
    CatchUp, Collection, Embedding, EntryHit, FieldFilter, IndexEntry, SearchAnswer, SearchHit, SearchIndex,
    SearchQuery, UnindexedThread, filter_terms, similarity,
};
pub use snapshot::{ChunkSize, Consistency, ListedThread, OwnedRecord, Snapshot, SnapshotTotals, Unreadable};
pub use store::{
    Backend, ChangedThread, ChangedThreads, OpenOutcome, OpenThread, Store, StoreExt, ThreadOrder, ThreadPage,
    ThreadQuery, ThreadRef,
};
pub use tag::{ChangeTag, TaggedNumber};
pub use thread::{EPHEMERAL, Positions, Thread, ThreadKey, ThreadPatch};
pub use time::{Clock, Timestamp};
pub use tokens::{ApproximateCounter, TokenCount, TokenCounter};
pub use tool::{Tool, ToolContext, ToolEffect, ToolError, ToolOutput, ToolSource, ToolSpec};
pub use view::{ThreadRead, ThreadView};

/// The trait bounds of every port, on every platform: ports are shared between tasks. An implementation that uses values bound to
/// one operating system thread, such as a browser's objects, has to wrap them.
pub trait Portable: Send + Sync + 'static {}
impl<T: Send + Sync + 'static + ?Sized> Portable for T {}
