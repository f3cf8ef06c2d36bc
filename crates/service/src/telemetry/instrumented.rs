//! Wrappers that count and trace calls, following the OpenTelemetry conventions for generative AI. They record names, numbers and
//! outcomes, but no content.

mod assistant;
mod embedder;
mod model;
mod tool;
mod tool_source;
mod turn;

use std::sync::Arc;
use std::time::Instant;

use threadkeep::core::Embedder;
use threadkeep::{Agent, ChatModel, Tool, ToolSource};

use super::{Span, SpanKind, Telemetry};
use crate::metrics::{Calls, Metrics};
use assistant::InstrumentedAssistant;
use embedder::InstrumentedEmbedder;
use model::InstrumentedModel;
use tool::InstrumentedTool;
use tool_source::InstrumentedToolSource;

/// The outcome of a successful call.
const ANSWERED: &str = "answered";
/// The outcome of a call whose future was dropped after a timeout or because the client disconnected.
const CANCELLED: &str = "cancelled";
/// The outcome of a call that panicked.
const PANICKED: &str = "panicked";

/// Counts and traces calls. Cheap to clone; clones share their metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instrumentation {
    pub(crate) metrics: Metrics,
    pub(crate) telemetry: Telemetry,
}

impl Instrumentation {
    pub(crate) fn wrap_model(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        Arc::new(InstrumentedModel { model, instrumentation: self.clone() })
    }

    pub(crate) fn wrap_embedder(&self, embedder: Arc<dyn Embedder>) -> Arc<dyn Embedder> {
        Arc::new(InstrumentedEmbedder { embedder, instrumentation: self.clone() })
    }

    pub(crate) fn wrap_tool(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        Arc::new(InstrumentedTool { tool, instrumentation: self.clone() })
    }

    pub(crate) fn wrap_tool_source(&self, source: Arc<dyn ToolSource>) -> Arc<dyn ToolSource> {
        Arc::new(InstrumentedToolSource { source, instrumentation: self.clone() })
    }

    /// Wraps the model, the tools and the embedder of an agent's definition.
    pub(crate) fn wrap_agent(&self, agent: &Agent) -> Agent {
        let assistant = InstrumentedAssistant::new(Arc::clone(agent.assistant()), self.clone());
        Agent::with_assistant(agent.memory().clone(), Arc::new(assistant))
    }

    /// Starts to count and trace a call.
    fn start_call<'a>(&'a self, operation: Operation, calls: &'a Calls, name: &'a str) -> Call<'a> {
        let mut span = self.telemetry.start_child(operation.kind());
        if let Some(span) = &mut span {
            span.set_name(format!("{} {name}", operation.as_str()));
            span.add_text("gen_ai.operation.name", operation.as_str());
        }
        Call {
            telemetry: &self.telemetry,
            calls,
            name,
            span,
            started_at: Instant::now(),
            outcome: None,
            is_discarded: false,
        }
    }
}

/// The operation of a call, named as in the OpenTelemetry conventions.
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

/// A running call. When it is dropped, the call is counted and its span is exported, so that cancelled calls count as well.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    telemetry: &'a Telemetry,
    calls: &'a Calls,
    name: &'a str,
    span: Option<Span>,
    started_at: Instant,
    outcome: Option<Outcome>,
    is_discarded: bool,
}

/// The outcome of a call.
#[derive(Debug)]
struct Outcome {
    name: String,
    is_error: bool,
}

impl Call<'_> {
    /// Updates the span, if the call is traced.
    fn with_span(&mut self, update: impl FnOnce(&mut Span)) {
        if let Some(span) = &mut self.span {
            update(span);
        }
    }

    /// Runs a future with the span of the call as the current span.
    pub(crate) async fn in_scope<T>(&self, future: impl Future<Output = T>) -> T {
        match &self.span {
            Some(span) => span.in_scope(future).await,
            None => future.await,
        }
    }

    fn set_succeeded(&mut self, name: impl Into<String>) {
        self.outcome = Some(Outcome { name: name.into(), is_error: false });
    }

    pub(crate) fn set_failed(&mut self, name: impl Into<String>) {
        self.outcome = Some(Outcome { name: name.into(), is_error: true });
    }

    /// Makes sure that the call is neither counted nor traced, because it did nothing.
    pub(crate) fn discard(&mut self) {
        self.is_discarded = true;
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.is_discarded {
            return;
        }
        let unfinished_outcome = || {
            let name = if std::thread::panicking() { PANICKED } else { CANCELLED };
            Outcome { name: name.to_owned(), is_error: true }
        };
        let Outcome { name, is_error } = self.outcome.take().unwrap_or_else(unfinished_outcome);
        if let Some(mut span) = self.span.take() {
            if is_error {
                span.add_text("error.type", &name);
                span.set_failed();
            }
            self.telemetry.end(span);
        }
        self.calls.count(self.name, name, self.started_at.elapsed());
    }
}
