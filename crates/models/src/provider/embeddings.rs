//! A client for OpenAI's `/embeddings` API.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use threadkeep_core::{Embedder, EmbedderError, Embedding};
use tokio::time::Instant;

use super::Provider;
use super::failure::{self, ProviderFailure};
use super::http::{ConnectError, Http, HttpOptions};
use super::pacing::{Pacing, SystemPacing, wait_before_next};
use crate::Secret;

/// The maximum number of texts in a request.
const BATCH_TEXTS: usize = 128;
/// The maximum size of a request with several texts, in bytes of text.
const BATCH_BYTES: usize = 256 * 1024;
/// The maximum number of dimensions.
const DIMENSIONS: usize = 65_536;

/// The configuration of an [`EmbeddingModel`].
#[derive(Clone, Debug)]
pub struct EmbedderConfig {
    /// The provider.
    pub provider: Provider,
    /// The base URL: the part before `/embeddings`.
    pub base_url: String,
    /// The server's name for the model.
    pub model: String,
    /// The API key, if one is required.
    pub key: Option<Secret>,
    /// The number of dimensions, for models that support several.
    pub dimensions: Option<usize>,
    /// Timeouts, limits and proxy.
    pub http: HttpOptions,
}

impl EmbedderConfig {
    /// Creates a configuration with the provider's base URL.
    #[must_use]
    pub fn new(provider: Provider, model: impl Into<String>, key: Option<Secret>) -> Self {
        Self {
            provider,
            base_url: provider.base_url().unwrap_or_default().to_owned(),
            model: model.into(),
            key,
            dimensions: None,
            http: HttpOptions::default(),
        }
    }
}

/// An embedding model of a provider. Texts are sent in batches. A batch that fails temporarily is retried.
pub struct EmbeddingModel {
    config: EmbedderConfig,
    /// The name of the vector space. It includes the dimensions, because vectors of different lengths are not comparable.
    space: String,
    http: Http,
    pacing: Arc<dyn Pacing>,
}

impl EmbeddingModel {
    /// Creates a client, without a connection yet.
    ///
    /// # Errors
    /// The base URL is invalid, or the proxy or TLS cannot be set up.
    pub fn new(config: EmbedderConfig) -> Result<Self, ConnectError> {
        Self::with_pacing(config, Arc::new(SystemPacing))
    }

    /// Creates a client with custom randomness and pauses.
    ///
    /// # Errors
    /// See [`EmbeddingModel::new`].
    pub fn with_pacing(config: EmbedderConfig, pacing: Arc<dyn Pacing>) -> Result<Self, ConnectError> {
        let http = Http::new(&config.base_url, config.key.as_ref(), &[], config.http.clone())?;
        let space = match config.dimensions {
            Some(dimensions) => format!("{}/{dimensions}", config.model),
            None => config.model.clone(),
        };
        Ok(Self { config, space, http, pacing })
    }

    async fn embed_batch(&self, texts: &[String], deadline: Instant) -> Result<Vec<Embedding>, ProviderFailure> {
        let mut body = json!({"input": texts, "model": self.config.model, "encoding_format": "float"});
        if let Some(dimensions) = self.config.dimensions {
            body["dimensions"] = json!(dimensions);
        }
        let body = body.to_string();
        let mut attempt = 0;
        loop {
            let answer =
                async { self.http.read(self.http.send(self.http.post("embeddings", body.clone())).await?).await };
            let failure = match answer.await {
                Ok(answer) => return self.embeddings(&answer, texts.len()),
                Err(failure) => failure,
            };
            if !failure.is_retryable_after_wait() || attempt == self.config.http.retries {
                return Err(failure);
            }
            let wait = wait_before_next(attempt, failure.retry_after(), self.pacing.random_fraction());
            let Some(wait) = wait.filter(|wait| Instant::now() + *wait < deadline) else { return Err(failure) };
            self.pacing.pause(wait).await;
            attempt += 1;
        }
    }

