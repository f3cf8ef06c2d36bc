use threadkeep_core::{Conflict, EmbedderError, Kind, ModelError, StoreError};

/// The result of a call on [`crate::Memory`].
pub type Result<T, E = MemoryError> = std::result::Result<T, E>;

/// Why the memory did not do what it was asked, named for what the caller can do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The store refused or failed; its error says what can be done, and names the limit that was passed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A setting or an argument makes no sense. Change it.
    #[error("invalid {field}: {reason}")]
    Invalid {
        /// Which.
        field: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// No context can be assembled so: the policy makes no sense, or its budget is too small.
    #[error(transparent)]
    Context(#[from] threadkeep_context::ContextError),
    /// The embedder failed, and what was asked for cannot be done without it.
    #[error(transparent)]
    Embedder(#[from] EmbedderError),
    /// The language model that was asked did not answer, or with what is no answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Others kept changing the same thing while this call tried to. Repeat it later.
    #[error("{what} was changed by others {attempts} times in a row")]
    Contended {
        /// What.
        what: &'static str,
        /// How often it was tried.
        attempts: usize,
    },
}

impl MemoryError {
    /// Whether the same call can succeed later without being changed.
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

    /// Whether the change may have been applied although the call failed: repeat it with the same idempotency key.
    #[must_use]
    pub fn maybe_applied(&self) -> bool {
        matches!(self, Self::Store(error) if error.maybe_applied())
    }

    /// Whether the thread, message or record is not there (or not in this scope).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Store(StoreError::NotFound(_)))
    }

    /// What happened first, where that is why.
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
