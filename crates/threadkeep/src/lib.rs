//! Threadkeep keeps an AI assistant's conversations and hands back, for every turn, what its model needs.
//!
//! Start with [`open`], which gives a [`Memory`]: everything that an application calls. The nouns (threads, messages,
//! scopes) and the ports of the engine are those of [`core`]. This crate adds nothing to them but the choice of a backend
//! by URL, one feature each.
//!
#![cfg_attr(feature = "memory", doc = "```")]
#![cfg_attr(not(feature = "memory"), doc = "```no_run")]
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! use threadkeep::{Draft, Scope};
//!
//! let memory = threadkeep::open("memory:").await?;
//! let scope = Scope::user("acme", "ana")?;
//! let thread = memory.open_by_key(&scope, "web:42").await?.thread.id;
//! memory.append(&scope, thread, Draft::user("What is amparo?")).await?;
//! memory.append(&scope, thread, Draft::assistant("A constitutional remedy.")).await?;
//!
//! let newest = memory.newest(&scope, thread, 16).await?;
//! assert_eq!(newest[1].plain_text(), "A constitutional remedy.");
//! assert_eq!(memory.get_thread(&scope, thread).await?.title.as_deref(), Some("What is amparo?"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

mod open;

pub use open::{OpenError, open, open_backend};
pub use threadkeep_context as context;
pub use threadkeep_core as core;
pub use threadkeep_core::{
    Backend, Bound, Clock, Conflict, Content, Document, DocumentName, DocumentOwner, Expected, ImageReference,
    JsonText, Map, Message, MessageId, MessageName, MessagePage, MessageQuery, Namespace, OnCorrupt, OpenThread,
    Opened, OrderBy, Owner, Part, Positions, Role, Scope, Source, StoreError, Take, TenantId, Thread, ThreadId,
    ThreadKey, ThreadOrder, ThreadPage, ThreadPatch, ThreadQuery, Timestamp, ToolCall, ToolResult, Usage, UserCursor,
    UserId, Value, exchange,
};
pub use threadkeep_memory as memory;
pub use threadkeep_memory::{
    Analytics, AppendOptions, Appended, BatchBuilder, Draft, EraseOptions, EraseReport, Hit, ImportOptions,
    ImportReport, Lease, Memory, MemoryError, MemoryOptions, Placed, Problem, Retention, SearchOptions, SearchResults,
    Selection, SharedMessages, Snippet, Start, SubscribeOptions, SystemClock, ThreadConfig, ThreadEvent, ThreadUpdate,
    ThreadsUpdate, Titles,
};
pub use threadkeep_tokens as tokens;
