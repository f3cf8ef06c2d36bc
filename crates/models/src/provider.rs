//! Clients for language models over HTTP: OpenAI's chat completions API, which many servers implement, and Anthropic's
//! messages API.

mod anthropic;
mod draft;
mod embeddings;
mod failure;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod openai;
mod order;
mod pacing;
mod ping;
mod sse;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use threadkeep_core::{ChatAnswer, ChatDelta, ChatModel, ChatRequest, DeltaSink, Finish, ModelError, Part, Usage};
use tokio::time::Instant;

pub(crate) use draft::{Draft, DraftCall, DraftPart};
pub use embeddings::{EmbedderConfig, EmbeddingModel};
pub use http::{ConnectError, HttpOptions, client_tls};
pub use pacing::{Pacing, SystemPacing};
pub use ping::Ping;

use crate::price::Tokens;
use crate::repair::{self, StreamFilter, UnreadableCall};
use crate::{PriceTable, Secret};
use failure::ProviderFailure;
use http::Http;
use pacing::wait_before_next;
use sse::Event;

/// The number of retries after a tool call that cannot be parsed.
const MALFORMED_RETRIES: u32 = 1;

/// Optional request parameters. If a model rejects one of them, requests omit it.
const OPTIONAL_PARAMETERS: [&str; 3] = ["temperature", "top_p", "reasoning_effort"];

/// A provider of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// OpenAI.
    OpenAi,
    /// Groq.
    Groq,
    /// Anthropic.
    Anthropic,
    /// Ollama, local or remote.
    Ollama,
    /// Any other server with OpenAI's chat completions API, such as llama.cpp, vLLM or a gateway.
    Compatible,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 5] = [Self::OpenAi, Self::Groq, Self::Anthropic, Self::Ollama, Self::Compatible];

    /// Returns the provider's name, as used in configuration and price tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Groq => "groq",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
            Self::Compatible => "compatible",
        }
    }

    /// Returns the base URL of the provider's service; `None` if the address depends on the installation.
    #[must_use]
    pub const fn base_url(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("https://api.openai.com/v1"),
            Self::Groq => Some("https://api.groq.com/openai/v1"),
            Self::Anthropic => Some("https://api.anthropic.com/v1"),
            Self::Ollama => Some("http://127.0.0.1:11434/v1"),
            Self::Compatible => None,
        }
    }

    const fn protocol(self) -> Protocol {
        match self {
            Self::Anthropic => Protocol::Anthropic,
            _ => Protocol::OpenAi,
        }
    }

    const fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Anthropic => &[("anthropic-version", anthropic::VERSION)],
            _ => &[],
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The protocol of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    OpenAi,
    Anthropic,
}

/// The configuration of a [`ProviderModel`].
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// The provider. Determines the protocol and the prices.
    pub provider: Provider,
    /// The base URL: the part before `/chat/completions` or `/messages`.
    pub base_url: String,
    /// The provider's name for the model.
    pub model: String,
    /// The API key, if one is required.
    pub key: Option<Secret>,
    /// Whether answers are streamed.
    pub streams: bool,
    /// The prices for computing costs.
    pub prices: PriceTable,
    /// Timeouts, limits and proxy.
    pub http: HttpOptions,
}

impl ProviderConfig {
    /// Creates a configuration with the provider's base URL and defaults. [`Provider::Compatible`] has no default base URL, so
    /// the caller must set it.
    #[must_use]
    pub fn new(provider: Provider, model: impl Into<String>, key: Option<Secret>) -> Self {
        Self {
            provider,
            base_url: provider.base_url().unwrap_or_default().to_owned(),
            model: model.into(),
            key,
            streams: true,
            prices: PriceTable::built_in(),
            http: HttpOptions::default(),
        }
    }
}

/// A language model of a provider.
///
/// Retries a call that fails temporarily. The wait obeys the provider's `retry-after`. Text that was streamed before a retry
/// is void ([`ChatDelta::Restarted`]). Tool calls that a model wrote as text, or that its provider could not parse, are
/// converted to calls. If that fails, the request is retried once. Dropping the future closes the connection.
pub struct ProviderModel {
    config: ProviderConfig,
    /// The optional parameters that the model rejected so far.
    rejected: Mutex<BTreeSet<&'static str>>,
    http: Http,
    pacing: Arc<dyn Pacing>,
}

impl ProviderModel {
    /// Creates a client, without a connection yet.
    ///
    /// # Errors
    /// The base URL is invalid, or the proxy or TLS cannot be set up.
    pub fn new(config: ProviderConfig) -> Result<Self, ConnectError> {
        Self::with_pacing(config, Arc::new(SystemPacing))
    }

