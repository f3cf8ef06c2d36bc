//! Embeddings from a server that speaks OpenAI's `/embeddings`.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use threadkeep_core::{Embedder, EmbedderError, Embedding};
use tokio::time::Instant;

use super::Provider;
use super::http::{ConnectError, Http, HttpOptions};
use super::pacing::{Pacing, SystemPacing, wait_before_next};
use super::trouble::{self, Trouble};
use crate::Secret;

/// Texts in one request.
const BATCH_TEXTS: usize = 128;
/// Bytes of the texts in one request, where more than one text is in it.
const BATCH_BYTES: usize = 256 * 1024;
/// Numbers of a point that are taken.
const DIMENSIONS: usize = 65_536;

/// Which embedding model, where, and how.
#[derive(Clone, Debug)]
pub struct EmbedderConfig {
    /// Who serves it.
    pub provider: Provider,
    /// Where: what stands before `/embeddings`.
    pub base_url: String,
    /// The server's name for the model.
    pub model: String,
    /// The key, where one is needed.
    pub key: Option<Secret>,
    /// How many numbers a point has, where the model lets one choose.
    pub dimensions: Option<usize>,
    /// Bounds.
    pub http: HttpOptions,
}

impl EmbedderConfig {
    /// Makes a configuration at the provider's own address.
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

/// An embedding model of a server. Texts are sent in batches; a batch that fails in a way that may pass is tried again.
pub struct EmbeddingModel {
    config: EmbedderConfig,
    /// The name of its space: points of other lengths are points of another one.
    space: String,
    http: Http,
    pacing: Arc<dyn Pacing>,
}

impl EmbeddingModel {
    /// Prepares calls. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is no HTTP URL, or the proxy or TLS cannot be set up.
    pub fn new(config: EmbedderConfig) -> Result<Self, ConnectError> {
        Self::with_pacing(config, Arc::new(SystemPacing))
    }

    /// Prepares calls with chance and waiting of the caller's own.
    ///
    /// # Errors
    /// As [`EmbeddingModel::new`].
    pub fn with_pacing(config: EmbedderConfig, pacing: Arc<dyn Pacing>) -> Result<Self, ConnectError> {
        let http = Http::new(&config.base_url, config.key.as_ref(), &[], config.http.clone())?;
        let space = match config.dimensions {
            Some(dimensions) => format!("{}/{dimensions}", config.model),
            None => config.model.clone(),
        };
        Ok(Self { config, space, http, pacing })
    }

    async fn embed_batch(&self, texts: &[String], deadline: Instant) -> Result<Vec<Embedding>, Trouble> {
        let mut body = json!({"input": texts, "model": self.config.model, "encoding_format": "float"});
        if let Some(dimensions) = self.config.dimensions {
            body["dimensions"] = json!(dimensions);
        }
        let body = body.to_string();
        let mut attempt = 0;
        loop {
            let answer =
                async { self.http.read(self.http.send(self.http.post("embeddings", body.clone())).await?).await };
            let trouble = match answer.await {
                Ok(answer) => return self.points(&answer, texts.len()),
                Err(trouble) => trouble,
            };
            if !trouble.is_retryable() || attempt == self.config.http.retries {
                return Err(trouble);
            }
            let wait = wait_before_next(attempt, trouble.retry_after(), self.pacing.chance());
            let Some(wait) = wait.filter(|wait| Instant::now() + *wait < deadline) else { return Err(trouble) };
            self.pacing.pause(wait).await;
            attempt += 1;
        }
    }

    fn points(&self, answer: &str, count: usize) -> Result<Vec<Embedding>, Trouble> {
        let invalid = |what: &str| Trouble::Invalid(what.to_owned());
        let answer: Value =
            serde_json::from_str(answer).map_err(|error| Trouble::Invalid(format!("it is no JSON: {error}")))?;
        let data = answer.get("data").and_then(Value::as_array).ok_or_else(|| invalid("it has no data"))?;
        if data.len() != count {
            return Err(Trouble::Invalid(format!("it has {} points for {count} texts", data.len())));
        }
        let mut points: Vec<Option<Vec<f32>>> = vec![None; count];
        for (place, entry) in (0..).zip(data) {
            let index = entry.get("index").and_then(Value::as_u64).unwrap_or(place);
            let vector =
                entry.get("embedding").and_then(read_vector).ok_or_else(|| invalid("a point is no list of numbers"))?;
            let slot = usize::try_from(index).ok().and_then(|index| points.get_mut(index));
            *slot.ok_or_else(|| invalid("a point belongs to no text"))? = Some(vector);
        }
        let points: Option<Vec<Vec<f32>>> = points.into_iter().collect();
        let points = points.ok_or_else(|| invalid("a text has no point"))?;
        Ok(points.into_iter().map(|vector| Embedding { model: self.space.clone(), vector }).collect())
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
            let mut points = Vec::with_capacity(texts.len());
            for batch in batches(texts) {
                points.extend(self.embed_batch(batch, deadline).await?);
            }
            let lengths = || points.iter().map(|point: &Embedding| point.vector.len());
            if lengths().any(|length| Some(length) != lengths().next()) {
                return Err(Trouble::Invalid("points have different lengths".to_owned()));
            }
            Ok(points)
        };
        let points = tokio::time::timeout_at(deadline, all).await.unwrap_or(Err(Trouble::TimedOut(total)));
        points.map_err(|trouble| self.error(trouble))
    }
}

impl EmbeddingModel {
    fn error(&self, trouble: Trouble) -> EmbedderError {
        match trouble {
            Trouble::Status { status, body, .. } if !matches!(status, 408 | 409 | 429 | 500..) => {
                EmbedderError::Refused(trouble::detail(status, &body, self.config.key.as_ref()))
            }
            Trouble::Invalid(what) => EmbedderError::InvalidAnswer(what),
            Trouble::TooLong => EmbedderError::InvalidAnswer("it is longer than what is taken".to_owned()),
            other => {
                let source = other.into_error(&self.config.model, self.config.key.as_ref());
                EmbedderError::Unavailable(Some(Box::new(source)))
            }
        }
    }
}

/// Parts texts so that no request is too long; a text that is too long by itself is one of its own.
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
    fn batches_hold_every_text_once_and_are_bounded() {
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
