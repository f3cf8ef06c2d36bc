use std::sync::Arc;

use async_trait::async_trait;
use threadkeep::core::{Embedder, EmbedderError, Embedding};

use super::{ANSWERED, Operation, Watch};

/// An embedder whose calls are watched. The port tells of no tokens.
#[derive(Debug)]
pub(super) struct WatchedEmbedder {
    pub(super) embedder: Arc<dyn Embedder>,
    pub(super) watch: Watch,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Embedder for WatchedEmbedder {
    fn model(&self) -> &str {
        self.embedder.model()
    }

    fn provider(&self) -> &str {
        self.embedder.provider()
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedderError> {
        let mut call = self.watch.call(Operation::Embeddings, self.watch.metrics.embedders(), self.model());
        call.tell(|span| {
            span.text("gen_ai.provider.name", self.provider());
            span.text("gen_ai.request.model", self.model());
        });
        let embedded = self.embedder.embed(texts).await;
        match &embedded {
            Ok(points) => {
                let dimensions = points.first().map_or(0, |point| point.vector.len());
                call.tell(|span| span.number("gen_ai.embeddings.dimension.count", dimensions as u64));
                call.ended(ANSWERED);
            }
            Err(error) => call.failed(code(error)),
        }
        embedded
    }
}

fn code(error: &EmbedderError) -> &'static str {
    match error {
        EmbedderError::Unavailable(_) => "embedder_unavailable",
        EmbedderError::Refused(_) => "embedder_refused",
        EmbedderError::InvalidAnswer(_) => "invalid_answer",
        _ => "embedder_failed",
    }
}
