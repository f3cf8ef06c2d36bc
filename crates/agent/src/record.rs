//! The events in a run's journal. The record types of turns are defined in [`threadkeep_memory::turns::record`].

use serde::{Deserialize, Serialize};
use threadkeep_core::{JsonText, ToolCall};
use threadkeep_graph::{Event, Outcome, RequestId, ToolOutcome};
pub(crate) use threadkeep_memory::turns::record::{
    RunRecord, TURN_RETENTION_MS, TurnRecord, active_name, approval_name, entry_name, is_approval_conflict,
    is_run_conflict, is_turn_conflict, message_id, turn_record_name, waiting_name,
};

use crate::ToolCallTrace;

/// An event of a run, as its journal stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedEvent {
    pub(crate) event: Event,
    pub(crate) duration_ms: u64,
    /// If the event is a tool's result, the call as it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<ToolCall>,
    /// The full result, if the model read only part of it.
    #[serde(rename = "whole", default, skip_serializing_if = "Option::is_none")]
    pub(crate) full_result: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cached: bool,
    /// Whether it is unknown if the call took effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_unknown: bool,
    #[serde(default)]
    pub(crate) embedding_calls: u64,
}

impl RecordedEvent {
    pub(crate) fn new(request: RequestId, outcome: Outcome, duration_ms: u64) -> Self {
        Self::of(Event::Finished { request, outcome }, duration_ms)
    }

    pub(crate) fn of(event: Event, duration_ms: u64) -> Self {
        Self { event, duration_ms, call: None, full_result: None, cached: false, is_unknown: false, embedding_calls: 0 }
    }

    pub(crate) fn request(&self) -> Option<RequestId> {
        match &self.event {
            Event::Finished { request, .. } => Some(*request),
            Event::Stopped { .. } => None,
        }
    }

    pub(crate) fn tool_outcome(&self) -> Option<&ToolOutcome> {
        match &self.event {
            Event::Finished { outcome: Outcome::Tool(outcome), .. } => Some(outcome),
            _ => None,
        }
    }

    /// Returns the tool call as turns report it.
    pub(crate) fn tool_trace(&self) -> Option<ToolCallTrace> {
        let (call, outcome) = (self.call.as_ref()?, self.tool_outcome()?);
        let text = || JsonText::from(&threadkeep_core::Value::String(outcome.output.clone()));
        Some(ToolCallTrace {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            ok: !outcome.is_error,
            result: (!outcome.is_error).then(|| outcome.value.clone().unwrap_or_else(text)),
            error: outcome.is_error.then(|| outcome.output.clone()),
            duration_ms: self.duration_ms,
            cached: self.cached,
        })
    }
}
