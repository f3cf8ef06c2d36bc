use threadkeep_core::StoreError;
use threadkeep_graph::GraphError;
use threadkeep_memory::MemoryError;

use crate::ApprovalState;

/// The result of a call on an [`crate::Agent`].
pub type Result<T, E = AgentError> = std::result::Result<T, E>;

/// An error of a call that returned no turn. A turn that was started and failed is not an error: it is returned as a [`crate::Turn`]
/// with status `failed`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// Another turn is running in this thread. Retry later.
    #[error("another turn is running in this thread")]
    Busy,
    /// Another driver took over the turn, because this driver's lease expired. The other driver returns the outcome.
    #[error("turn {turn} was taken over by another driver")]
    Superseded {
        /// The id of the turn.
        turn: String,
    },
    /// The thread has no approval with this id.
    #[error("approval {id} not found")]
    ApprovalNotFound {
        /// The requested id.
        id: String,
    },
    /// The approval was decided, has expired or was replaced. An approval can be decided only once.
    #[error("approval {id} is already {state}")]
    ApprovalClosed {
        /// The id of the approval.
        id: String,
        /// The approval's state.
        state: ApprovalState,
    },
    /// This person is not among the [`crate::ApprovalPolicy::deciders`] of the assistant.
    #[error("{by} is not allowed to decide on this approval")]
    NotAllowed {
        /// The person.
        by: String,
    },
    /// The memory or its store refused the call or failed.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The assistant's graph is invalid.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl AgentError {
    /// Whether the same call may succeed later, unchanged.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Busy => true,
            Self::Memory(error) => error.is_retryable(),
            _ => false,
        }
    }

    /// Whether the store rejected the data itself, so a retry cannot succeed.
    pub(crate) fn is_not_storable(&self) -> bool {
        use StoreError::{Invalid, LimitExceeded};
        matches!(self, Self::Memory(MemoryError::Store(Invalid { .. } | LimitExceeded { .. })))
    }

    /// Returns the error code, which is stable.
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
