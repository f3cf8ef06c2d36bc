//! Calling models.

use threadkeep_core::{ChatDelta, ChatRequest, ModelError, ToolDescription};
use threadkeep_graph::{Failure, History, ModelRequest, Outcome, RequestId, ToolSelection};

use super::EffectExecutor;
use crate::TurnEvent;
use crate::record::RecordedEvent;

impl EffectExecutor<'_> {
    pub(crate) async fn call_model(&self, request: RequestId, model_request: ModelRequest) -> RecordedEvent {
        let began = self.now();
        let outcome = match self.request_answer(model_request).await {
            Ok(answer) => Outcome::Answer(answer),
            Err(failure) => Outcome::Failed(failure),
        };
        RecordedEvent::new(request, outcome, self.ms_since(began))
    }

    async fn request_answer(&self, model_request: ModelRequest) -> Result<threadkeep_core::ChatAnswer, Failure> {
        let definition = self.definition();
        let tools = self.describe_tools(&model_request.tools);
        let mut messages = match model_request.history {
            History::Conversation => self.conversation_context(model_request.instructions.as_deref()).await?.to_vec(),
            History::None => model_request
                .instructions
                .map(|text| threadkeep_core::ChatMessage::text(threadkeep_core::Role::System, text))
                .into_iter()
                .collect(),
        };
        messages.extend(model_request.messages);
        let request = ChatRequest {
            messages,
            tools,
            tool_choice: model_request.tool_choice,
            temperature: model_request.temperature.or(definition.temperature),
            max_tokens: model_request.max_tokens.or(definition.max_tokens),
            ..ChatRequest::default()
        };
        let mut deltas = |delta| match delta {
            ChatDelta::Text(text) if model_request.is_reply => self.emit(TurnEvent::Token { text }),
            ChatDelta::Restarted if model_request.is_reply => self.emit(TurnEvent::Restarted),
            _ => {}
        };
        let after = definition.bounds.model_timeout;
        match self.memory.runtime().timeout(after, self.model.answer(&request, &mut deltas)).await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(to_failure(&error)),
            None => Err(to_failure(&ModelError::TimedOut { model: self.model.name().to_owned(), after })),
        }
    }

    fn describe_tools(&self, tools: &ToolSelection) -> Vec<ToolDescription> {
        let descriptions = self.tools.iter().map(|tool| tool.spec().description.clone());
        match tools {
            ToolSelection::All => descriptions.collect(),
            ToolSelection::None => Vec::new(),
            ToolSelection::Only(names) => descriptions.filter(|tool| names.contains(&tool.name)).collect(),
        }
    }
}

/// Converts an error without the model's text: a malformed call must not reach the user.
fn to_failure(error: &ModelError) -> Failure {
    Failure::new(error.code(), error.to_string())
}
