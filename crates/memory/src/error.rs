use threadkeep_core::{Conflict, EmbedderError, Kind, ModelError, StoreError};

/// The result of a call on [`crate::Memory`].
pub type Result<T, E = MemoryError> = std::result::Result<T, E>;

/// An error from a call on [`crate::Memory`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The store rejected the call or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An option or argument is invalid.
    #[error("invalid {field}: {reason}")]
    Invalid {
        /// The name of the option or argument.
        field: &'static str,
        /// Why it is invalid.
        reason: &'static str,
    },
    /// The context policy is invalid, or its budget is too small.
    #[error(transparent)]
    Context(#[from] threadkeep_context::ContextError),
    /// The embedder failed, and the call cannot succeed without an embedder.
    #[error(transparent)]
    Embedder(#[from] EmbedderError),
    /// The language model failed or returned an invalid answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Others changed the same data during each attempt. Retry later.
    #[error("{what} was changed concurrently during each of {attempts} attempts")]
    Contended {
        /// The data, such as `the thread`.
        what: &'static str,
        /// The number of attempts.
        attempts: usize,
    },
}

impl MemoryError {
    /// Returns the stable name of the kind of error, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::Invalid { .. } => "invalid_request",
            Self::Context(_) => "invalid_policy",
            Self::Contended { .. } => "unavailable",
            Self::Embedder(_) | Self::Model(_) => "internal_error",
        }
    }

    /// Whether the same call can succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.is_retryable(),
            Self::Embedder(error) => error.is_retryable(),
            Self::Model(error) => error.is_retryable(),
            Self::Contended { .. } => true,
            Self::Invalid { .. } | Self::Context(_) => false,
        }
    }

    /// Whether the change may have been applied although the call failed. Retry with the same idempotency key.
    #[must_use]
    pub fn maybe_applied(&self) -> bool {
        matches!(self, Self::Store(error) if error.maybe_applied())
    }

    /// Whether the thread, message or record does not exist in this scope.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Store(StoreError::NotFound(_)))
    }

    /// The conflict, if the call failed because of one.
    #[must_use]
    pub fn conflict(&self) -> Option<&Conflict> {
        match self {
            Self::Store(StoreError::Conflict(conflict)) => Some(conflict),
            _ => None,
        }
    }

    pub(crate) const fn invalid(field: &'static str, reason: &'static str) -> Self {
        Self::Invalid { field, reason }
    }

    pub(crate) fn is_thread_not_found(&self) -> bool {
        matches!(self, Self::Store(StoreError::NotFound(Kind::Thread)))
    }
}
