//! The effect executor: runs models, tools and activities, and returns their outcomes. It makes no decisions about the run.

mod activities;
mod contexts;
mod models;
mod tools;

use std::sync::Arc;

use threadkeep_context::{ContextPolicy, Report};
use threadkeep_core::{ChatMessage, ChatModel, Map, Timestamp, Tool};
use threadkeep_memory::{Memory, Prefetched};
use tokio::sync::Mutex;

use crate::{Assistant, ContextSize, Definition, TurnEvent, TurnPreparation};
use threadkeep_memory::turns::ThreadAccess;

pub(crate) use tools::{ToolInvocation, refused_call};

/// Executes the effects of one turn.
pub(crate) struct EffectExecutor<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) assistant: &'a dyn Assistant,
    pub(crate) access: &'a ThreadAccess,
    pub(crate) turn: String,
    pub(crate) question: String,
    /// The position before the user's message, where the history ends.
    pub(crate) history_end_seq: u64,
    /// The model that the thread's settings select.
    pub(crate) model: Arc<dyn ChatModel>,
    /// The tools that the thread's settings allow.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) policy: ContextPolicy,
    pub(crate) prepared: TurnPreparation,
    pub(crate) sink: &'a (dyn Fn(TurnEvent) + Send + Sync),
    pub(crate) contexts: Mutex<Contexts>,
}

/// The contexts that were assembled for this turn, one per distinct text of node instructions.
#[derive(Default)]
pub(crate) struct Contexts {
    assembled: Vec<(Option<String>, Arc<Vec<ChatMessage>>)>,
    /// The thread as read at the start of the turn, from which the first context is assembled. For later contexts the thread is read
    /// again, so that messages erased in between are omitted.
    read: Option<Prefetched>,
    /// The report of the first context.
    pub(crate) report: Option<Report>,
    /// The size of the first context.
    pub(crate) size: ContextSize,
}

impl Contexts {
    pub(crate) fn of(read: Option<Prefetched>) -> Self {
        Self { read, ..Self::default() }
    }
}

impl EffectExecutor<'_> {
    pub(crate) fn definition(&self) -> &Definition {
        self.assistant.definition()
    }

    pub(crate) fn emit(&self, event: TurnEvent) {
        (self.sink)(event);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.memory.now()
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name() == name)
    }

    fn ms_since(&self, began: Timestamp) -> u64 {
        u64::try_from(self.now().as_millis() - began.as_millis()).unwrap_or(0)
    }
}

/// Parses a call's arguments, and replaces aliases by the names of the arguments. `None` if the text is not a JSON object; `null`
/// means no arguments.
pub(crate) fn parse_arguments(tool: &dyn Tool, arguments: &threadkeep_core::JsonText) -> Option<Map> {
    let text = arguments.as_str();
    let map: Map = if text.trim() == "null" { Map::new() } else { serde_json::from_str(text).ok()? };
    Some(tool.spec().without_aliases(map))
}