    fn embeddings(&self, answer: &str, count: usize) -> Result<Vec<Embedding>, ProviderFailure> {
        let invalid = |what: &str| ProviderFailure::Invalid(what.to_owned());
        let answer: Value = serde_json::from_str(answer)
            .map_err(|error| ProviderFailure::Invalid(format!("not valid JSON: {error}")))?;
        let data = answer.get("data").and_then(Value::as_array).ok_or_else(|| invalid("no data"))?;
        if data.len() != count {
            return Err(ProviderFailure::Invalid(format!("expected {count} embeddings, found {}", data.len())));
        }
        let mut embeddings: Vec<Option<Vec<f32>>> = vec![None; count];
        for (position, entry) in (0..).zip(data) {
            let index = entry.get("index").and_then(Value::as_u64).unwrap_or(position);
            let vector = entry
                .get("embedding")
                .and_then(read_vector)
                .ok_or_else(|| invalid("an embedding is not a list of finite numbers"))?;
            let slot = usize::try_from(index).ok().and_then(|index| embeddings.get_mut(index));
            *slot.ok_or_else(|| invalid("an embedding has an index out of range"))? = Some(vector);
        }
        let embeddings: Option<Vec<Vec<f32>>> = embeddings.into_iter().collect();
        let embeddings = embeddings.ok_or_else(|| invalid("a text has no embedding"))?;
        Ok(embeddings.into_iter().map(|vector| Embedding { model: self.space.clone(), vector }).collect())
    }
}

impl fmt::Debug for EmbeddingModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddingModel")
            .field("base_url", &self.config.base_url)
            .field("model", &self.space)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Embedder for EmbeddingModel {
    fn model(&self) -> &str {
        &self.space
    }

    fn provider(&self) -> &str {
        self.config.provider.as_str()
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedderError> {
        let total = self.config.http.total_timeout;
        let deadline = Instant::now() + total;
        let all = async {
            let mut embeddings = Vec::with_capacity(texts.len());
            for batch in batches(texts) {
                embeddings.extend(self.embed_batch(batch, deadline).await?);
            }
            let lengths = || embeddings.iter().map(|embedding: &Embedding| embedding.vector.len());
            if lengths().any(|length| Some(length) != lengths().next()) {
                return Err(ProviderFailure::Invalid("embeddings have different lengths".to_owned()));
            }
            Ok(embeddings)
        };
        let embeddings = tokio::time::timeout_at(deadline, all).await.unwrap_or(Err(ProviderFailure::TimedOut(total)));
        embeddings.map_err(|failure| self.error(failure))
    }
}

impl EmbeddingModel {
    fn error(&self, failure: ProviderFailure) -> EmbedderError {
        match failure {
            ProviderFailure::Status { status, body, .. } if !matches!(status, 408 | 409 | 429 | 500..) => {
                EmbedderError::Refused(failure::detail(status, &body, self.config.key.as_ref()))
            }
            ProviderFailure::Invalid(what) => EmbedderError::InvalidAnswer(what),
            ProviderFailure::TooLong => EmbedderError::InvalidAnswer("the response exceeds the size limit".to_owned()),
            other => {
                let source = other.into_error(&self.config.model, self.config.key.as_ref());
                EmbedderError::Unavailable(Some(Box::new(source)))
            }
        }
    }
}

/// Splits texts into batches. Text that exceeds the limit forms a batch on its own.
fn batches(texts: &[String]) -> Vec<&[String]> {
    let mut batches = Vec::new();
    let mut rest = texts;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |text: &&String| {
            bytes += text.len();
            bytes <= BATCH_BYTES
        };
        let count = rest.iter().take(BATCH_TEXTS).take_while(fits).count().max(1);
        let (batch, left) = rest.split_at(count);
        batches.push(batch);
        rest = left;
    }
    batches
}

fn read_vector(value: &Value) -> Option<Vec<f32>> {
    let numbers = value.as_array().filter(|numbers| !numbers.is_empty() && numbers.len() <= DIMENSIONS)?;
    let vector: Vec<f32> = numbers.iter().map(|number| Some(number.as_f64()? as f32)).collect::<Option<_>>()?;
    vector.iter().all(|number| number.is_finite()).then_some(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_contain_every_text_once_and_are_bounded() {
        let texts: Vec<String> = (0..300).map(|number| number.to_string()).collect();
        let sizes: Vec<usize> = batches(&texts).iter().map(|batch| batch.len()).collect();
        assert_eq!(sizes, [128, 128, 44]);
        let long = "x".repeat(BATCH_BYTES / 2);
        let texts = [long.clone(), long.clone(), long.clone(), "x".repeat(BATCH_BYTES * 2), "y".to_owned()];
        let sizes: Vec<usize> = batches(&texts).iter().map(|batch| batch.len()).collect();
        assert_eq!(sizes, [2, 1, 1, 1]);
        assert_eq!(batches(&[]), Vec::<&[String]>::new());
    }
}
