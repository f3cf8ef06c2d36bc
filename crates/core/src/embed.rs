use async_trait::async_trait;

use crate::{Embedding, Portable};

/// Computes embeddings of texts. Texts of similar meaning have similar vectors.
///
/// It is optional everywhere: without an embedder, or if it fails, recall ranks by terms only.
#[async_trait]
pub trait Embedder: Portable + std::fmt::Debug {
    /// The name of the model. Vectors of different models are never compared.
    fn model(&self) -> &str;

    /// The provider's name in traces and metrics, such as `openai` or `ollama`. Default: `threadkeep`, for embedders without a
    /// provider.
    fn provider(&self) -> &str {
        "threadkeep"
    }

    /// Returns one embedding for each text, in order, with [`Embedder::model`]. All vectors have the same length.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedderError>;
}

/// An error of an embedder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedderError {
    /// The embedder cannot be reached or is overloaded. Retry later.
    #[error("embedder unavailable")]
    Unavailable(#[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// The embedder rejected the request. Retrying the same request does not help.
    #[error("embedder rejected the request: {0}")]
    Refused(String),
    /// The response is invalid.
    #[error("embedder returned an invalid answer: {0}")]
    InvalidAnswer(String),
}

impl EmbedderError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unavailable_is_retryable() {
        assert!(EmbedderError::Unavailable(None).is_retryable());
        for error in [EmbedderError::Refused("too long".to_owned()), EmbedderError::InvalidAnswer("empty".to_owned())] {
            assert!(!error.is_retryable(), "{error}");
        }
    }
}
