use std::time::Duration;

use threadkeep_core::{ChatAnswer, ChatRequest, Finish, ModelError, Part, Usage, Value};

use threadkeep_dialogue::Turn;

use crate::calls::call_part;

/// A reply of a scripted model.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The text, in the pieces that are streamed.
    pub(super) pieces: Vec<String>,
    calls: Vec<(String, Value)>,
    usage: Option<Usage>,
    pub(super) ending: Ending,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ending {
    Finish(Option<Finish>),
    Fail(Failure),
    Hang,
}

/// A failure of a scripted model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The provider is unreachable or overloaded.
    Unavailable {
        /// The wait that the provider requests.
        retry_after: Option<Duration>,
    },
    /// The provider timed out.
    TimedOut,
    /// The provider rejected the API key.
    Unauthorized,
    /// The provider rejected the request.
    Refused,
    /// The request exceeds the model's context length.
    ContextTooLong,
    /// The model wrote this tool call, which cannot be parsed.
    MalformedCall(String),
    /// The answer is invalid.
    InvalidAnswer,
}

impl Reply {
    /// Replies with text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::streamed([text.into()])
    }

    /// Replies with text, streamed in pieces.
    #[must_use]
    pub fn streamed<T: Into<String>>(pieces: impl IntoIterator<Item = T>) -> Self {
        let pieces = pieces.into_iter().map(Into::into).collect();
        Self { pieces, calls: Vec::new(), usage: None, ending: Ending::Finish(None) }
    }

    /// Replies with a tool call.
    #[must_use]
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::streamed::<String>([]).and_call(tool, arguments)
    }

    /// Fails without a text.
    #[must_use]
    pub fn failing(failure: Failure) -> Self {
        Self::streamed::<String>([]).then_fails(failure)
    }

    /// Never replies: the caller has to drop the call.
    #[must_use]
    pub fn hanging() -> Self {
        Self::streamed::<String>([]).then_hangs()
    }

    /// Adds a tool call.
    #[must_use]
    pub fn and_call(mut self, tool: impl Into<String>, arguments: Value) -> Self {
        self.calls.push((tool.into(), arguments));
        self
    }

    /// Sets the usage. `cost_usd` is `None` if the price is unknown.
    #[must_use]
    pub fn with_usage(mut self, input_tokens: u64, output_tokens: u64, cost_usd: Option<f64>) -> Self {
        self.usage = Some(Usage { input_tokens, output_tokens, cost_usd, ..Usage::default() });
        self
    }

    /// Sets the finish reason. Default: `ToolCalls` if there are calls, otherwise `Stop`.
    #[must_use]
    pub fn then_stops(mut self, finish: Finish) -> Self {
        self.ending = Ending::Finish(Some(finish));
        self
    }

    /// Makes the reply fail after streaming the text.
    #[must_use]
    pub fn then_fails(mut self, failure: Failure) -> Self {
        self.ending = Ending::Fail(failure);
        self
    }

    /// Makes the reply hang after streaming the text.
    #[must_use]
    pub fn then_hangs(mut self) -> Self {
        self.ending = Ending::Hang;
        self
    }

    pub(super) fn finish(self, model: &str, request: &ChatRequest) -> Result<ChatAnswer, ModelError> {
        let finish = match self.ending {
            Ending::Fail(failure) => return Err(failure.into_error(model)),
            Ending::Finish(Some(finish)) => finish,
            Ending::Finish(None) | Ending::Hang if self.calls.is_empty() => Finish::Stop,
            Ending::Finish(None) | Ending::Hang => Finish::ToolCalls,
        };
        let text = self.pieces.concat();
        let mut parts: Vec<Part> = (!text.is_empty()).then_some(Part::Text(text)).into_iter().collect();
        let mut mint_id = Turn::of(request).call_ids("call");
        parts.extend(self.calls.iter().map(|(tool, arguments)| call_part(mint_id(), tool, arguments)));
        let usage = self.usage.map(|usage| Usage { model: Some(model.to_owned()), ..usage });
        Ok(ChatAnswer { parts, finish, model: model.to_owned(), usage })
    }
}

impl Failure {
    fn into_error(self, model: &str) -> ModelError {
        let model = model.to_owned();
        let detail = "scripted failure".to_owned();
        match self {
            Self::Unavailable { retry_after } => ModelError::Unavailable { model, detail, retry_after },
            Self::TimedOut => ModelError::TimedOut { model, after: Duration::from_secs(60) },
            Self::Unauthorized => ModelError::Unauthorized { model, detail },
            Self::Refused => ModelError::Refused { model, status: 400, detail },
            Self::ContextTooLong => ModelError::ContextTooLong { model },
            Self::MalformedCall(text) => ModelError::MalformedCall { model, text },
            Self::InvalidAnswer => ModelError::InvalidAnswer { model, detail },
        }
    }
}
