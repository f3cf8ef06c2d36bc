use threadkeep_core::StoreError;
use threadkeep_graph::GraphError;
use threadkeep_memory::MemoryError;

use crate::ApprovalState;

/// The result of a call on an [`crate::Agent`].
pub type Result<T, E = AgentError> = std::result::Result<T, E>;

/// Why there is no turn, named for what the caller can do. A turn that began and failed is no error but a
/// [`crate::Turn`] that says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// Another turn is on its way in this thread. Ask again later.
    #[error("another turn is on its way in this thread")]
    Busy,
    /// Another driver went on with this turn, because this one was thought to be gone. It has the outcome.
    #[error("another driver went on with turn {turn}")]
    Superseded {
        /// The turn.
        turn: String,
    },
    /// There is no such approval in this thread.
    #[error("approval {id} not found")]
    ApprovalNotFound {
        /// The id that was given.
        id: String,
    },
    /// The approval was decided before, or is void. It is used once.
    #[error("approval {id} is {state} already")]
    ApprovalClosed {
        /// The approval.
        id: String,
        /// Where it stands.
        state: ApprovalState,
    },
    /// This person may not decide.
    #[error("{by} may not decide this approval")]
    NotAllowed {
        /// Who tried.
        by: String,
    },
    /// The memory or its store refused or failed; its error says what can be done.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The assistant's graph could not be run. Change the assistant.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl AgentError {
    /// Whether the same call can succeed later without being changed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Busy => true,
            Self::Memory(error) => error.is_retryable(),
            _ => false,
        }
    }

    /// Whether a store will never keep what it was given.
    pub(crate) fn is_not_storable(&self) -> bool {
        use StoreError::{Invalid, LimitExceeded};
        matches!(self, Self::Memory(MemoryError::Store(Invalid { .. } | LimitExceeded { .. })))
    }

    /// The error's name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Superseded { .. } => "superseded",
            Self::ApprovalNotFound { .. } => "approval_not_found",
            Self::ApprovalClosed { .. } => "approval_closed",
            Self::NotAllowed { .. } => "not_allowed",
            Self::Memory(error) if error.is_not_found() => "not_found",
            Self::Memory(_) => "store_failed",
            Self::Graph(_) => "graph_failed",
        }
    }
}

impl From<StoreError> for AgentError {
    fn from(error: StoreError) -> Self {
        Self::Memory(error.into())
    }
}
