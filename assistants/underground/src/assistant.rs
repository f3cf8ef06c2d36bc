//! The London assistant.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use threadkeep::agent::{Failure, PrepareRequest, TurnLimits, TurnPreparation};
use threadkeep::dialogue::LazyOfflineModel;
use threadkeep::{
    Assistant, ChatMessage, ChatModel, ContextPolicy, Definition, Embedder, JsonText, Map, Memory, MessageQuery,
    RecallFrom, RecallPolicy, Scope, Value,
};
use threadkeep_transit::{RiderMemory, Routing, TurnState, USER_ID, routed_graph};

use crate::lines::find_network_lines;
use crate::notices::StatusNotices;
use crate::routing::{RoutedAgents, RoutingContext, by_calls, last_mentioned_line, refers_to_usual_line, route};
use crate::spoken_lines::{SpokenLines, may_refer_to_lines};
use crate::tools::{UndergroundTools, nearest_stations};
use crate::underground::Underground;
use crate::{mentions, offline_model, prompt};

/// The name of the assistant.
pub(crate) const NAME: &str = "underground";
/// The description of the assistant.
pub(crate) const ABOUT: &str = "Status, trains and routes of London's Underground, Elizabeth line, DLR and Overground.";
/// The reply if a turn fails.
pub const APOLOGY: &str = "I apologize for the technical difficulties. Please try asking about TFL services again.";
/// Low, because a rider expects the same answer to the same question.
const TEMPERATURE: f64 = 0.1;
/// The type of the assistant's conversations, in the metadata of their threads.
const THREAD_TYPE: &str = "tfl_transport_query";
/// How many messages before the question are read for routing.
const HISTORY: usize = 10;
/// The number of earlier messages in which references such as "the first line I asked about" are resolved.
const REFERENCE_HISTORY: usize = 100;
/// The keys of the graph's input.
const ROUTING_CONTEXT: &str = "spoken";
const USER_CONTEXT: &str = "userContext";

/// The assistant for London's network.
#[derive(Clone, Debug)]
pub struct UndergroundAssistant {
    definition: Definition,
}

impl UndergroundAssistant {
    /// Creates the assistant. `memory` must be the memory of its agent. Without a model, the offline model answers.
    #[must_use]
    pub fn new(memory: &Memory, underground: Arc<Underground>, model: Option<Arc<dyn ChatModel>>) -> Self {
        // The offline model answers from the last messages only, so searching for older ones would waste time.
        let recall_from = if model.is_some() { RecallFrom::Thread } else { RecallFrom::Nowhere };
        let model = model.unwrap_or_else(|| Arc::new(LazyOfflineModel::new(offline_model)));
        let graph = routed_graph(NAME, Routing { choose, data });
        let mut definition = Definition::new(NAME, model).with_graph(graph);
        definition.description = ABOUT.to_owned();
        definition.notices = Some(Arc::new(StatusNotices::new(Arc::clone(&underground))));
        definition.thread_metadata = Map::from_iter([("type".to_owned(), THREAD_TYPE.into())]);
        definition.tools = UndergroundTools::new(memory, underground).all();
        let recall = RecallPolicy { from: recall_from, ..RecallPolicy::default() };
        definition.context = ContextPolicy { recall, ..ContextPolicy::default() };
        definition.temperature = Some(TEMPERATURE);
        definition.bounds = TurnLimits { model_calls: 8, tool_calls: 12, ..TurnLimits::default() };
        Self { definition: definition.with_instructions(prompt::instructions()) }
    }

    /// Sets the embedder, so that older messages can also be found by meaning.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Option<Arc<dyn Embedder>>) -> Self {
        self.definition.embedder = embedder;
        self
    }
}

/// Chooses the agents for the question of a turn.
fn routed(state: &TurnState) -> RoutedAgents {
    let routing_context = state.input.get(ROUTING_CONTEXT).cloned().unwrap_or_default();
    let chosen = route(&state.question, &serde_json::from_value::<RoutingContext>(routing_context).unwrap_or_default());
    let calls = state.messages.iter().flat_map(ChatMessage::tool_calls);
    let called: Vec<Value> = calls.filter_map(|call| call.arguments.read().ok()).collect();
    by_calls(chosen, &called)
}

fn choose(state: &TurnState) -> (String, f64) {
    let routed = routed(state);
    (routed.stored().to_owned(), routed.confidence)
}

