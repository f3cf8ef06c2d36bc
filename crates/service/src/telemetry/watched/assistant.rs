use std::sync::Arc;

use async_trait::async_trait;
use threadkeep::agent::{Failure, PrepareRequest, TurnPreparation};
use threadkeep::{Assistant, ChatModel, Definition};

use super::Watch;

/// An assistant whose models, tools and embedder are watched, as far as its definition names them.
#[derive(Debug)]
pub(super) struct WatchedAssistant {
    assistant: Arc<dyn Assistant>,
    definition: Definition,
    watch: Watch,
}

impl WatchedAssistant {
    pub(super) fn new(assistant: Arc<dyn Assistant>, watch: Watch) -> Self {
        let mut definition = assistant.definition().clone();
        definition.model = watch.model(definition.model);
        definition.embedder = definition.embedder.map(|embedder| watch.embedder(embedder));
        definition.tools = definition.tools.into_iter().map(|tool| watch.tool(tool)).collect();
        Self { assistant, definition, watch }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Assistant for WatchedAssistant {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    async fn prepare(&self, asked: &PrepareRequest<'_>) -> Result<TurnPreparation, Failure> {
        self.assistant.prepare(asked).await
    }

    fn model_named(&self, name: &str) -> Option<Arc<dyn ChatModel>> {
        self.assistant.model_named(name).map(|model| self.watch.model(model))
    }

    fn failure_reply(&self, failure: &Failure) -> String {
        self.assistant.failure_reply(failure)
    }

    fn approval_reply(&self, previews: &[&str]) -> String {
        self.assistant.approval_reply(previews)
    }
}
