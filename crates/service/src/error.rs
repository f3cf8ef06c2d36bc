//! What went wrong, before a door says it on its wire.

use std::time::Duration;

use threadkeep::core::{Kind, ModelError, Tagged};
use threadkeep::{AgentError, Conflict, MemoryError, StoreError};

use crate::keys::KeyError;

/// The result of what a caller asked for.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request makes no sense as it is.
    Invalid,
    /// Nobody is known by what was shown.
    Unauthenticated,
    /// This caller may not.
    Forbidden,
    /// There is no such thing, or none for this caller.
    NotFound,
    /// It does not go with what is there.
    Conflict,
    /// What the caller knew of the thing is outdated: read it again.
    Outdated,
    /// Too many requests.
    TooMany,
    /// The server failed.
    Internal,
    /// It cannot do this.
    Unsupported,
    /// A provider failed.
    Provider,
    /// It cannot be done now.
    Unavailable,
    /// A provider took too long.
    ProviderTimedOut,
}

/// Why something was not done. A door writes it in the terms of its wire.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What the caller can do about it.
    pub kind: ErrorKind,
    /// For programs.
    pub code: &'static str,
    /// For people.
    pub message: String,
    /// What of the request was wrong.
    pub param: Option<String>,
    /// How long to wait before another try.
    pub retry_after: Option<Duration>,
    /// The version that the thing has, where another one was demanded.
    pub version: Option<Tagged>,
    /// What an operator may know and a caller may not.
    pub internal: Option<Box<str>>,
}

impl Error {
    /// Makes an error.
    pub fn new(kind: ErrorKind, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, code, message, param: None, retry_after: None, version: None, internal: None }
    }

    /// The request makes no sense as it is.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, "invalid_request", message).param(param)
    }

    /// There is no such thing.
    #[must_use]
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorKind::NotFound, "not_found", format!("{what} not found"))
    }

    /// This caller may not.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, code, message)
    }

    /// The server failed; what is said here is for its operator alone.
    pub fn internal(what: impl Into<String>) -> Self {
        let error = Self::new(ErrorKind::Internal, "internal_error", "the server failed at this request");
        Self { internal: Some(what.into().into()), ..error }
    }

    /// Names what of the request was wrong.
    #[must_use]
    pub fn param(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    /// Gives it another code.
    #[must_use]
    pub fn code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// Says how long to wait before another try.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    fn version(self, version: Tagged) -> Self {
        Self { version: Some(version), ..self }
    }
}

impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Self {
        let message = error.to_string();
        match error {
            MemoryError::Store(error) => Self::from(error),
            MemoryError::Invalid { field, .. } => Self::invalid(field, message),
            MemoryError::Context(_) => Self::invalid("policy", message).code("invalid_policy"),
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
            AgentError::Busy => conflict(message).retry_after(SOON),
            AgentError::Superseded { .. } | AgentError::ApprovalClosed { .. } => conflict(message),
            AgentError::ApprovalNotFound { .. } => Self::not_found("approval"),
            AgentError::NotAllowed { .. } => Self::forbidden(code, message),
            _ => Self::internal(message),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::NotFound(Kind::Thread) => Self::not_found("thread"),
            StoreError::NotFound(Kind::Message) => Self::not_found("message"),
            StoreError::NotFound(Kind::Record) => Self::not_found("document"),
            StoreError::NotFound(_) => Self::not_found("it was"),
            StoreError::Denied(_) => Self::forbidden("denied", message),
            StoreError::Conflict(conflict) => of_conflict(&conflict, message),
            StoreError::Invalid { field, .. } => Self::invalid(field, message),
            StoreError::Unsupported(_) => Self::new(ErrorKind::Unsupported, "unsupported", message),
            StoreError::LimitExceeded { limit, .. } => Self::invalid(limit, message).code("limit_exceeded"),
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
            ModelError::TimedOut { .. } => ErrorKind::ProviderTimedOut,
            ModelError::Refused { .. } | ModelError::ContextTooLong { .. } => ErrorKind::Invalid,
            _ => ErrorKind::Provider,
        };
        // What a provider says of its key is for the operator.
        let message = if matches!(error, ModelError::Unauthorized { .. }) {
            "the model refused this server's key".to_owned()
        } else {
            message
        };
        // A provider's words may quote what it was asked: the client reads them, and the log does not.
        let internal = match &error {
            ModelError::Unauthorized { .. } | ModelError::TimedOut { .. } => error.to_string(),
            _ => "the model's own words are with the answer".to_owned(),
        };
        Self { internal: Some(internal.into()), ..Self::new(kind, code, message) }
    }
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Store(error) => error.into(),
            KeyError::Memory(error) => error.into(),
            KeyError::Invalid(why) => Self::invalid("key", why),
            KeyError::Unknown(_) => Self::not_found("key"),
            KeyError::Randomness(error) => Self::internal(error.to_string()),
        }
    }
}

/// How long to wait for what others do in a moment.
const SOON: Duration = Duration::from_secs(1);

fn of_conflict(conflict: &Conflict, message: String) -> Error {
    let outdated = |message, version| {
        Error::new(ErrorKind::Outdated, "changed_meanwhile", message).param("If-Match").version(version)
    };
    let conflicted = |code, message| Error::new(ErrorKind::Conflict, code, message);
    match conflict {
        Conflict::Change { actual, .. } => outdated(message, *actual),
        Conflict::Seq { .. } => conflicted("seq_conflict", message).param("expected_seq"),
        Conflict::IdempotencyKey => conflicted("idempotency_key_reused", message).param("Idempotency-Key"),
        Conflict::MessageId { .. } => conflicted("message_id_taken", message).param("id"),
        Conflict::ExternalId { .. } => conflicted("external_id_taken", message).param("external_id"),
        Conflict::Record { actual, .. } => outdated(message, actual.unwrap_or_default()),
        _ => conflicted("conflict", message),
    }
}

fn unavailable(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, "unavailable", message).retry_after(SOON)
}
