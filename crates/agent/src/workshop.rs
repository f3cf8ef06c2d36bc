//! Where effects are carried out. It decides nothing about the run; it does what it is told and says what came of it.

mod activities;
mod contexts;
mod models;
mod tools;

use std::sync::Arc;

use threadkeep_context::{ContextPolicy, Report};
use threadkeep_core::{ChatMessage, ChatModel, Map, Timestamp, Tool};
use threadkeep_memory::{Memory, Prefetched};
use tokio::sync::Mutex;

use crate::{Assistant, ContextNumbers, Definition, Prepared, TurnEvent};
use threadkeep_memory::turns::Place;

pub(crate) use tools::{Admitted, refused};

/// What all effects of a turn share.
pub(crate) struct Workshop<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) assistant: &'a dyn Assistant,
    pub(crate) place: &'a Place,
    pub(crate) turn: String,
    pub(crate) question: String,
    /// The position before the user's message: what came later is no part of the history.
    pub(crate) read_at: u64,
    /// What is asked of the model under this thread's settings.
    pub(crate) model: Arc<dyn ChatModel>,
    /// What it may call under this thread's settings.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) policy: ContextPolicy,
    pub(crate) prepared: Prepared,
    pub(crate) sink: &'a (dyn Fn(TurnEvent) + Send + Sync),
    pub(crate) contexts: Mutex<Contexts>,
}

/// The contexts that were assembled for this turn: one for each node's own instructions.
#[derive(Default)]
pub(crate) struct Contexts {
    assembled: Vec<(Option<String>, Arc<Vec<ChatMessage>>)>,
    /// What the first of them is made of, where the thread was read when the turn began. Others are read later, without what was
    /// erased meanwhile.
    read: Option<Prefetched>,
    /// What became of the history in the first of them.
    pub(crate) report: Option<Report>,
    pub(crate) numbers: ContextNumbers,
}

impl Contexts {
    pub(crate) fn of(read: Option<Prefetched>) -> Self {
        Self { read, ..Self::default() }
    }
}

impl Workshop<'_> {
    pub(crate) fn definition(&self) -> &Definition {
        self.assistant.definition()
    }

    pub(crate) fn tell(&self, event: TurnEvent) {
        (self.sink)(event);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.memory.now()
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name() == name)
    }

    fn since(&self, began: Timestamp) -> u64 {
        u64::try_from(self.now().as_millis() - began.as_millis()).unwrap_or(0)
    }
}

/// Reads a call's arguments and gives them their own names.
pub(crate) fn arguments(tool: &dyn Tool, arguments: &threadkeep_core::JsonText) -> Option<Map> {
    let text = arguments.as_str();
    let given: Map = if text.trim() == "null" { Map::new() } else { serde_json::from_str(text).ok()? };
    Some(tool.spec().without_aliases(given))
}
