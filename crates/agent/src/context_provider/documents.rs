use std::sync::Arc;

use async_trait::async_trait;
use threadkeep_core::Embedder;
use threadkeep_graph::Failure;
use threadkeep_memory::PassageOptions;

use super::{ContextSource, Excerpt, SourceQuery};

/// A source that finds passages in a library's documents: the scope's own documents, and those of its tenant.
#[derive(Clone, Debug)]
pub struct DocumentSource {
    library: String,
    embedder: Option<Arc<dyn Embedder>>,
}

impl DocumentSource {
    /// Creates a source that searches a library by words, and with an embedder also by meaning.
    #[must_use]
    pub fn new(library: impl Into<String>, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { library: library.into(), embedder }
    }
}

#[async_trait]
impl ContextSource for DocumentSource {
    fn name(&self) -> &str {
        &self.library
    }

    async fn find(&self, source_query: &SourceQuery<'_>) -> Result<Vec<Excerpt>, Failure> {
        let options = PassageOptions { limit: source_query.limit, embedder: self.embedder.as_deref() };
        let found =
            source_query.memory.find_passages(source_query.scope, &self.library, source_query.query, &options).await;
        let found = found.map_err(|error| Failure::new("documents_failed", error.to_string()))?;
        let excerpt = |passage: threadkeep_memory::FoundPassage| {
            let source = passage.source();
            Excerpt { heading: source.title.clone().unwrap_or_default(), text: passage.text, source }
        };
        Ok(found.passages.into_iter().map(excerpt).collect())
    }
}
