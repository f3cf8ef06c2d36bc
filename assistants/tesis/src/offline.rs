//! The offline model, which answers by quoting the sources.

use async_trait::async_trait;
use threadkeep::{
    ChatAnswer, ChatDelta, ChatMessage, ChatModel, ChatRequest, DeltaSink, Finish, ModelError, Part, Role, Usage,
};

use crate::answer;
use crate::briefing::{self, Task};

/// A model that needs no network and answers by quoting the sources.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfflineTesis;

const NAME: &str = "offline";

#[async_trait]
impl ChatModel for OfflineTesis {
    fn name(&self) -> &str {
        NAME
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let system: Vec<String> = request
            .messages
            .iter()
            .filter(|message| message.role == Role::System)
            .map(ChatMessage::plain_text)
            .collect();
        let text = match briefing::parse(&system.join("\n")) {
            Some((briefing, sources)) if briefing.tarea == Task::Evaluar => match sources.is_empty() {
                true => "{\"decision\": \"SATISFECHO\", \"razon\": \"no hay más que consultar\"}".to_owned(),
                false => "{\"decision\": \"SATISFECHO\", \"razon\": \"las fuentes tratan la consulta\"}".to_owned(),
            },
            Some((briefing, sources)) => answer::quote(&briefing, &sources),
            None => answer::NO_SOURCES.to_owned(),
        };
        deltas(ChatDelta::Text(text.clone()));
        let usage = Usage { cost_usd: Some(0.0), ..Usage::default() };
        Ok(ChatAnswer {
            parts: vec![Part::Text(text)],
            finish: Finish::Stop,
            usage: Some(usage),
            model: NAME.to_owned(),
        })
    }
}
