//! What is looked up for a question before a model is asked: documents, earlier conversations, anything else.
//!
//! A [`ContextProvider`] asks several sources at once and keeps what they found as numbered [`Excerpt`]s. As text for a
//! model ([`DynamicContext::instructions`]) every line of them is marked, so that nothing which was found can pass for
//! an instruction; which of them an answer cites is read back by [`DynamicContext::cited`].

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

use crate::{ActivityContext, FnActivity, Repetition};
pub use conversations::ConversationSource;
pub use documents::DocumentSource;
pub use query::formulate;

/// The activity that looks up what a question needs.
pub const FIND_CONTEXT: &str = "find_context";

/// Messages before the question that are looked at.
const HISTORY: usize = 8;

/// Somewhere to look: a library of documents, a service, a database.
#[async_trait]
pub trait ContextSource: Portable + fmt::Debug {
    /// What it is called where it failed.
    fn name(&self) -> &str;

    /// Finds what bears on a query, best first.
    ///
    /// # Errors
    /// Why it could not look. The others are asked all the same.
    async fn find(&self, inquiry: &Inquiry<'_>) -> Result<Vec<Excerpt>, Failure>;
}

/// What a source is asked.
#[derive(Clone, Copy, Debug)]
pub struct Inquiry<'a> {
    /// The conversations and libraries.
    pub memory: &'a Memory,
    /// On whose behalf.
    pub scope: &'a Scope,
    /// In which conversation.
    pub thread: ThreadId,
    /// What to look for: the question, with what it leans on ([`formulate`]).
    pub query: &'a str,
    /// The question's position, where it is stored: neither it nor what follows was said before.
    pub before_seq: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Excerpt {
    /// Where it stands or who said it when, on one line.
    pub heading: String,
    /// Its words.
    pub text: String,
    /// It as what an answer can stand on.
    pub source: Source,
}

/// Asks several sources at once. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ContextProvider {
    sources: Vec<Arc<dyn ContextSource>>,
    limit: usize,
    timeout: Duration,
}

/// What was found for a question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DynamicContext {
    /// What was looked for.
    pub query: String,
    /// What was found: the sources in their order, each with its best first.
    pub excerpts: Vec<Excerpt>,
    /// Sources that could not look, with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<(String, Failure)>,
}

/// What the activity is given.
#[derive(Debug, Serialize, Deserialize)]
struct Input {
    question: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

impl ContextProvider {
    /// Makes a provider over sources; without any it finds nothing.
    #[must_use]
    pub fn new(sources: Vec<Arc<dyn ContextSource>>) -> Self {
        let names: Vec<&str> = sources.iter().map(|source| source.name()).collect();
        tracing::info!(sources = names.join(", "), "context is looked up");
        Self { sources, limit: 5, timeout: Duration::from_secs(5) }
    }

    /// Says how many excerpts of each source are kept. Default: 5.
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Says how long a source may take. Default: 5 seconds.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Looks up what a question needs: analyses it with what was said before it, asks all sources at once, and keeps what
    /// each found. A source that fails or takes too long is named, and does no harm.
    pub async fn find(
        &self,
        memory: &Memory,
        scope: &Scope,
        thread: ThreadId,
        question: &str,
        before_seq: Option<u64>,
    ) -> DynamicContext {
        if self.sources.is_empty() {
            tracing::info!(%thread, "no context is looked up, as there is no source");
            return DynamicContext::default();
        }
        let history = recent(memory, scope, thread, before_seq).await;
        let query = formulate(question, &history);
        let inquiry = Inquiry { memory, scope, thread, query: &query, before_seq, limit: self.limit };
        let asked = self.sources.iter().map(|source| memory.runtime().timeout(self.timeout, source.find(&inquiry)));
        let found = futures::future::join_all(asked).await;
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
            tracing::warn!(source, code = failure.code, "a source of context failed");
        }
        context
    }

    /// The same as a record by excerpt, for a program: `{}` where there is no source or nothing was found.
    pub async fn dynamic_context(
        &self,
        memory: &Memory,
        scope: &Scope,
        thread: ThreadId,
        question: Option<&str>,
    ) -> Map {
        self.find(memory, scope, thread, question.unwrap_or_default(), None).await.record()
    }

    /// The activity [`FIND_CONTEXT`] for a graph's node; its input is [`DynamicContext::ask`], its output a
    /// [`DynamicContext`].
    #[must_use]
    pub fn activity(self, memory: Memory) -> FnActivity {
        FnActivity::new(FIND_CONTEXT, Repetition::Repeatable, move |context: ActivityContext, input: JsonText| {
            let (provider, memory) = (self.clone(), memory.clone());
            async move {
                let Input { question, seq } = input.read()?;
                let found = provider.find(&memory, &context.scope, context.thread, &question, seq).await;
                Ok(JsonText::of(&found)?)
            }
        })
    }
}

impl DynamicContext {
    /// What the activity is asked, for a question that stands at a position.
    ///
    /// # Errors
    /// Never in practice: the shape is JSON's.
    pub fn ask(question: &str, seq: Option<u64>) -> Result<JsonText, threadkeep_core::StoreError> {
        JsonText::of(&Input { question: question.to_owned(), seq })
    }
}

/// What was said before a question. Without it a question is taken as it stands.
async fn recent(memory: &Memory, scope: &Scope, thread: ThreadId, before_seq: Option<u64>) -> Vec<Message> {
    let before = before_seq.map(Bound::Seq);
    let query = MessageQuery { before, on_corrupt: OnCorrupt::Report, ..MessageQuery::newest(HISTORY) };
    let page = memory.messages(scope, thread, &query).await;
    page.map(|page| page.messages).unwrap_or_default()
}

#[cfg(test)]
mod tests;
