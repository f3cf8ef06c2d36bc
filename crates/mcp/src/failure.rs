//! Errors of tools and of serving.

use threadkeep::{MemoryError, StoreError};

/// The reason why a tool failed. The text is for the model that called the tool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolFailure {
    /// The tool does not exist, or was not selected.
    #[error("unknown tool `{0}`; tools/list lists the tools")]
    UnknownTool(String),
    /// An argument is missing or invalid.
    #[error("invalid argument {argument}: {reason}")]
    Argument {
        /// The name of the argument.
        argument: String,
        /// What is wrong, and what is expected.
        reason: String,
    },
    /// The thread, message or memory does not exist in this scope.
    #[error("{what} not found; {hint}")]
    NotFound {
        /// What was not found, such as `thread`.
        what: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// The memory failed.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl ToolFailure {
    pub(crate) fn argument(argument: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Argument { argument: argument.into(), reason: reason.into() }
    }
}

impl From<StoreError> for ToolFailure {
    fn from(error: StoreError) -> Self {
        Self::Memory(error.into())
    }
}

/// The reason why serving failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The client did not follow the protocol when it connected.
    #[error("the client did not start an MCP session: {0}")]
    Handshake(String),
    /// The task that serves the client failed.
    #[error("the MCP session failed: {0}")]
    Session(String),
}
