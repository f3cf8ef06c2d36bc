use std::sync::Arc;

use async_trait::async_trait;
use threadkeep::agent::{Failure, PrepareRequest, TurnPreparation, TurnReport};
use threadkeep::{AgentError, Assistant, ChatModel, Definition, Scope, Turn};

use super::Instrumentation;

/// An assistant whose model, tools and embedder are instrumented.
#[derive(Debug)]
pub(super) struct InstrumentedAssistant {
    assistant: Arc<dyn Assistant>,
    definition: Definition,
    instrumentation: Instrumentation,
}

impl InstrumentedAssistant {
    pub(super) fn new(assistant: Arc<dyn Assistant>, instrumentation: Instrumentation) -> Self {
        let mut definition = assistant.definition().clone();
        definition.model = instrumentation.wrap_model(definition.model);
        definition.embedder = definition.embedder.map(|embedder| instrumentation.wrap_embedder(embedder));
        definition.tools = definition.tools.into_iter().map(|tool| instrumentation.wrap_tool(tool)).collect();
        definition.tool_sources =
            definition.tool_sources.into_iter().map(|source| instrumentation.wrap_tool_source(source)).collect();
        Self { assistant, definition, instrumentation }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Assistant for InstrumentedAssistant {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    async fn prepare(&self, request: &PrepareRequest<'_>) -> Result<TurnPreparation, Failure> {
        self.assistant.prepare(request).await
    }

    fn model_named(&self, name: &str) -> Option<Arc<dyn ChatModel>> {
        self.assistant.model_named(name).map(|model| self.instrumentation.wrap_model(model))
    }

    async fn source_text(&self, scope: &Scope, kind: &str, id: &str) -> Result<Option<String>, AgentError> {
        self.assistant.source_text(scope, kind, id).await
    }

    fn failure_reply(&self, failure: &Failure) -> String {
        self.assistant.failure_reply(failure)
    }

    fn report(&self, question: &str, turn: &Turn) -> TurnReport {
        self.assistant.report(question, turn)
    }

    fn approval_reply(&self, previews: &[&str]) -> String {
        self.assistant.approval_reply(previews)
    }
}
