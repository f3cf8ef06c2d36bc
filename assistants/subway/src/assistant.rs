//! The subway assistant.

use std::sync::Arc;

use async_trait::async_trait;
use threadkeep::agent::{Failure, PrepareRequest, TurnLimits, TurnPreparation};
use threadkeep::dialogue::LazyOfflineModel;
use threadkeep::{Assistant, ChatModel, ContextPolicy, Definition, Map, Memory, Scope, Value};
use threadkeep_transit::{USER_ID, chat_graph};

use crate::{Subway, SubwayTools, offline_model, prompt};

/// The name of the assistant.
pub(crate) const NAME: &str = "subway";
/// The description of the assistant.
pub(crate) const ABOUT: &str = "Routes, next trains and stations of the New York City subway.";
/// Low, because a rider expects the same answer to the same question.
const TEMPERATURE: f64 = 0.1;

/// The assistant for riders of the New York City subway.
#[derive(Clone, Debug)]
pub struct SubwayAssistant {
    definition: Definition,
}

impl SubwayAssistant {
    /// Creates the assistant. `memory` must be the memory of its agent. Without a model, the offline model answers.
    #[must_use]
    pub fn new(memory: &Memory, subway: Arc<Subway>, model: Option<Arc<dyn ChatModel>>) -> Self {
        let model = model.unwrap_or_else(|| Arc::new(LazyOfflineModel::new(offline_model)));
        let mut definition = Definition::new(NAME, model).with_graph(chat_graph(NAME));
        definition.description = ABOUT.to_owned();
        definition.tools = SubwayTools::new(memory.clone(), subway).all();
        definition.context = ContextPolicy::default();
        definition.temperature = Some(TEMPERATURE);
        definition.bounds = TurnLimits { model_calls: 8, tool_calls: 12, ..TurnLimits::default() };
        Self { definition: definition.with_instructions(prompt::instructions()) }
    }
}

#[async_trait]
impl Assistant for SubwayAssistant {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    async fn prepare(&self, asked: &PrepareRequest<'_>) -> Result<TurnPreparation, Failure> {
        let user = match asked.scope {
            Scope::User(_, user) => user.as_str().to_owned(),
            Scope::Tenant(_) => String::new(),
        };
        let given: Map = [(USER_ID.to_owned(), Value::from(user))].into_iter().collect();
        Ok(TurnPreparation { extra_input: given, ..TurnPreparation::default() })
    }

    fn failure_reply(&self, failure: &Failure) -> String {
        match failure.code.as_str() {
            "malformed_tool_call" => {
                "Sorry, I could not look that up: my model wrote a request that I cannot read. Please ask again."
                    .to_owned()
            }
            _ => {
                format!("Sorry, I could not answer this: {}. Your message is saved; please try again.", failure.message)
            }
        }
    }
}
