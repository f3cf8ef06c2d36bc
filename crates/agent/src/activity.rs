//! Activities: work of graph nodes that is neither a model call nor a tool call.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use threadkeep_core::{JsonText, Portable, Scope, ThreadId, Timestamp};
use threadkeep_graph::Failure;

/// Work that graph nodes request by name.
#[async_trait]
pub trait Activity: Portable + fmt::Debug {
    /// Returns the name by which nodes request the activity.
    fn name(&self) -> &str;

    /// Returns whether the activity may run again if the outcome of an earlier run is unknown.
    fn retry_policy(&self) -> RetryPolicy;

    /// Runs the activity.
    ///
    /// # Errors
    /// A failure is passed to the graph node.
    async fn run(&self, context: &ActivityContext, input: &JsonText) -> Result<JsonText, Failure>;
}

/// Whether an activity may run again after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// The activity is read-only, or idempotent by its key ([`ActivityContext::key`]).
    Retryable,
    /// The activity is started at most once. If the process ends while it runs, the outcome is unknown, which is a failure.
    Once,
}

/// The context of one run of an activity.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivityContext {
    /// The scope on whose behalf the activity runs.
    pub scope: Scope,
    /// The thread.
    pub thread: ThreadId,
    /// The id of the turn.
    pub turn: String,
    /// An idempotency key: the same in every run for the same request.
    pub key: String,
    /// The time at which the activity started.
    pub now: Timestamp,
}

type Work = dyn Fn(ActivityContext, JsonText) -> BoxFuture<'static, Result<JsonText, Failure>> + Send + Sync;

/// An activity that calls a function.
#[derive(Clone)]
pub struct FnActivity {
    name: String,
    retry_policy: RetryPolicy,
    work: Arc<Work>,
}

impl FnActivity {
    /// Creates an activity that calls a function.
    pub fn new<F, R>(name: impl Into<String>, retry_policy: RetryPolicy, work: F) -> Self
    where
        F: Fn(ActivityContext, JsonText) -> R + Send + Sync + 'static,
        R: Future<Output = Result<JsonText, Failure>> + Send + 'static,
    {
        Self { name: name.into(), retry_policy, work: Arc::new(move |context, input| Box::pin(work(context, input))) }
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

    fn retry_policy(&self) -> RetryPolicy {
        self.retry_policy
    }

    async fn run(&self, context: &ActivityContext, input: &JsonText) -> Result<JsonText, Failure> {
        (self.work)(context.clone(), input.clone()).await
    }
}
