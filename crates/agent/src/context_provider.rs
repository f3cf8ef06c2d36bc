//! Context that is looked up for a question before a model is called: documents, earlier conversations, or data from other sources.
//!
//! A [`ContextProvider`] queries several sources concurrently and returns numbered [`Excerpt`]s. In the text for a model
//! ([`DynamicContext::instructions`]) every line of an excerpt has a prefix, so that a model does not mistake it for an instruction.
//! [`DynamicContext::cited_sources`] returns the sources that an answer cites.

mod conversations;
mod documents;
mod query;
mod text;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use threadkeep_core::{Bound, JsonText, Map, Message, MessageQuery, OnCorrupt, Portable, Scope, Source, ThreadId};
use threadkeep_graph::Failure;
use threadkeep_memory::Memory;

use crate::{ActivityContext, FnActivity, RetryPolicy};
pub use conversations::ConversationSource;
pub use documents::DocumentSource;
pub use query::{build_query, referred_questions};

/// The name of the activity that looks up context for a question.
pub const FIND_CONTEXT: &str = "find_context";

/// Number of messages before the question that are searched for earlier questions, which are added to the query.
const HISTORY_MESSAGES: usize = 8;

/// A source of context: a library of documents, a service, a database.
#[async_trait]
pub trait ContextSource: Portable + fmt::Debug {
    /// Returns the source's name, for reports of its failures.
    fn name(&self) -> &str;

    /// Finds excerpts that match a query, best first.
    ///
    /// # Errors
    /// A failure is listed in [`DynamicContext::failed`]; the other sources are not affected.
    async fn find(&self, source_query: &SourceQuery<'_>) -> Result<Vec<Excerpt>, Failure>;
}

/// The input of [`ContextSource::find`].
#[derive(Clone, Copy, Debug)]
pub struct SourceQuery<'a> {
    /// The memory, with its conversations and libraries.
    pub memory: &'a Memory,
    /// The scope on whose behalf the source is queried.
    pub scope: &'a Scope,
    /// The thread.
    pub thread: ThreadId,
    /// The query: the question, with earlier questions that it refers to ([`build_query`]).
    pub query: &'a str,
    /// The position of the question, if it is stored. Messages of the thread at and after this position are not searched.
    pub before_seq: Option<u64>,
    /// Maximum number of excerpts.
    pub limit: usize,
}

/// Text that a source found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Excerpt {
    /// The title of the document, or the author and date of the message, on one line.
    pub heading: String,
    /// The text.
    pub text: String,
    /// The source, for citations.
    pub source: Source,
}

/// Queries several sources concurrently. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ContextProvider {
    sources: Vec<Arc<dyn ContextSource>>,
    limit: usize,
    timeout: Duration,
}

/// The context that was found for a question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DynamicContext {
    /// The query.
    pub query: String,
    /// The excerpts, grouped in the order of the sources. The best excerpt of each source comes first.
    pub excerpts: Vec<Excerpt>,
    /// The names of sources that failed, with their failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<(String, Failure)>,
}

/// The input of the activity [`FIND_CONTEXT`].
#[derive(Debug, Serialize, Deserialize)]
struct FindContextInput {
    question: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

impl ContextProvider {
    /// Creates a provider that queries these sources.
    #[must_use]
    pub fn new(sources: Vec<Arc<dyn ContextSource>>) -> Self {
        let names: Vec<&str> = sources.iter().map(|source| source.name()).collect();
        tracing::info!(sources = names.join(", "), "configured context provider");
        Self { sources, limit: 5, timeout: Duration::from_secs(5) }
    }

    /// Sets the maximum number of excerpts of each source. Default: 5.
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Sets the timeout of each source. Default: 5 seconds.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Looks up context for a question: builds the query from the question and the messages before it, and queries all sources
    /// concurrently. A source that fails or times out is listed in [`DynamicContext::failed`]; the others are not affected.
    pub async fn find(
        &self,
        memory: &Memory,
        scope: &Scope,
        thread: ThreadId,
        question: &str,
        before_seq: Option<u64>,
    ) -> DynamicContext {
        if self.sources.is_empty() {
            tracing::info!(%thread, "skipped context lookup: no sources configured");
            return DynamicContext::default();
        }
        let history = recent_messages(memory, scope, thread, before_seq).await;
        let query = build_query(question, &history);
        let source_query = SourceQuery { memory, scope, thread, query: &query, before_seq, limit: self.limit };
        let queries =
            self.sources.iter().map(|source| memory.runtime().timeout(self.timeout, source.find(&source_query)));
        let found = futures::future::join_all(queries).await;
        let mut context = DynamicContext { query: query.clone(), ..DynamicContext::default() };
        for (source, found) in self.sources.iter().zip(found) {
            match found {
                Some(Ok(excerpts)) => context.excerpts.extend(excerpts.into_iter().take(self.limit)),
                Some(Err(failure)) => context.failed.push((source.name().to_owned(), failure)),
                None => {
                    let failure = Failure::new("timeout", format!("no answer within {:?}", self.timeout));
                    context.failed.push((source.name().to_owned(), failure));
                }
            }
        }
        for (source, failure) in &context.failed {
            tracing::warn!(source, code = failure.code, "context source failed");
        }
        context
    }

    /// Like [`ContextProvider::find`], but returns a JSON object ([`DynamicContext::to_json`]); `{}` if nothing was found.
    pub async fn dynamic_context(
        &self,
        memory: &Memory,
        scope: &Scope,
        thread: ThreadId,
        question: Option<&str>,
    ) -> Map {
        self.find(memory, scope, thread, question.unwrap_or_default(), None).await.to_json()
    }

    /// Returns the activity [`FIND_CONTEXT`]. [`DynamicContext::activity_input`] creates its input; its output is a
    /// [`DynamicContext`].
    #[must_use]
    pub fn activity(self, memory: Memory) -> FnActivity {
        FnActivity::new(FIND_CONTEXT, RetryPolicy::Retryable, move |context: ActivityContext, input: JsonText| {
            let (provider, memory) = (self.clone(), memory.clone());
            async move {
                let FindContextInput { question, seq } = input.read()?;
                let found = provider.find(&memory, &context.scope, context.thread, &question, seq).await;
                Ok(JsonText::of(&found)?)
            }
        })
    }
}

impl DynamicContext {
    /// Creates the input of the activity [`FIND_CONTEXT`]. `seq` is the position of the question, if it is stored.
    ///
    /// # Errors
    /// Never in practice: the input is always valid JSON.
    pub fn activity_input(question: &str, seq: Option<u64>) -> Result<JsonText, threadkeep_core::StoreError> {
        JsonText::of(&FindContextInput { question: question.to_owned(), seq })
    }
}

/// Returns the messages before a question. If they cannot be read, the result is empty, so the query is the question alone.
async fn recent_messages(memory: &Memory, scope: &Scope, thread: ThreadId, before_seq: Option<u64>) -> Vec<Message> {
    let before = before_seq.map(Bound::Seq);
    let query = MessageQuery { before, on_corrupt: OnCorrupt::Report, ..MessageQuery::newest(HISTORY_MESSAGES) };
    let page = memory.messages(scope, thread, &query).await;
    page.map(|page| page.messages).unwrap_or_default()
}

#[cfg(test)]
mod tests;
