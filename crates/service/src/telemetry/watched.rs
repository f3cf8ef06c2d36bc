//! Calls that are counted and traced, by the conventions for generative models: names, numbers and outcomes, no words.

mod assistant;
mod embedder;
mod model;
mod tool;
mod turn;

use std::sync::Arc;
use std::time::Instant;

use threadkeep::core::Embedder;
use threadkeep::{Agent, ChatModel, Tool};

use super::{Span, SpanKind, Telemetry};
use crate::metrics::{Calls, Metrics};
use assistant::WatchedAssistant;
use embedder::WatchedEmbedder;
use model::WatchedModel;
use tool::WatchedTool;

/// The outcome of a call that gave what it was asked for.
const ANSWERED: &str = "answered";
/// The outcome of a call that nobody waits for any longer: its time is over, or whoever asked is gone.
const CANCELLED: &str = "cancelled";
/// The outcome of a call that broke.
const PANICKED: &str = "panicked";

/// Counts and traces what it is given. Cheap to clone; all clones count into the same figures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    pub(crate) metrics: Metrics,
    pub(crate) telemetry: Telemetry,
}

impl Watch {
    pub(crate) fn model(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        Arc::new(WatchedModel { model, watch: self.clone() })
    }

    pub(crate) fn embedder(&self, embedder: Arc<dyn Embedder>) -> Arc<dyn Embedder> {
        Arc::new(WatchedEmbedder { embedder, watch: self.clone() })
    }

    pub(crate) fn tool(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        Arc::new(WatchedTool { tool, watch: self.clone() })
    }

    /// The same agent, the calls of whose definition are watched.
    pub(crate) fn agent(&self, agent: &Agent) -> Agent {
        let assistant = WatchedAssistant::new(Arc::clone(agent.assistant()), self.clone());
        Agent::with_assistant(agent.memory().clone(), Arc::new(assistant))
    }

    /// Begins to watch a call of something that has a name.
    fn call<'a>(&'a self, operation: Operation, calls: &'a Calls, name: &'a str) -> Call<'a> {
        let mut span = self.telemetry.begin(operation.kind());
        if let Some(span) = &mut span {
            span.named(format!("{} {name}", operation.as_str()));
            span.text("gen_ai.operation.name", operation.as_str());
        }
        Call {
            telemetry: &self.telemetry,
            calls,
            name,
            span,
            began: Instant::now(),
            outcome: None,
            is_passed_over: false,
        }
    }
}

/// What is done, in the words of the conventions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Chat,
    Embeddings,
    ExecuteTool,
    InvokeAgent,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Embeddings => "embeddings",
            Self::ExecuteTool => "execute_tool",
            Self::InvokeAgent => "invoke_agent",
        }
    }

    fn kind(self) -> SpanKind {
        match self {
            Self::Chat | Self::Embeddings => SpanKind::Client,
            Self::ExecuteTool | Self::InvokeAgent => SpanKind::Internal,
        }
    }
}

/// A call on its way. It is counted, and its span sent, when it is dropped: one that is given up counts too.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    telemetry: &'a Telemetry,
    calls: &'a Calls,
    name: &'a str,
    span: Option<Span>,
    began: Instant,
    outcome: Option<Outcome>,
    is_passed_over: bool,
}

/// What became of a call.
#[derive(Debug)]
struct Outcome {
    name: String,
    is_error: bool,
}

impl Call<'_> {
    /// Tells more of it, where somebody wants to know.
    fn tell(&mut self, tell: impl FnOnce(&mut Span)) {
        if let Some(span) = &mut self.span {
            tell(span);
        }
    }

    /// Runs what happens within it.
    pub(crate) async fn around<T>(&self, within: impl Future<Output = T>) -> T {
        match &self.span {
            Some(span) => span.around(within).await,
            None => within.await,
        }
    }

    fn ended(&mut self, name: impl Into<String>) {
        self.outcome = Some(Outcome { name: name.into(), is_error: false });
    }

    pub(crate) fn failed(&mut self, name: impl Into<String>) {
        self.outcome = Some(Outcome { name: name.into(), is_error: true });
    }

    /// Passes it over: nothing was done that was not done before.
    pub(crate) fn pass_over(&mut self) {
        self.is_passed_over = true;
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.is_passed_over {
            return;
        }
        let given_up = || {
            let name = if std::thread::panicking() { PANICKED } else { CANCELLED };
            Outcome { name: name.to_owned(), is_error: true }
        };
        let Outcome { name, is_error } = self.outcome.take().unwrap_or_else(given_up);
        if let Some(mut span) = self.span.take() {
            if is_error {
                span.text("error.type", &name);
                span.failed();
            }
            self.telemetry.end(span);
        }
        self.calls.count(self.name, name, self.began.elapsed());
    }
}
