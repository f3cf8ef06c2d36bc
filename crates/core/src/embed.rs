use async_trait::async_trait;

use crate::{Embedding, Portable};

/// Turns texts into points of a space in which what means the same lies near.
///
/// It is optional everywhere: without one, recall ranks by words alone, and where one fails it does so too.
#[async_trait]
pub trait Embedder: Portable + std::fmt::Debug {
    /// The model's name. Points of two models are never compared.
    fn model(&self) -> &str;

    /// Who runs it, as traces and figures name it: `openai`, `ollama`. Default: `threadkeep`, for what stands in for one.
    fn provider(&self) -> &str {
        "threadkeep"
    }

    /// Gives one point per text, in order, all of one length, each with [`Embedder::model`].
    async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedderError>;
}

/// Why there is no embedding.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedderError {
    /// It cannot be reached, or has too much to do: ask again later.
    #[error("embedder unavailable")]
    Unavailable(#[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// It does not take what it was given, and never will.
    #[error("embedder refused the request: {0}")]
    Refused(String),
    /// What it gave is no answer.
    #[error("embedder gave an invalid answer: {0}")]
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
    fn only_what_passes_is_worth_another_try() {
        assert!(EmbedderError::Unavailable(None).is_retryable());
        for error in [EmbedderError::Refused("too long".to_owned()), EmbedderError::InvalidAnswer("empty".to_owned())] {
            assert!(!error.is_retryable(), "{error}");
        }
    }
}
