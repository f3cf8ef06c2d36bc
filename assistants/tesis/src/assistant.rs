//! The definition of the assistant.

use std::sync::Arc;

use async_trait::async_trait;
use threadkeep::agent::{
    ActivityContext, Failure, FnActivity, MAX_ITERATIONS, PrepareRequest, RetryPolicy, StoreUserMessage,
    TurnPreparation, TurnReport,
};
use threadkeep::{
    AgentError, Assistant, Bound, ChatModel, ContextPolicy, Definition, Embedder, JsonText, Map, Memory, MemoryError,
    MessageQuery, Role, Scope, SummaryPolicy, Turn, Value,
};

use crate::Corpus;
use crate::briefing::INSTRUCTIONS;
use crate::graph::{QUESTION_SEQ, UNDERSTAND, UnderstandInput, tesis_graph};
use crate::history::source_key;
use crate::offline::OfflineTesis;
use crate::plan::Deciders;
use crate::tool::Searcher;
use crate::{plan, report, tool};

/// The default name.
pub(crate) const NAME: &str = "tesis";
/// The description.
pub(crate) const ABOUT: &str = "Researches Mexican case law, in Spanish, and cites only what is in its corpus.";
/// The number of messages that a turn reads.
pub(crate) const WINDOW: usize = 16;
/// The sampling temperature. Low, because lawyers expect the same question to get the same answer.
const TEMPERATURE: f64 = 0.1;

/// Options of the assistant.
#[derive(Clone, Debug, Default)]
pub struct TesisOptions {
    /// The model. Default: the offline model, which quotes.
    pub model: Option<Arc<dyn ChatModel>>,
    /// The embedder. It must be the one with which the corpus was imported.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// The legal research assistant.
#[derive(Clone, Debug)]
pub struct TesisAssistant {
    definition: Definition,
    corpus: Corpus,
    /// The name of the embedding model, which determines its price.
    embedding_model: Option<String>,
}

impl TesisAssistant {
    /// Creates the assistant with a corpus and a memory. The `Agent` that runs the assistant must use the same memory.
    #[must_use]
    pub fn new(memory: &Memory, corpus: Corpus, options: TesisOptions) -> Self {
        let embedding_model = options.embedder.as_ref().map(|embedder| embedder.model().to_owned());
        let model = options.model.unwrap_or_else(|| Arc::new(OfflineTesis));
        let deciders = Deciders { nearness: options.embedder.is_some(), model: model.name() != OfflineTesis.name() };
        let searcher = Searcher::new(corpus.clone(), options.embedder);
        let mut definition = Definition::new(NAME, model)
            .with_graph(tesis_graph())
            .with_activity(understand(memory.clone(), corpus.clone(), deciders))
            .with_tool(tool::search(&searcher))
            .with_tool(tool::compare(&searcher));
        definition.description = ABOUT.to_owned();
        definition.context =
            ContextPolicy { window: Some(WINDOW), summary: Some(SummaryPolicy::default()), ..ContextPolicy::default() };
        definition.temperature = Some(TEMPERATURE);
        definition.store_user_message = StoreUserMessage::WithAnswer;
        Self { definition: definition.with_instructions(INSTRUCTIONS), corpus, embedding_model }
    }
}

/// Reads the conversation before a message and plans the turn.
fn understand(memory: Memory, corpus: Corpus, deciders: Deciders) -> FnActivity {
    FnActivity::new(UNDERSTAND, RetryPolicy::Retryable, move |context: ActivityContext, input: JsonText| {
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
            let before = thread.message_count;
            let plan = plan::plan(&corpus, &context.scope, &question, &page.messages, before, deciders).await;
            JsonText::of(&plan.map_err(|error| failed(&error))?).map_err(|error| failed(&error))
        }
    })
}

#[async_trait]
impl Assistant for TesisAssistant {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    async fn prepare(&self, request: &PrepareRequest<'_>) -> Result<TurnPreparation, Failure> {
        let mut input: Map = [(QUESTION_SEQ.to_owned(), Value::from(request.seq))].into_iter().collect();
        if let Some(iterations) = request.extra_input.get(MAX_ITERATIONS) {
            input.insert(MAX_ITERATIONS.to_owned(), iterations.clone());
        }
        Ok(TurnPreparation { extra_input: input, ..TurnPreparation::default() })
    }

    fn report(&self, question: &str, turn: &Turn) -> TurnReport {
        report::report(question, turn, self.embedding_model.as_deref())
    }

    async fn source_text(&self, scope: &Scope, kind: &str, id: &str) -> Result<Option<String>, AgentError> {
        let Some(key) = source_key(kind, id) else { return Ok(None) };
        let found = self.corpus.by_key(scope, &[key]).await.map_err(MemoryError::from)?;
        Ok(found.first().map(|item| item.text().to_owned()))
    }

    fn failure_reply(&self, failure: &Failure) -> String {
        format!("No pude responder: {}. Tu mensaje quedó guardado; inténtalo de nuevo.", failure.message)
    }
}
