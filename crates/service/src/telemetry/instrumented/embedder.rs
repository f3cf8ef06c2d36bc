use std::sync::Arc;

use async_trait::async_trait;
use threadkeep::core::{Embedder, EmbedderError, Embedding};

use super::{ANSWERED, Instrumentation, Operation};

/// An instrumented embedder. Tokens are not counted, because embedders do not report them.
#[derive(Debug)]
pub(super) struct InstrumentedEmbedder {
    pub(super) embedder: Arc<dyn Embedder>,
    pub(super) instrumentation: Instrumentation,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Embedder for InstrumentedEmbedder {
    fn model(&self) -> &str {
        self.embedder.model()
    }

    fn provider(&self) -> &str {
        self.embedder.provider()
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedderError> {
        let metrics = self.instrumentation.metrics.embedders();
        let mut call = self.instrumentation.start_call(Operation::Embeddings, metrics, self.model());
        call.with_span(|span| {
            span.add_text("gen_ai.provider.name", self.provider());
            span.add_text("gen_ai.request.model", self.model());
        });
        let result = self.embedder.embed(texts).await;
        match &result {
            Ok(embeddings) => {
                let dimensions = embeddings.first().map_or(0, |embedding| embedding.vector.len());
                call.with_span(|span| span.add_number("gen_ai.embeddings.dimension.count", dimensions as u64));
                call.set_succeeded(ANSWERED);
            }
            Err(error) => call.set_failed(error_code(error)),
        }
        result
    }
}

fn error_code(error: &EmbedderError) -> &'static str {
    match error {
        EmbedderError::Unavailable(_) => "embedder_unavailable",
        EmbedderError::Refused(_) => "embedder_refused",
        EmbedderError::InvalidAnswer(_) => "invalid_answer",
        _ => "embedder_failed",
    }
}
