use crate::event::OutcomeKind;
use crate::{Failure, RequestId};

/// The result of a call on a graph or a run.
pub type Result<T, E = GraphError> = std::result::Result<T, E>;

/// Why a graph or a run did not do what it was asked, named for what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The graph is not drawn to its end. Change the code that draws it.
    #[error("graph {graph}: {reason}")]
    Invalid {
        /// Which graph.
        graph: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The journal is of another graph. Take the graph that it names.
    #[error("the journal is of graph {journal}, not {graph}")]
    OtherGraph {
        /// The graph that was to replay it.
        graph: String,
        /// The graph that wrote it.
        journal: String,
    },
    /// The journal is of a version of the graph that this program does not have. Begin the run afresh.
    #[error("the journal is of version {journal} of graph {graph}, and this is version {known}")]
    UnknownVersion {
        /// The graph.
        graph: String,
        /// The version that wrote the journal.
        journal: u32,
        /// The version that is here.
        known: u32,
    },
    /// Nobody waits for this: it was answered, or never asked. A journal with such an event is of a graph that was
    /// changed without a new version.
    #[error("nothing waits for request {request}")]
    NotOutstanding {
        /// The request that the event names.
        request: RequestId,
    },
    /// The event answers something else than was asked. A journal with such an event is of a graph that was changed
    /// without a new version.
    #[error("request {request} asks for {asked}, not for {given}")]
    WrongOutcome {
        /// The request.
        request: RequestId,
        /// What it asks for.
        asked: OutcomeKind,
        /// What came.
        given: OutcomeKind,
    },
    /// A node could not write down what it asks for.
    #[error("node {node} cannot ask: {}", failure.message)]
    CannotAsk {
        /// The node.
        node: String,
        /// Why.
        failure: Failure,
    },
}