    /// Creates a client with custom randomness and pauses.
    ///
    /// # Errors
    /// See [`ProviderModel::new`].
    pub fn with_pacing(config: ProviderConfig, pacing: Arc<dyn Pacing>) -> Result<Self, ConnectError> {
        let http = Http::new(&config.base_url, config.key.as_ref(), config.provider.headers(), config.http.clone())?;
        Ok(Self { config, rejected: Mutex::default(), http, pacing })
    }

    /// Requests the provider's list of models to check that the provider is reachable, accepts the key and has the model.
    /// Costs no tokens.
    pub async fn ping(&self) -> Ping {
        ping::ping(&self.http, &self.config).await
    }

    async fn answer_within(
        &self,
        request: &ChatRequest,
        deadline: Instant,
        deltas: DeltaSink<'_>,
    ) -> Result<ChatAnswer, ProviderFailure> {
        let started = Instant::now();
        let (mut attempt, mut malformed) = (0, 0);
        let mut spent: Option<Tokens> = None;
        loop {
            let mut has_emitted = false;
            let mut tracked_deltas = |delta| {
                has_emitted = true;
                deltas(delta);
            };
            let failure = match self.attempt(request, &mut tracked_deltas).await {
                Ok(repaired) => return Ok(self.answer_of(repaired, spent, started)),
                Err(failure) => failure,
            };
            if let ProviderFailure::MalformedCall { is_worth_retrying: true, tokens, .. } = failure
                && malformed < MALFORMED_RETRIES
            {
                malformed += 1;
                spent = tokens;
            } else if self.record_rejected_parameter(&failure) {
                // Retry without a wait.
            } else if failure.is_retryable_after_wait() && attempt < self.config.http.retries {
                let wait = wait_before_next(attempt, failure.retry_after(), self.pacing.random_fraction());
                let Some(wait) = wait.filter(|wait| Instant::now() + *wait < deadline) else { return Err(failure) };
                self.pacing.pause(wait).await;
                attempt += 1;
            } else {
                return Err(failure);
            }
            if has_emitted {
                deltas(ChatDelta::Restarted);
            }
        }
    }

    /// Sends the request once and repairs the tool calls of the answer.
    async fn attempt(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<RepairedAnswer, ProviderFailure> {
        let mut filter = StreamFilter::new(request);
        let (parts, draft) = match self.fetch(request, &mut filter, deltas).await {
            Ok(draft) => {
                let parts = repair::parts(&draft, request);
                (parts.map_err(|unreadable| malformed(unreadable, &draft))?, draft)
            }
            Err(ProviderFailure::Status { body, .. }) if repair::is_failed_call(&body) && !request.tools.is_empty() => {
                let draft = Draft::default();
                let parts = repair::parts_of_failure(&body, request);
                (parts.map_err(|unreadable| malformed(unreadable, &draft))?, draft)
            }
            Err(failure) => return Err(failure),
        };
        let text: String = parts.iter().filter_map(Part::text).collect();
        let unsent = filter.unsent(&text);
        if !unsent.is_empty() {
            deltas(ChatDelta::Text(unsent.to_owned()));
        }
        Ok(RepairedAnswer { parts, draft })
    }

    fn answer_of(&self, repaired: RepairedAnswer, spent: Option<Tokens>, started: Instant) -> ChatAnswer {
        let RepairedAnswer { parts, draft } = repaired;
        let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        let finish = if calls { Finish::ToolCalls } else { draft.finish.unwrap_or(Finish::Stop) };
        let model = draft.model.filter(|model| !model.is_empty()).unwrap_or_else(|| self.config.model.clone());
        let tokens = draft.tokens.map(|tokens| tokens.plus(spent.unwrap_or_default())).or(spent);
        let usage = tokens.map(|tokens| {
            let provider = self.config.provider.as_str();
            let cost = |model: &str| self.config.prices.cost_usd(provider, model, tokens);
            Usage {
                model: Some(model.clone()),
                input_tokens: tokens.input,
                output_tokens: tokens.output,
                details: tokens.details(),
                cost_usd: cost(&model).or_else(|| cost(&self.config.model)),
                duration_ms: u64::try_from(started.elapsed().as_millis()).ok(),
            }
        });
        ChatAnswer { parts, finish, model, usage }
    }

    /// Records that the model rejected an optional parameter. Returns whether the rejection is new.
    fn record_rejected_parameter(&self, failure: &ProviderFailure) -> bool {
        let rejected = OPTIONAL_PARAMETERS.into_iter().find(|name| failure.rejects_parameter(name));
        rejected.is_some_and(|name| self.rejected().insert(name))
    }

    fn rejected(&self) -> std::sync::MutexGuard<'_, BTreeSet<&'static str>> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds the request body, without parameters that the model rejected.
    fn openai_body(&self, request: &ChatRequest) -> Value {
        let mut body = openai::body(&self.config, request);
        for name in self.rejected().iter() {
            body.remove(*name);
        }
        Value::Object(body)
    }

    /// Sends the request once and assembles the answer as it arrives.
    async fn fetch(
        &self,
        request: &ChatRequest,
        filter: &mut StreamFilter,
        deltas: DeltaSink<'_>,
    ) -> Result<Draft, ProviderFailure> {
        let (path, body) = match self.config.provider.protocol() {
            Protocol::OpenAi => ("chat/completions", self.openai_body(request)),
            Protocol::Anthropic => ("messages", anthropic::body(&self.config, request)),
        };
        let response = self.http.send(self.http.post(path, body.to_string())).await?;
        let is_stream = response
            .headers()
            .get(reqwest::header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let mut assembly = Assembly::new(self.config.provider.protocol());
        let mut emit = |delta: ChatDelta| match delta {
            ChatDelta::Text(piece) => {
                let piece = filter.push(&piece);
                if !piece.is_empty() {
                    deltas(ChatDelta::Text(piece));
                }
            }
            other => deltas(other),
        };
        if is_stream {
            self.http.read_events(response, |event| assembly.take(event, &mut emit)).await?;
        } else {
            let body = self.http.read(response).await?;
            let body: Value = serde_json::from_str(&body)
                .map_err(|error| ProviderFailure::Invalid(format!("not valid JSON: {error}")))?;
            if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
                return Err(ProviderFailure::in_stream(error));
            }
            assembly.take_whole(&body)?;
        }
        assembly.finish()
    }
}

impl fmt::Debug for ProviderModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderModel")
            .field("provider", &self.config.provider)
            .field("base_url", &self.config.base_url)
            .field("model", &self.config.model)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ChatModel for ProviderModel {
    fn name(&self) -> &str {
        &self.config.model
    }

    fn provider(&self) -> &str {
        self.config.provider.as_str()
    }

    fn ignored(&self, request: &ChatRequest) -> Option<&'static str> {
        match self.config.provider.protocol() {
            Protocol::OpenAi => openai::ignored(self.config.provider, request),
            Protocol::Anthropic => anthropic::ignored(request),
        }
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let total: Duration = self.config.http.total_timeout;
        let deadline = Instant::now() + total;
        let answer = tokio::time::timeout_at(deadline, self.answer_within(request, deadline, deltas)).await;
        let answer = answer.unwrap_or(Err(ProviderFailure::TimedOut(total)));
        answer.map_err(|failure| failure.into_error(&self.config.model, self.config.key.as_ref()))
    }
}