/// Returns the data that is stored with an answer: its agents, what the question mentions, and the results of the tools.
fn data(state: &TurnState) -> Option<JsonText> {
    let found = mentions::mentions(&state.question);
    let of = |kind: &str| {
        let values = found.iter().filter(|mention| mention.kind == kind);
        values.map(|mention| mention.value.clone()).collect::<Vec<String>>()
    };
    let results: Vec<Value> = state.results.iter().filter_map(|result| result.read().ok()).collect();
    let data = json!({
        "agents": routed(state).agents,
        "lines": of("lines"),
        "stations": of("stations"),
        "queryTypes": of("query_types"),
        "results": results,
    });
    Some(JsonText::from(&data))
}

/// Returns a sentence about the user's position, if the caller sent one.
fn whereabouts(extra_input: &Map) -> Option<String> {
    let context = extra_input.get(USER_CONTEXT)?;
    let degrees = |names: [&str; 2]| names.iter().find_map(|name| context.get(*name)?.as_f64());
    let (latitude, longitude) = (degrees(["latitude", "lat"])?, degrees(["longitude", "lon"])?);
    let nearest: Vec<String> = nearest_stations(latitude, longitude, 3)
        .into_iter()
        .map(|(name, metres)| format!("{name} ({metres} m)"))
        .collect();
    Some(format!("The user is at {latitude}, {longitude}. The nearest stations are {}.", nearest.join(", ")))
}

#[async_trait]
impl Assistant for UndergroundAssistant {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    async fn prepare(&self, asked: &PrepareRequest<'_>) -> Result<TurnPreparation, Failure> {
        tracing::info!("🚇 Loading context for TFL thread: {}", asked.thread);
        let user = match asked.scope {
            Scope::User(_, user) => user.as_str().to_owned(),
            Scope::Tenant(_) => String::new(),
        };
        let query = MessageQuery::newest(HISTORY + 1);
        let messages = match asked.memory.messages(asked.scope, asked.thread, &query).await {
            Ok(page) => page.messages.into_iter().filter(|message| message.seq < asked.seq).collect(),
            Err(error) => {
                tracing::error!("❌ Error loading conversation context: {error}");
                Vec::new()
            }
        };
        tracing::info!("📝 Processing {} messages for context", messages.len());
        let mut routing_context = RoutingContext { line: last_mentioned_line(&messages), ..RoutingContext::default() };
        if may_refer_to_lines(asked.question) {
            // The first question may be long ago.
            let query = MessageQuery::newest(REFERENCE_HISTORY + 1);
            let page = asked.memory.messages(asked.scope, asked.thread, &query).await;
            let messages = page.map(|page| page.messages).unwrap_or_default();
            let messages = messages.iter().filter(|message| message.seq < asked.seq);
            let spoken = messages.map(|message| (message.content.role, message.plain_text()));
            let referred = SpokenLines::of(spoken).referred(asked.question);
            routing_context.referred = referred.iter().map(|line| line.id.to_owned()).collect();
        }
        if refers_to_usual_line(asked.question) && matches!(asked.scope, Scope::User(..)) {
            let rider = RiderMemory::new(asked.memory.clone(), NAME);
            for key in ["usual line", "favorite line", "line"] {
                let saved = rider.get(asked.scope, key).await.ok().flatten();
                let lines = saved.and_then(|saved| find_network_lines(&saved).ok());
                routing_context.usual_line = routing_context.usual_line.or_else(|| Some(lines?.first()?.id.clone()));
            }
        }
        let chosen = route(asked.question, &routing_context);
        tracing::info!("🎯 Routed to {} with {} confidence", chosen.stored(), chosen.confidence);
        let routing_context = serde_json::to_value(&routing_context).unwrap_or_default();
        let given: Map = [(USER_ID.to_owned(), Value::from(user)), (ROUTING_CONTEXT.to_owned(), routing_context)]
            .into_iter()
            .collect();
        Ok(TurnPreparation {
            extra_input: given,
            grounding: whereabouts(asked.extra_input),
            enrichment: Some(mentions::enrichment()),
            ..TurnPreparation::default()
        })
    }

    fn failure_reply(&self, failure: &Failure) -> String {
        tracing::error!("❌ Error processing TFL query: {}", failure.message);
        APOLOGY.to_owned()
    }
}
