use serde::{Deserialize, Serialize};

use crate::{Event, GraphError, Result};

/// The checkpoint of a run: its events, in order. The state of the run is not stored, but rebuilt from the events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    /// The graph's name.
    pub graph: String,
    /// The graph's version.
    pub version: u32,
    /// The events, in order.
    pub events: Vec<Event>,
}

impl Journal {
    /// Creates an empty journal.
    #[must_use]
    pub fn new(graph: impl Into<String>, version: u32) -> Self {
        Self { graph: graph.into(), version, events: Vec::new() }
    }

    pub(crate) fn check(&self, graph: &str, version: u32) -> Result<()> {
        if self.graph != graph {
            return Err(GraphError::GraphMismatch { graph: graph.to_owned(), journal_graph: self.graph.clone() });
        }
        if self.version != version {
            let graph = graph.to_owned();
            return Err(GraphError::UnknownVersion { graph, journal_version: self.version, version });
        }
        Ok(())
    }
}