/// The parts of an answer after repair, and the draft from which they were made.
struct RepairedAnswer {
    parts: Vec<Part>,
    draft: Draft,
}

fn malformed(unreadable: UnreadableCall, draft: &Draft) -> ProviderFailure {
    // If an answer was truncated at the token limit, a retry would be truncated as well.
    let is_worth_retrying = draft.finish != Some(Finish::Length);
    ProviderFailure::MalformedCall { text: unreadable.text, is_worth_retrying, tokens: draft.tokens }
}

/// Assembles an answer from the pieces of a stream.
enum Assembly {
    OpenAi(openai::Assembly),
    Anthropic(anthropic::Assembly),
}

impl Assembly {
    fn new(protocol: Protocol) -> Self {
        match protocol {
            Protocol::OpenAi => Self::OpenAi(openai::Assembly::default()),
            Protocol::Anthropic => Self::Anthropic(anthropic::Assembly::default()),
        }
    }

    /// Processes an event. Returns whether the answer is complete.
    fn take(&mut self, event: &Event, emit: DeltaSink<'_>) -> Result<bool, ProviderFailure> {
        let is_last = match self {
            Self::OpenAi(assembly) => assembly.take(event, emit),
            Self::Anthropic(assembly) => assembly.take(event, emit),
        }?;
        self.draft().check_parts()?;
        Ok(is_last)
    }

    /// Processes an answer that was not streamed.
    fn take_whole(&mut self, body: &Value) -> Result<(), ProviderFailure> {
        match self {
            Self::OpenAi(assembly) => assembly.take_whole(body),
            Self::Anthropic(assembly) => assembly.take_whole(body),
        }?;
        self.draft().check_parts()
    }

    fn draft(&self) -> &Draft {
        match self {
            Self::OpenAi(assembly) => assembly.draft(),
            Self::Anthropic(assembly) => assembly.draft(),
        }
    }

    fn finish(self) -> Result<Draft, ProviderFailure> {
        match self {
            Self::OpenAi(assembly) => assembly.finish(),
            Self::Anthropic(assembly) => assembly.finish(),
        }
    }
}

/// Parses the data of an event.
fn parse_event(event: &Event) -> Result<Value, ProviderFailure> {
    serde_json::from_str(&event.data)
        .map_err(|error| ProviderFailure::Invalid(format!("an event is not valid JSON: {error}")))
}

/// Returns a token count of a usage object.
fn count(usage: &Value, member: &str) -> Option<u64> {
    usage.get(member).and_then(Value::as_u64)
}
