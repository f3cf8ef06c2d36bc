use std::time::Duration;

use serde_json::Value;
use threadkeep_core::ModelError;

use crate::price::Tokens;
use crate::{Secret, repair};

/// Characters of a provider's words that an error repeats.
const DETAIL_CHARACTERS: usize = 2_000;

/// What went wrong with one attempt.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The connection was not made, or was lost.
    Broken(String),
    /// Nothing came for so long.
    TimedOut(Duration),
    /// The provider said no.
    Status {
        status: u16,
        retry_after: Option<Duration>,
        should_retry: Option<bool>,
        /// Whole, because the generation that failed stands in it.
        body: String,
    },
    /// More came than is taken.
    TooLong,
    /// What came is no answer.
    Invalid(String),
    /// The model tried to call a tool in a form that cannot be read.
    Malformed {
        text: String,
        /// Whether asking again may help.
        is_worth_another: bool,
        /// What it took all the same.
        tokens: Option<Tokens>,
    },
}

impl Trouble {
    /// An error within a stream, whose status was a success.
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

    /// Whether another attempt may succeed.
    pub(crate) fn is_retryable(&self) -> bool {
        match self {
            Self::Broken(_) | Self::TimedOut(_) => true,
            Self::Status { should_retry: Some(should_retry), .. } => *should_retry,
            Self::Status { status, body, .. } => {
                matches!(status, 408 | 409 | 429 | 500..) && !is_out_of_money(body) && !repair::is_failed_call(body)
            }
            Self::TooLong | Self::Invalid(_) | Self::Malformed { .. } => false,
        }
    }

    /// Whether the provider refuses a parameter of the request.
    pub(crate) fn is_about(&self, parameter: &str) -> bool {
        let Self::Status { status: 400 | 422, body, .. } = self else { return false };
        let body: Option<Value> = serde_json::from_str(body).ok();
        body.is_some_and(|body| body["error"]["param"] == parameter)
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        if let Self::Status { retry_after, .. } = self { *retry_after } else { None }
    }

    /// What the caller is told.
    pub(crate) fn into_error(self, model: &str, key: Option<&Secret>) -> ModelError {
        let model = model.to_owned();
        match self {
            Self::Broken(detail) => ModelError::Unavailable { model, detail, retry_after: None },
            Self::TimedOut(after) => ModelError::TimedOut { model, after },
            Self::TooLong => ModelError::InvalidAnswer { model, detail: "it is longer than what is taken".to_owned() },
            Self::Invalid(detail) => ModelError::InvalidAnswer { model, detail },
            Self::Malformed { text, .. } => ModelError::MalformedCall { model, text },
            Self::Status { status, retry_after, body, .. } => {
                let detail = detail(status, &body, key);
                match status {
                    401 | 403 => ModelError::Unauthorized { model, detail },
                    _ if is_too_long(status, &body) => ModelError::ContextTooLong { model },
                    _ if is_out_of_money(&body) => ModelError::Refused { model, status, detail },
                    408 | 409 | 429 | 500.. => ModelError::Unavailable { model, detail, retry_after },
                    _ => ModelError::Refused { model, status, detail },
                }
            }
        }
    }
}

/// What a provider says of an error, without the key.
pub(crate) fn detail(status: u16, body: &str, key: Option<&Secret>) -> String {
    let json: Option<Value> = serde_json::from_str(body).ok();
    let said = json.as_ref().and_then(message).unwrap_or(body).trim();
    let said = key.map_or_else(|| said.to_owned(), |key| key.redact(said));
    match said.char_indices().nth(DETAIL_CHARACTERS) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None if said.is_empty() => format!("status {status}"),
        None => said,
    }
}

/// The words of an error in the shapes that providers use.
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

fn is_out_of_money(body: &str) -> bool {
    matches!(code(body).as_deref(), Some("insufficient_quota" | "billing_error"))
}

/// Phrases by which providers say that a request is longer than the model reads.
const TOO_LONG: [&str; 7] = [
    "maximum context length",
    "context length exceeded",
    "context window",
    "context size",
    "prompt is too long",
    "too many tokens",
    "reduce the length of the messages",
];

fn is_too_long(status: u16, body: &str) -> bool {
    let by_code = || {
        matches!(
            code(body).as_deref(),
            Some("context_length_exceeded" | "exceed_context_size_error" | "request_too_large")
        )
    };
    let by_phrase = || {
        let json: Option<Value> = serde_json::from_str(body).ok();
        let said = json.as_ref().and_then(message).unwrap_or(body).to_lowercase();
        TOO_LONG.iter().any(|phrase| said.contains(phrase))
    };
    status == 413 || (matches!(status, 400 | 422 | 500) && (by_code() || by_phrase()))
}
