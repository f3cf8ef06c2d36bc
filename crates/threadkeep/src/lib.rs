//! Threadkeep stores an AI assistant's conversations and assembles, for every turn, the context that its model needs.
//!
//! Start with [`open`]. It returns a [`Memory`], the interface for applications. [`Memory::append`] stores messages,
//! [`Memory::context`] assembles the context for the model's next turn, and [`Memory::recall`] finds messages that answer a
//! question. An [`Agent`] uses these functions to answer users according to the [`Definition`] of an assistant. [`core`]
//! defines the data types (threads, messages, scopes) and the ports of the engine. This crate itself only selects a backend
//! by URL, with one feature per backend.
//!
#![cfg_attr(feature = "memory", doc = "```")]
#![cfg_attr(not(feature = "memory"), doc = "```no_run")]
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! use threadkeep::{ContextPolicy, Draft, Scope, TokenCount};
//!
//! let memory = threadkeep::open("memory:").await?;
//! let scope = Scope::user("acme", "ana")?;
//! let thread = memory.open_by_key(&scope, "web:42").await?.thread.id;
//! memory.append(&scope, thread, Draft::user("Mila is allergic to nuts.")).await?;
//! memory.append(&scope, thread, Draft::assistant("Noted.")).await?;
//! let policy = ContextPolicy { budget: Some(TokenCount(4_000)), ..ContextPolicy::default() };
//! let assembled = memory.context(&scope, thread, Some("What must she not eat?"), &policy).await?;
//! assert_eq!(assembled.context.messages.len(), 3); // send these to a model; `report` explains the selection
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

#[cfg(not(target_arch = "wasm32"))]
mod open;

#[cfg(not(target_arch = "wasm32"))]
pub use open::{OpenError, open, open_backend};
pub use threadkeep_agent as agent;
pub use threadkeep_agent::plugin::AssistantPlugin;
pub use threadkeep_agent::{
    Agent, AgentError, Assistant, Definition, FnTool, Turn, TurnEvent, TurnRequest, TurnStatus, Verdict,
};
pub use threadkeep_context as context;
pub use threadkeep_context::{
    Context, ContextPolicy, Fate, FateReason, FateSpan, RecallFrom, RecallPolicy, Rendering, Report, SummaryPolicy,
    TokensByPart, Trimming,
};
pub use threadkeep_core as core;
pub use threadkeep_core::{
    AnswerFormat, ApproximateCounter, Backend, Bound, ChatAnswer, ChatDelta, ChatMessage, ChatModel, ChatRequest,
    Clock, Conflict, Content, DeltaSink, Embedder, EmbedderError, Expected, Finish, ImageReference, JsonText, Map,
    Message, MessageId, MessagePage, MessageQuery, MessageRef, MetadataFilter, MetadataValue, ModelError, Namespace,
    OnCorrupt, OpenOutcome, OpenThread, OrderBy, Owner, Part, Positions, RangeEnd, Record, RecordName, RecordOwner,
    Role, Sampling, Scope, Source, StoreError, TenantId, Thread, ThreadId, ThreadKey, ThreadOrder, ThreadPage,
    ThreadPatch, ThreadQuery, Timestamp, TokenCount, TokenCounter, TokenDetails, Tool, ToolCall, ToolChoice,
    ToolContext, ToolDescription, ToolEffect, ToolError, ToolOutput, ToolResult, ToolSource, ToolSpec, Usage,
    UserCursor, UserId, Value, exchange,
};
pub use threadkeep_dialogue as dialogue;
pub use threadkeep_graph as graph;
pub use threadkeep_memory as memory;
#[cfg(not(target_arch = "wasm32"))]
pub use threadkeep_memory::SystemClock;
pub use threadkeep_memory::{
    Analytics, AppendOptions, Appended, AppendedMessage, AssembledContext, BatchBuilder, ContextOptions, Correction,
    Draft, EraseOptions, EraseReport, Hit, ImportOptions, ImportReport, Memory, MemoryError, MemoryOptions, Preference,
    Prefetched, Problem, RecallOptions, RecallOutcome, RecallResults, RecalledMessage, Retention, SearchOptions,
    SearchResults, SharedMessages, Snippet, Start, SubscribeOptions, ThreadConfig, ThreadEvent, ThreadSelection,
    ThreadUpdate, ThreadsUpdate, Titles, ToolSwitch,
};
pub use threadkeep_models as models;
pub use threadkeep_tokens as tokens;
pub use threadkeep_tokens::{CachingCounter, Cl100k, O200k, counter_by_name, counter_for_model};
