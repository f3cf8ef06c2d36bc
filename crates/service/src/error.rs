//! Errors, which doors encode in their protocols.

use std::num::NonZeroU32;
use std::time::Duration;

use threadkeep::core::{Kind, ModelError, TaggedNumber};
use threadkeep::{AgentError, Conflict, MemoryError, StoreError};

use crate::keys::KeyError;
use crate::rate::RateLimit;

/// The result of a request.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error, which determines what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is invalid.
    Invalid,
    /// The credential is missing or invalid.
    Unauthenticated,
    /// The caller lacks permission.
    Forbidden,
    /// The resource does not exist, or the caller cannot access it.
    NotFound,
    /// The request conflicts with the stored state.
    Conflict,
    /// The resource has changed since the caller read it, and has to be read again.
    Outdated,
    /// The caller has sent too many requests.
    TooMany,
    /// The server failed.
    Internal,
    /// The server does not support the feature.
    Unsupported,
    /// A model provider failed.
    Provider,
    /// The server or a provider is unavailable. The caller can retry later.
    Unavailable,
    /// A model provider did not respond in time.
    ProviderTimedOut,
}

/// An error of a request. Doors encode it in their protocols.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind.
    pub kind: ErrorKind,
    /// The code, for programs.
    pub code: &'static str,
    /// The message, for people.
    pub message: String,
    /// The invalid parameter of the request.
    pub param: Option<String>,
    /// How long to wait before a retry.
    pub retry_after: Option<Duration>,
    /// The rate limit that the caller has exceeded, in requests per minute.
    pub rate_limit: Option<NonZeroU32>,
    /// The current version of the resource, if the request required a different version.
    pub version: Option<TaggedNumber>,
    /// Details for the server's log, not for the caller.
    pub internal: Option<Box<str>>,
}

impl Error {
    /// Creates an error.
    pub fn new(kind: ErrorKind, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, code, message, param: None, retry_after: None, rate_limit: None, version: None, internal: None }
    }

    /// Creates an error for an invalid parameter.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, "invalid_request", message).param(param)
    }

    /// Creates an error for a missing resource, such as `thread`.
    #[must_use]
    pub fn not_found(resource: &str) -> Self {
        Self::new(ErrorKind::NotFound, "not_found", format!("{resource} not found"))
    }

    /// Creates an error for a caller without permission.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, code, message)
    }

    /// Creates an internal error. The details are only logged.
    pub fn internal(details: impl Into<String>) -> Self {
        let error = Self::new(ErrorKind::Internal, "internal_error", "internal server error");
        Self { internal: Some(details.into().into()), ..error }
    }

    /// Sets the invalid parameter.
    #[must_use]
    pub fn param(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    /// Replaces the code.
    #[must_use]
    pub fn code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// Sets how long to wait before a retry.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// Sets the rate limit that the caller has exceeded.
    #[must_use]
    pub(crate) fn rate_limit(self, limit: RateLimit) -> Self {
        Self { rate_limit: NonZeroU32::new(limit.per_minute), ..self }
    }

    fn version(self, version: TaggedNumber) -> Self {
        Self { version: Some(version), ..self }
    }
}

impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        match error {
            MemoryError::Store(error) => Self::from(error),
            MemoryError::Invalid { field, .. } => Self::invalid(field, message),
            MemoryError::Context(_) => Self::invalid("policy", message).code(code),
            MemoryError::Contended { .. } => unavailable(message),
            _ => Self::internal(message),
        }
    }
}

impl From<AgentError> for Error {
    fn from(error: AgentError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        let conflict = |message| Self::new(ErrorKind::Conflict, code, message);
        match error {
            AgentError::Memory(error) => error.into(),
            AgentError::Busy => conflict(message).retry_after(RETRY_DELAY),
            AgentError::Superseded { .. } | AgentError::ApprovalClosed { .. } => conflict(message),
            AgentError::ApprovalNotFound { .. } => Self::not_found("approval"),
            AgentError::NotAllowed { .. } => Self::forbidden(code, message),
            _ => Self::internal(message),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        match error {
            StoreError::NotFound(Kind::Thread) => Self::not_found("thread"),
            StoreError::NotFound(Kind::Message) => Self::not_found("message"),
            StoreError::NotFound(Kind::Record) => Self::not_found("record"),
            StoreError::NotFound(_) => Self::not_found("resource"),
            StoreError::Denied(_) => Self::forbidden(code, message),
            StoreError::Conflict(conflict) => conflict_error(&conflict, message),
            StoreError::Invalid { field, .. } => Self::invalid(field, message),
            StoreError::Unsupported(_) => Self::new(ErrorKind::Unsupported, code, message),
            StoreError::LimitExceeded { limit, .. } => Self::invalid(limit, message).code(code),
            StoreError::Unavailable { .. } => unavailable(message),
            _ => Self::internal(message),
        }
    }
}

impl From<ModelError> for Error {
    fn from(error: ModelError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        let kind = match &error {
            ModelError::Unavailable { .. } => ErrorKind::Unavailable,
            ModelError::RateLimited { .. } | ModelError::Refused { status: 429, .. } => ErrorKind::TooMany,
            ModelError::TimedOut { .. } => ErrorKind::ProviderTimedOut,
            ModelError::Refused { .. } | ModelError::ContextTooLong { .. } => ErrorKind::Invalid,
            _ => ErrorKind::Provider,
        };
        // A provider's message about the API key is for the operator only.
        let message = if matches!(error, ModelError::Unauthorized { .. }) {
            "the model provider rejected the server's API key".to_owned()
        } else {
            message
        };
        // A provider's message may quote the request, so it is sent to the client but not logged.
        let internal = match &error {
            ModelError::Unauthorized { .. } | ModelError::TimedOut { .. } => error.to_string(),
            _ => "the response to the client contains the provider's message".to_owned(),
        };
        let retry_after = match error {
            ModelError::Unavailable { retry_after, .. } | ModelError::RateLimited { retry_after, .. } => retry_after,
            _ => None,
        };
        Self { internal: Some(internal.into()), retry_after, ..Self::new(kind, code, message) }
    }
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Store(error) => error.into(),
            KeyError::Memory(error) => error.into(),
            KeyError::Invalid(reason) => Self::invalid("key", reason),
            KeyError::Unknown(_) => Self::not_found("key"),
            KeyError::Randomness(error) => Self::internal(error.to_string()),
        }
    }
}

/// How long clients should wait before a retry after a transient conflict or outage.
const RETRY_DELAY: Duration = Duration::from_secs(1);

fn conflict_error(conflict: &Conflict, message: String) -> Error {
    let code = conflict.code();
    let outdated = |message, version| Error::new(ErrorKind::Outdated, code, message).param("If-Match").version(version);
    let conflicted = |message| Error::new(ErrorKind::Conflict, code, message);
    match conflict {
        Conflict::Change { actual, .. } => outdated(message, *actual),
        Conflict::Seq { .. } => conflicted(message).param("expected_seq"),
        Conflict::IdempotencyKey => conflicted(message).param("Idempotency-Key"),
        Conflict::MessageId { .. } => conflicted(message).param("id"),
        Conflict::ExternalId { .. } => conflicted(message).param("external_id"),
        Conflict::Record { actual, .. } => outdated(message, actual.unwrap_or_default()),
        _ => conflicted(message),
    }
}

fn unavailable(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, "unavailable", message).retry_after(RETRY_DELAY)
}
