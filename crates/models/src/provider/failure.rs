use std::time::Duration;

use serde_json::Value;
use threadkeep_core::ModelError;

use crate::price::Tokens;
use crate::{Secret, repair};

/// The maximum length of a provider's message in an error text, in characters.
const DETAIL_CHARACTERS: usize = 2_000;

/// The failure of one attempt.
#[derive(Debug)]
pub(crate) enum ProviderFailure {
    /// The connection failed or was lost.
    Connection(String),
    /// No data arrived within this duration.
    TimedOut(Duration),
    /// The provider returned an error status.
    Status {
        status: u16,
        retry_after: Option<Duration>,
        should_retry: Option<bool>,
        /// The complete body, because it may contain the failed generation.
        body: String,
    },
    /// The response exceeds the size limit.
    TooLong,
    /// The response is not in the provider's format.
    Invalid(String),
    /// The model wrote a tool call that cannot be parsed.
    MalformedCall {
        text: String,
        /// Whether an immediate retry may succeed.
        is_worth_retrying: bool,
        /// The tokens that the attempt consumed.
        tokens: Option<Tokens>,
    },
}

impl ProviderFailure {
    /// Creates a failure from an error event within a stream.
    pub(super) fn in_stream(error: &Value) -> Self {
        let code = error.get("status_code").or_else(|| error.get("code")).and_then(Value::as_u64);
        let by_kind = || match error.get("type").and_then(Value::as_str) {
            Some("overloaded_error") => 529,
            Some("rate_limit_error") => 429,
            Some("authentication_error") => 401,
            Some("invalid_request_error") => 400,
            _ => 500,
        };
        let status = code.and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400).unwrap_or_else(by_kind);
        let body = serde_json::json!({"error": error}).to_string();
        Self::Status { status, retry_after: None, should_retry: None, body }
    }

    /// Whether a retry after a wait may succeed.
    pub(crate) fn is_retryable_after_wait(&self) -> bool {
        match self {
            Self::Connection(_) | Self::TimedOut(_) => true,
            Self::Status { should_retry: Some(should_retry), .. } => *should_retry,
            Self::Status { status, body, .. } => {
                matches!(status, 408 | 409 | 429 | 500..) && !is_quota_exhausted(body) && !repair::is_failed_call(body)
            }
            Self::TooLong | Self::Invalid(_) | Self::MalformedCall { .. } => false,
        }
    }

    /// Whether the provider rejected the request because of this parameter.
    pub(crate) fn rejects_parameter(&self, parameter: &str) -> bool {
        let Self::Status { status: 400 | 422, body, .. } = self else { return false };
        let body: Option<Value> = serde_json::from_str(body).ok();
        body.is_some_and(|body| body["error"]["param"] == parameter)
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        if let Self::Status { retry_after, .. } = self { *retry_after } else { None }
    }

    /// Converts the failure to the public error.
    pub(crate) fn into_error(self, model: &str, key: Option<&Secret>) -> ModelError {
        let model = model.to_owned();
        match self {
            Self::Connection(detail) => ModelError::Unavailable { model, detail, retry_after: None },
            Self::TimedOut(after) => ModelError::TimedOut { model, after },
            Self::TooLong => {
                ModelError::InvalidAnswer { model, detail: "the response exceeds the size limit".to_owned() }
            }
            Self::Invalid(detail) => ModelError::InvalidAnswer { model, detail },
            Self::MalformedCall { text, .. } => ModelError::MalformedCall { model, text },
            Self::Status { status, retry_after, body, .. } => {
                let detail = detail(status, &body, key);
                match status {
                    401 | 403 => ModelError::Unauthorized { model, detail },
                    _ if exceeds_context(status, &body) => ModelError::ContextTooLong { model },
                    _ if is_quota_exhausted(&body) => ModelError::Refused { model, status, detail },
                    429 => ModelError::RateLimited { model, detail, retry_after },
                    408 | 409 | 500.. => ModelError::Unavailable { model, detail, retry_after },
                    _ => ModelError::Refused { model, status, detail },
                }
            }
        }
    }
}

/// Returns the provider's error message, with the key redacted.
pub(crate) fn detail(status: u16, body: &str, key: Option<&Secret>) -> String {
    let json: Option<Value> = serde_json::from_str(body).ok();
    let message = json.as_ref().and_then(message).unwrap_or(body).trim();
    let message = key.map_or_else(|| message.to_owned(), |key| key.redact(message));
    match message.char_indices().nth(DETAIL_CHARACTERS) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None if message.is_empty() => format!("status {status}"),
        None => message,
    }
}

/// Finds the message in an error body, in any of the forms that providers use.
fn message(body: &Value) -> Option<&str> {
    let error = body.get("error").unwrap_or(body);
    [error.get("message"), Some(error), body.get("detail"), body.get("message")]
        .into_iter()
        .flatten()
        .find_map(Value::as_str)
}

fn code(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    let error = body.get("error")?;
    let code = error.get("code").filter(|code| code.is_string()).or_else(|| error.get("type"))?;
    code.as_str().map(str::to_owned)
}

fn is_quota_exhausted(body: &str) -> bool {
    matches!(code(body).as_deref(), Some("insufficient_quota" | "billing_error"))
}

/// Phrases in providers' error messages about requests that exceed the context length.
const CONTEXT_PHRASES: [&str; 7] = [
    "maximum context length",
    "context length exceeded",
    "context window",
    "context size",
    "prompt is too long",
    "too many tokens",
    "reduce the length of the messages",
];

fn exceeds_context(status: u16, body: &str) -> bool {
    let by_code = || {
        matches!(
            code(body).as_deref(),
            Some("context_length_exceeded" | "exceed_context_size_error" | "request_too_large")
        )
    };
    let by_phrase = || {
        let json: Option<Value> = serde_json::from_str(body).ok();
        let message = json.as_ref().and_then(message).unwrap_or(body).to_lowercase();
        CONTEXT_PHRASES.iter().any(|phrase| message.contains(phrase))
    };
    status == 413 || (matches!(status, 400 | 422 | 500) && (by_code() || by_phrase()))
}
