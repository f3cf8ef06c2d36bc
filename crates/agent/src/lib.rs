//! Runs the turns of an assistant: its graph, models, tools, activities and approvals, with a journal to resume from.
//!
//! Start with [`Agent::chat`], which answers a user's message and returns a [`Turn`]. An [`Assistant`] is described by a
//! [`Definition`]; its tools may be functions ([`FnTool`]). Tool calls with side effects wait for an [`Approval`], which
//! [`Agent::decide`] grants or denies. [`Agent::resume`] continues turns that a crash interrupted. A program that offers an
//! assistant needs one value, its [`plugin::AssistantPlugin`].
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! use std::sync::Arc;
//!
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use serde_json::json;
//! use threadkeep_agent::{Agent, Definition, FnTool, TurnStatus, Verdict};
//! use threadkeep_core::{Scope, ToolOutput};
//! use threadkeep_memory::Memory;
//! use threadkeep_models::{Reply, ScriptedModel, Turn};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Pod {
//!     /// The pod's full name.
//!     name: String,
//! }
//!
//! let model = ScriptedModel::new()
//!     .step("deletes", |_| Ok(Reply::call("delete_pod", json!({"name": "nginx-7d4b"}))))
//!     .step("reports the result", |request| {
//!         Ok(Reply::text(format!("Done: {}", Turn::of(request).result("delete_pod")?)))
//!     });
//! let delete = FnTool::new("delete_pod", "Deletes a pod", |_, pod: Pod| async move {
//!     Ok(ToolOutput::text(format!("pod {} deleted", pod.name)))
//! });
//! let assistant = Definition::new("gardener", Arc::new(model))
//!     .with_instructions("You look after a cluster.")
//!     .with_tool(delete.with_side_effects(|call| format!("kubectl delete pod {}", call["name"].as_str().unwrap_or("?"))));
//!
//! let memory = Memory::new(threadkeep_store_memory::MemoryStore::open());
//! let scope = Scope::user("acme", "ana")?;
//! let thread = memory.open(&scope).await?.thread.id;
//! let agent = Agent::new(memory, assistant);
//!
//! let turn = agent.chat(&scope, thread, "Delete the nginx pod").await?;
//! assert_eq!(turn.status, TurnStatus::WaitingForApproval);
//! let approval = &turn.approvals[0];
//! assert_eq!(approval.preview, "kubectl delete pod nginx-7d4b");
//!
//! let turn = agent.decide(&scope, thread, &approval.id, Verdict::Approve, "ana", &mut |_| {}).await?;
//! assert_eq!(turn.status, TurnStatus::Completed);
//! assert_eq!(turn.reply, "Done: \"pod nginx-7d4b deleted\"");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Thread locks, turn records and turn queries are in [`threadkeep_memory::turns`], because chat completions without an assistant
//! use them as well. A driver is a call that currently runs a turn. Each commit of a run requires the version of the run record that
//! the run's previous commit wrote, so if another driver takes over a run, the next commit of the old driver fails. An agent keeps
//! no state in memory between calls. This crate depends on no model provider, no backend and no assistant. It takes time from the
//! memory's clock, and timeouts from the memory's runtime.
#![warn(missing_docs)]

mod activity;
mod agent;
mod assistant;
mod bounded;
mod context_provider;
mod drive;
mod effect_plan;
mod error;
mod event;
mod executor;
mod function_tool;
mod instructions;
mod notices;
mod plan_execute;
pub mod plugin;
mod record;
mod report;
mod run_state;
mod segment;
mod stop;
mod tool_loop;

pub use activity::{Activity, ActivityContext, FnActivity, RetryPolicy};
pub use agent::{Agent, Decision, MAX_ITERATIONS, OpenRun, RunError, RunRequest, RunResult, TurnRequest};
pub use assistant::{
    ApprovalPolicy, Assistant, BusyPolicy, Definition, EarlierRequests, PrepareRequest, StoreUserMessage, TurnLimits,
    TurnPreparation,
};
pub use context_provider::{
    ContextProvider, ContextSource, ConversationSource, DocumentSource, DynamicContext, Excerpt, FIND_CONTEXT,
    SourceQuery, build_query, referred_questions,
};
pub use error::{AgentError, Result};
pub use event::{EventSink, TurnEvent};
pub use function_tool::FnTool;
pub use instructions::MEMORY_INSTRUCTIONS;
pub use notices::NoticeSource;
pub use plan_execute::{PlanExecute, PlanExecuteUpdate, Step, StepState, plan_execute_synthesise};
pub use report::TurnReport;
pub use schemars;
pub use stop::Stop;
pub use threadkeep_core::Failure;
pub use threadkeep_memory::turns::{
    Approval, ApprovalState, ApprovalTrace, ContextSize, Driver, InterruptedTurn, RunningTurn, StoredMessage,
    ToolCallTrace, Turn, TurnState, TurnStatus, TurnUsage, Verdict, approval_id, find_approval, find_running_turn,
    find_turn_state, is_driving, list_approvals, list_interrupted_turns, stop_waiting_turn, turn_id_for_key,
};
pub use tool_loop::{ToolLoop, ToolLoopUpdate, result_message, tool_loop};
