use crate::event::OutcomeKind;
use crate::{Failure, RequestId};

/// The result of operations on graphs and runs.
pub type Result<T, E = GraphError> = std::result::Result<T, E>;

/// An error of a graph or a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The graph's declaration is invalid. Change the code that declares it.
    #[error("graph {graph}: {reason}")]
    Invalid {
        /// The graph's name.
        graph: String,
        /// The problem.
        reason: String,
    },
    /// The journal belongs to another graph. Replay it with that graph.
    #[error("the journal belongs to graph {journal_graph}, not {graph}")]
    GraphMismatch {
        /// The graph that should replay the journal.
        graph: String,
        /// The graph that wrote the journal.
        journal_graph: String,
    },
    /// The journal was written by another version of the graph. Start the run again.
    #[error("the journal was written by version {journal_version} of graph {graph}, but this is version {version}")]
    UnknownVersion {
        /// The graph's name.
        graph: String,
        /// The version that wrote the journal.
        journal_version: u32,
        /// The graph's current version.
        version: u32,
    },
    /// The request is not outstanding: it was answered already, or never made. In a replay, this means that the graph was changed
    /// without a new version.
    #[error("request {request} is not outstanding")]
    NotOutstanding {
        /// The request that the event names.
        request: RequestId,
    },
    /// The kind of the outcome does not match the request. In a replay, this means that the graph was changed without a new version.
    #[error("the outcome of request {request} must be {expected}, not {actual}")]
    UnexpectedOutcome {
        /// The request id.
        request: RequestId,
        /// The expected kind.
        expected: OutcomeKind,
        /// The kind of the outcome.
        actual: OutcomeKind,
    },
    /// A node could not encode the input of its request as JSON.
    #[error("node {node} cannot encode its request: {}", failure.message)]
    RequestEncoding {
        /// The node's name.
        node: String,
        /// The cause.
        failure: Failure,
    },
}
