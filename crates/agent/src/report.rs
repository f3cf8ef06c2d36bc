//! What a turn did, in a few general terms.

use threadkeep_core::{Map, Value};

use crate::{Turn, TurnStatus};

/// What a turn did: the part of a [`RunResult`](crate::RunResult) that depends on the assistant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnReport {
    /// What was found, best first.
    pub results: Vec<Value>,
    /// The ids of the sources that the answer is based on.
    pub sources_used: Vec<Value>,
    /// Facts about the conversation.
    pub metadata: Map,
    /// How many times the turn searched or called a tool.
    pub iterations: u64,
    /// Why it ended.
    pub exit_reason: String,
    /// The reasons for its decisions; may be empty.
    pub reasoning: String,
    /// Costs in US dollars besides those of models, such as those of an embedder.
    pub other_cost_usd: f64,
}

impl TurnReport {
    /// Returns the report of any turn, from its sources, tool calls and status.
    #[must_use]
    pub fn of(turn: &Turn) -> Self {
        let status = match turn.status {
            TurnStatus::Completed => "completed",
            TurnStatus::WaitingForApproval => "waiting_for_approval",
            TurnStatus::Failed => "failed",
        };
        Self {
            results: turn.sources.iter().filter_map(|source| serde_json::to_value(source).ok()).collect(),
            sources_used: turn.sources.iter().map(|source| Value::from(source.id.as_str())).collect(),
            iterations: turn.tool_calls.len() as u64,
            exit_reason: turn.error.as_ref().map_or(status, |error| &error.code).to_owned(),
            ..Self::default()
        }
    }
}
