//! Events of a running turn.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use threadkeep_core::{JsonText, ThreadId};

use crate::{ApprovalTrace, ToolCallTrace, Turn, TurnStatus};

/// An event of a running turn. As JSON: `{"event": "token", "data": …}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", content = "data")]
#[non_exhaustive]
pub enum TurnEvent {
    /// The turn has started: the user's message, or a decision that resumes the turn, survives a crash.
    #[serde(rename = "turn.started")]
    Started {
        /// The thread.
        thread: ThreadId,
        /// The id of the turn.
        turn: String,
        /// The name of the assistant.
        agent: String,
    },
    /// A chunk of the reply.
    #[serde(rename = "token")]
    Token {
        /// The text of the chunk.
        text: String,
    },
    /// The model starts its reply again: discard the chunks received so far.
    #[serde(rename = "token.restarted")]
    Restarted,
    /// A tool call was started.
    #[serde(rename = "tool.started")]
    ToolStarted {
        /// The id that the model assigned to the call.
        id: String,
        /// The name of the tool.
        name: String,
        /// The arguments, with aliases replaced by the names of the arguments.
        arguments: JsonText,
    },
    /// A tool call finished.
    #[serde(rename = "tool.finished")]
    ToolFinished(ToolCallTrace),
    /// An approval was requested.
    #[serde(rename = "approval.requested")]
    ApprovalRequested(ApprovalTrace),
    /// The turn completed, or is waiting for approval.
    #[serde(rename = "turn.completed")]
    Completed(Box<Turn>),
    /// The turn failed.
    #[serde(rename = "turn.failed")]
    Failed(Box<Turn>),
}

impl TurnEvent {
    /// Returns the event's name in JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Started { .. } => "turn.started",
            Self::Token { .. } => "token",
            Self::Restarted => "token.restarted",
            Self::ToolStarted { .. } => "tool.started",
            Self::ToolFinished(_) => "tool.finished",
            Self::ApprovalRequested(_) => "approval.requested",
            Self::Completed(_) => "turn.completed",
            Self::Failed(_) => "turn.failed",
        }
    }
}

impl TurnEvent {
    /// Creates the last event of a turn that has ended or is waiting for approval.
    pub(crate) fn of_ended_turn(turn: &Turn) -> Self {
        match turn.status {
            TurnStatus::Failed => Self::Failed(Box::new(turn.clone())),
            TurnStatus::Completed | TurnStatus::WaitingForApproval => Self::Completed(Box::new(turn.clone())),
        }
    }
}

/// Receives the events of a turn as they happen. It is called from within the turn and must not block.
pub type EventSink<'a> = &'a mut (dyn FnMut(TurnEvent) + Send);

/// An event sink that concurrent effects share.
pub(crate) struct Events<'a>(Mutex<EventSink<'a>>);

impl<'a> Events<'a> {
    pub(crate) fn new(sink: EventSink<'a>) -> Self {
        Self(Mutex::new(sink))
    }

    pub(crate) fn send(&self, event: TurnEvent) {
        let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sink(event);
    }
}
