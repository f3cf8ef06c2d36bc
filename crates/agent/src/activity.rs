//! Activities: work of a node that is neither a model's nor a tool's.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use threadkeep_core::{JsonText, Portable, Scope, ThreadId, Timestamp};
use threadkeep_graph::Failure;

/// Some work that a graph's node asks for by name.
#[async_trait]
pub trait Activity: Portable + fmt::Debug {
    /// The name by which nodes ask for it.
    fn name(&self) -> &str;

    /// Whether it may be run again where nobody knows what became of it.
    fn repetition(&self) -> Repetition;

    /// Does the work.
    async fn run(&self, context: &ActivityContext, input: &JsonText) -> Result<JsonText, Failure>;
}

/// Whether work may be done again after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// It only looks, or counts once by its key ([`ActivityContext::key`]).
    Repeatable,
    /// It is begun at most once. Where the process ends meanwhile its outcome is unknown, which is a failure.
    Once,
}

/// On whose behalf an activity runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityContext {
    /// On whose behalf.
    pub scope: Scope,
    /// In which conversation.
    pub thread: ThreadId,
    /// In which turn.
    pub turn: String,
    /// Names this very piece of work, the same in every repetition.
    pub key: String,
    /// When.
    pub now: Timestamp,
}

type Work = dyn Fn(ActivityContext, JsonText) -> BoxFuture<'static, Result<JsonText, Failure>> + Send + Sync;

/// An activity made of a function.
#[derive(Clone)]
pub struct FnActivity {
    name: String,
    repetition: Repetition,
    work: Arc<Work>,
}

impl FnActivity {
    /// Makes an activity of a function.
    pub fn new<F, R>(name: impl Into<String>, repetition: Repetition, work: F) -> Self
    where
        F: Fn(ActivityContext, JsonText) -> R + Send + Sync + 'static,
        R: Future<Output = Result<JsonText, Failure>> + Send + 'static,
    {
        Self { name: name.into(), repetition, work: Arc::new(move |context, input| Box::pin(work(context, input))) }
    }
}

impl fmt::Debug for FnActivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnActivity").field("name", &self.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl Activity for FnActivity {
    fn name(&self) -> &str {
        &self.name
    }

    fn repetition(&self) -> Repetition {
        self.repetition
    }

    async fn run(&self, context: &ActivityContext, input: &JsonText) -> Result<JsonText, Failure> {
        (self.work)(context.clone(), input.clone()).await
    }
}
