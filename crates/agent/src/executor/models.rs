//! Calling models.

use threadkeep_core::{ChatDelta, ChatRequest, ModelError, ToolDescription};
use threadkeep_graph::{Failure, History, ModelRequest, Outcome, RequestId, ToolSelection};

use super::EffectExecutor;
use crate::TurnEvent;
use crate::record::RecordedEvent;

impl EffectExecutor<'_> {
    pub(crate) async fn call_model(&self, request: RequestId, ask: ModelRequest) -> RecordedEvent {
        let began = self.now();
        let outcome = match self.try_model(ask).await {
            Ok(answer) => Outcome::Answer(answer),
            Err(failure) => Outcome::Failed(failure),
        };
        RecordedEvent::new(request, outcome, self.ms_since(began))
    }

    async fn try_model(&self, ask: ModelRequest) -> Result<threadkeep_core::ChatAnswer, Failure> {
        let definition = self.definition();
        let tools = self.descriptions(&ask.tools);
        let mut messages = match ask.history {
            History::Conversation => self.context(ask.instructions.as_deref()).await?.to_vec(),
            History::None => ask
                .instructions
                .map(|text| threadkeep_core::ChatMessage::text(threadkeep_core::Role::System, text))
                .into_iter()
                .collect(),
        };
        messages.extend(ask.messages);
        let request = ChatRequest {
            messages,
            tools,
            tool_choice: ask.tool_choice,
            temperature: ask.temperature.or(definition.temperature),
            max_tokens: ask.max_tokens.or(definition.max_tokens),
            ..ChatRequest::default()
        };
        let mut deltas = |delta| match delta {
            ChatDelta::Text(text) if ask.speaks => self.emit(TurnEvent::Token { text }),
            ChatDelta::Restarted if ask.speaks => self.emit(TurnEvent::Restarted),
            _ => {}
        };
        let after = definition.bounds.model_timeout;
        match self.memory.runtime().timeout(after, self.model.answer(&request, &mut deltas)).await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(failure(&error)),
            None => Err(failure(&ModelError::TimedOut { model: self.model.name().to_owned(), after })),
        }
    }

    fn descriptions(&self, tools: &ToolSelection) -> Vec<ToolDescription> {
        let descriptions = self.tools.iter().map(|tool| tool.spec().description.clone());
        match tools {
            ToolSelection::All => descriptions.collect(),
            ToolSelection::None => Vec::new(),
            ToolSelection::Only(names) => descriptions.filter(|tool| names.contains(&tool.name)).collect(),
        }
    }
}

/// Converts an error without the model's text: a malformed call must not reach the user.
fn failure(error: &ModelError) -> Failure {
    Failure::new(error.code(), error.to_string())
}
