//! Language models of providers, over HTTP: OpenAI's chat completions, which many speak, and Anthropic's messages.

mod anthropic;
mod draft;
mod embeddings;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod openai;
mod order;
mod pacing;
mod ping;
mod sse;
mod trouble;

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
use crate::repair::{self, Gate, Unreadable};
use crate::{PriceTable, Secret};
use http::Http;
use pacing::wait_before_next;
use sse::Event;
use trouble::Trouble;

/// How often a model is asked again that wrote a call which cannot be read.
const MALFORMED_RETRIES: u32 = 1;

/// Members of a request that some models do not take, and that an answer can do without.
const DISPENSABLE: [&str; 3] = ["temperature", "top_p", "reasoning_effort"];

/// Who serves a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// OpenAI itself.
    OpenAi,
    /// Groq.
    Groq,
    /// Anthropic.
    Anthropic,
    /// Ollama, on this machine or another.
    Ollama,
    /// Any server that speaks OpenAI's chat completions: llama.cpp, vLLM, a gateway.
    Compatible,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::OpenAi, Self::Groq, Self::Anthropic, Self::Ollama, Self::Compatible];

    /// Its name, as in the table of prices.
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

    /// Where it is, where that is one place.
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

    const fn wire(self) -> Wire {
        match self {
            Self::Anthropic => Wire::Anthropic,
            _ => Wire::OpenAi,
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

/// What is spoken with a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    OpenAi,
    Anthropic,
}

/// Which model, where, and how.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Who serves it: decides what is spoken and what it costs.
    pub provider: Provider,
    /// Where: what stands before `/chat/completions` or `/messages`.
    pub base_url: String,
    /// The provider's name for the model.
    pub model: String,
    /// The key, where one is needed.
    pub key: Option<Secret>,
    /// Whether answers come piece by piece.
    pub streams: bool,
    /// What calls cost.
    pub prices: PriceTable,
    /// Bounds.
    pub http: HttpOptions,
}

impl ProviderConfig {
    /// Makes a configuration at the provider's own address, with what is built in for all else. A
    /// [`Provider::Compatible`] has no address of its own: set `base_url`.
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

/// A model of a provider.
///
/// A call that fails in a way that may pass is tried again after a wait, which obeys the provider's `retry-after`; what
/// was said before is then void ([`ChatDelta::Restarted`]). Tool calls that a model wrote as text, or that its provider
/// could not read, become calls; where they cannot, the model is asked once more. Dropping the future closes the
/// connection.
pub struct ProviderModel {
    config: ProviderConfig,
    /// What of these the model does not take, as it has told.
    refused: Mutex<BTreeSet<&'static str>>,
    http: Http,
    pacing: Arc<dyn Pacing>,
}

impl ProviderModel {
    /// Prepares calls. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is no HTTP URL, or the proxy or TLS cannot be set up.
    pub fn new(config: ProviderConfig) -> Result<Self, ConnectError> {
        Self::with_pacing(config, Arc::new(SystemPacing))
    }

    /// Prepares calls with chance and waiting of the caller's own.
    ///
    /// # Errors
    /// As [`ProviderModel::new`].
    pub fn with_pacing(config: ProviderConfig, pacing: Arc<dyn Pacing>) -> Result<Self, ConnectError> {
        let http = Http::new(&config.base_url, config.key.as_ref(), config.provider.headers(), config.http.clone())?;
        Ok(Self { config, refused: Mutex::default(), http, pacing })
    }

    /// Asks the provider what models it has: whether it is there, takes the key and knows the model. Costs no tokens.
    pub async fn ping(&self) -> Ping {
        ping::ping(&self.http, &self.config).await
    }

    async fn answer_within(
        &self,
        request: &ChatRequest,
        deadline: Instant,
        deltas: DeltaSink<'_>,
    ) -> Result<ChatAnswer, Trouble> {
        let started = Instant::now();
        let (mut attempt, mut malformed) = (0, 0);
        let mut spent: Option<Tokens> = None;
        loop {
            let mut has_said = false;
            let mut note = |delta| {
                has_said = true;
                deltas(delta);
            };
            let trouble = match self.attempt(request, &mut note).await {
                Ok(drafted) => return Ok(self.answer_of(drafted, spent, started)),
                Err(trouble) => trouble,
            };
            if let Trouble::Malformed { is_worth_another: true, tokens, .. } = trouble
                && malformed < MALFORMED_RETRIES
            {
                malformed += 1;
                spent = tokens;
            } else if self.is_told_what_to_leave_out(&trouble) {
                // It is asked again at once.
            } else if trouble.is_retryable() && attempt < self.config.http.retries {
                let wait = wait_before_next(attempt, trouble.retry_after(), self.pacing.chance());
                let Some(wait) = wait.filter(|wait| Instant::now() + *wait < deadline) else { return Err(trouble) };
                self.pacing.pause(wait).await;
                attempt += 1;
            } else {
                return Err(trouble);
            }
            if has_said {
                deltas(ChatDelta::Restarted);
            }
        }
    }

