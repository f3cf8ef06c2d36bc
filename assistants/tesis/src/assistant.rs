//! The definition of the assistant.

use std::sync::Arc;

use async_trait::async_trait;
use threadkeep::agent::{ActivityContext, Failure, FnActivity, PrepareRequest, RepeatPolicy, TurnPreparation};
use threadkeep::{
    Assistant, Bound, ChatModel, ContextPolicy, Definition, Embedder, JsonText, Map, Memory, MessageQuery, Role,
    SummaryPolicy, Value,
};

use crate::briefing::INSTRUCTIONS;
use crate::graph::{MAX_ITERATIONS, QUESTION_SEQ, UNDERSTAND, UnderstandInput, tesis_graph};
use crate::offline::OfflineTesis;
use crate::plan;
use crate::{Corpus, tool};

/// The default name.
pub(crate) const NAME: &str = "tesis";
/// The description.
pub(crate) const ABOUT: &str = "Researches Mexican case law, in Spanish, and cites only what is in its corpus.";
/// The number of messages that a turn reads.
pub(crate) const WINDOW: usize = 16;
/// Low, because a lawyer expects the same answer to the same question.
const TEMPERATURE: f64 = 0.1;

/// Options of the assistant.
#[derive(Clone, Debug, Default)]
pub struct TesisOptions {
    /// The model. Default: the offline model, which quotes.
    pub model: Option<Arc<dyn ChatModel>>,
    /// The embedder, with which the corpus was imported.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// The legal research assistant.
#[derive(Clone, Debug)]
pub struct TesisAssistant {
    definition: Definition,
}

impl TesisAssistant {
    /// Creates the assistant over a memory, which must be the one of its agent, and a corpus.
    #[must_use]
    pub fn new(memory: &Memory, corpus: Corpus, options: TesisOptions) -> Self {
        let model = options.model.unwrap_or_else(|| Arc::new(OfflineTesis));
        let has_language_model = model.name() != OfflineTesis.name();
        let mut definition = Definition::new(NAME, model)
            .with_graph(tesis_graph())
            .with_activity(understand(memory.clone(), corpus.clone(), has_language_model))
            .with_tool(tool::search(corpus, options.embedder));
        definition.description = ABOUT.to_owned();
        definition.context =
            ContextPolicy { window: Some(WINDOW), summary: Some(SummaryPolicy::default()), ..ContextPolicy::default() };
        definition.temperature = Some(TEMPERATURE);
        Self { definition: definition.with_instructions(INSTRUCTIONS) }
    }
}

/// Reads the conversation before a message and plans the turn. Only a language model is asked about ambiguous messages.
fn understand(memory: Memory, corpus: Corpus, has_language_model: bool) -> FnActivity {
    FnActivity::new(UNDERSTAND, RepeatPolicy::Repeatable, move |context: ActivityContext, input: JsonText| {
        let (memory, corpus) = (memory.clone(), corpus.clone());
        async move {
            let failed = |error: &dyn std::fmt::Display| Failure::new("history_failed", error.to_string());
            let UnderstandInput { question, seq } = input.read().map_err(|error| failed(&error))?;
            let query = MessageQuery {
                before: seq.map(Bound::Seq),
                roles: vec![Role::User, Role::Assistant],
                ..MessageQuery::newest(WINDOW)
            };
            let page = memory.messages(&context.scope, context.thread, &query).await.map_err(|error| failed(&error))?;
            let thread = memory.get_thread(&context.scope, context.thread).await.map_err(|error| failed(&error))?;
            // The thread already contains the message of this turn.
            let before = thread.message_count.saturating_sub(1);
            let plan = plan::plan(&corpus, &context.scope, &question, &page.messages, before, has_language_model).await;
            JsonText::of(&plan.map_err(|error| failed(&error))?).map_err(|error| failed(&error))
        }
    })
}

#[async_trait]
impl Assistant for TesisAssistant {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    async fn prepare(&self, asked: &PrepareRequest<'_>) -> Result<TurnPreparation, Failure> {
        let mut input: Map = [(QUESTION_SEQ.to_owned(), Value::from(asked.seq))].into_iter().collect();
        if let Some(iterations) = asked.extra_input.get(MAX_ITERATIONS) {
            input.insert(MAX_ITERATIONS.to_owned(), iterations.clone());
        }
        Ok(TurnPreparation { extra_input: input, ..TurnPreparation::default() })
    }

    fn failure_reply(&self, failure: &Failure) -> String {
        format!("No pude responder: {}. Tu mensaje quedó guardado; inténtalo de nuevo.", failure.message)
    }
}