    /// Asks once, and mends what came.
    async fn attempt(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<Drafted, Trouble> {
        let mut gate = Gate::new(request);
        let (parts, draft) = match self.fetch(request, &mut gate, deltas).await {
            Ok(draft) => {
                let parts = repair::parts(&draft, request);
                (parts.map_err(|unreadable| malformed(unreadable, &draft))?, draft)
            }
            Err(Trouble::Status { body, .. }) if repair::is_failed_call(&body) && !request.tools.is_empty() => {
                let draft = Draft::default();
                let parts = repair::parts_of_failure(&body, request);
                (parts.map_err(|unreadable| malformed(unreadable, &draft))?, draft)
            }
            Err(trouble) => return Err(trouble),
        };
        let text: String = parts.iter().filter_map(Part::text).collect();
        let rest = gate.rest(&text);
        if !rest.is_empty() {
            deltas(ChatDelta::Text(rest.to_owned()));
        }
        Ok(Drafted { parts, draft })
    }

    fn answer_of(&self, drafted: Drafted, spent: Option<Tokens>, started: Instant) -> ChatAnswer {
        let Drafted { parts, draft } = drafted;
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

    /// Whether the model has just told that it does not take something that it can be asked without.
    fn is_told_what_to_leave_out(&self, trouble: &Trouble) -> bool {
        let refused = DISPENSABLE.into_iter().find(|name| trouble.is_about(name));
        refused.is_some_and(|name| self.refused().insert(name))
    }

    fn refused(&self) -> std::sync::MutexGuard<'_, BTreeSet<&'static str>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is asked, without what the model does not take.
    fn openai_body(&self, request: &ChatRequest) -> Value {
        let mut body = openai::body(&self.config, request);
        for name in self.refused().iter() {
            body.remove(*name);
        }
        Value::Object(body)
    }

    /// Asks once, and puts the answer together as it comes.
    async fn fetch(&self, request: &ChatRequest, gate: &mut Gate, deltas: DeltaSink<'_>) -> Result<Draft, Trouble> {
        let (path, body) = match self.config.provider.wire() {
            Wire::OpenAi => ("chat/completions", self.openai_body(request)),
            Wire::Anthropic => ("messages", anthropic::body(&self.config, request)),
        };
        let response = self.http.send(self.http.post(path, body.to_string())).await?;
        let is_stream = response
            .headers()
            .get(reqwest::header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let mut assembly = Assembly::new(self.config.provider.wire());
        let mut show = |delta: ChatDelta| match delta {
            ChatDelta::Text(piece) => {
                let piece = gate.push(&piece);
                if !piece.is_empty() {
                    deltas(ChatDelta::Text(piece));
                }
            }
            other => deltas(other),
        };
        if is_stream {
            self.http.read_events(response, |event| assembly.take(event, &mut show)).await?;
        } else {
            let body = self.http.read(response).await?;
            let body: Value =
                serde_json::from_str(&body).map_err(|error| Trouble::Invalid(format!("it is no JSON: {error}")))?;
            if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
                return Err(Trouble::in_stream(error));
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

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let total: Duration = self.config.http.total_timeout;
        let deadline = Instant::now() + total;
        let answer = tokio::time::timeout_at(deadline, self.answer_within(request, deadline, deltas)).await;
        let answer = answer.unwrap_or(Err(Trouble::TimedOut(total)));
        answer.map_err(|trouble| trouble.into_error(&self.config.model, self.config.key.as_ref()))
    }
}

/// An answer whose calls are mended, and what it was made of.
struct Drafted {
    parts: Vec<Part>,
    draft: Draft,
}

fn malformed(unreadable: Unreadable, draft: &Draft) -> Trouble {
    // An answer that was cut off will be cut off again.
    let is_worth_another = draft.finish != Some(Finish::Length);
    Trouble::Malformed { text: unreadable.text, is_worth_another, tokens: draft.tokens }
}

/// An answer while it comes.
enum Assembly {
    OpenAi(openai::Assembly),
    Anthropic(anthropic::Assembly),
}

impl Assembly {
    fn new(wire: Wire) -> Self {
        match wire {
            Wire::OpenAi => Self::OpenAi(openai::Assembly::default()),
            Wire::Anthropic => Self::Anthropic(anthropic::Assembly::default()),
        }
    }

    /// Takes an event; says whether it was the last.
    fn take(&mut self, event: &Event, show: DeltaSink<'_>) -> Result<bool, Trouble> {
        let is_last = match self {
            Self::OpenAi(assembly) => assembly.take(event, show),
            Self::Anthropic(assembly) => assembly.take(event, show),
        }?;
        self.draft().check_parts()?;
        Ok(is_last)
    }

    /// Takes an answer that came in one piece.
    fn take_whole(&mut self, body: &Value) -> Result<(), Trouble> {
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

    fn finish(self) -> Result<Draft, Trouble> {
        match self {
            Self::OpenAi(assembly) => assembly.finish(),
            Self::Anthropic(assembly) => assembly.finish(),
        }
    }
}

/// A JSON event, or why it is none.
fn parse_event(event: &Event) -> Result<Value, Trouble> {
    serde_json::from_str(&event.data).map_err(|error| Trouble::Invalid(format!("an event is no JSON: {error}")))
}

/// A number of tokens, where a provider gives one.
fn count(usage: &Value, member: &str) -> Option<u64> {
    usage.get(member).and_then(Value::as_u64)
}
