//! What is told while a turn is on its way.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use threadkeep_core::{JsonText, ThreadId};

use crate::{ApprovalTrace, ToolCallTrace, Turn, TurnStatus};

/// Something that happens in a turn. As JSON: `{"event": "token", "data": …}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", content = "data")]
#[non_exhaustive]
pub enum TurnEvent {
    /// The user's message is stored, or a decision with which the turn goes on.
    #[serde(rename = "turn.started")]
    Started {
        /// The thread.
        thread: ThreadId,
        /// The turn.
        turn: String,
        /// The assistant.
        agent: String,
    },
    /// A piece of the reply.
    #[serde(rename = "token")]
    Token {
        /// Its words.
        text: String,
    },
    /// The pieces so far are void: the model begins anew.
    #[serde(rename = "token.restarted")]
    Restarted,
    /// A tool is called.
    #[serde(rename = "tool.started")]
    ToolStarted {
        /// The model's id of the call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments, by their own names.
        arguments: JsonText,
    },
    /// A tool is done.
    #[serde(rename = "tool.finished")]
    ToolFinished(ToolCallTrace),
    /// A person has to decide.
    #[serde(rename = "approval.requested")]
    ApprovalRequested(ApprovalTrace),
    /// The turn was answered, or waits for an approval.
    #[serde(rename = "turn.completed")]
    Completed(Box<Turn>),
    /// The turn failed.
    #[serde(rename = "turn.failed")]
    Failed(Box<Turn>),
}

impl TurnEvent {
    /// The event's name, as it stands in JSON.
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
    /// The last event of a turn.
    pub(crate) fn ended(turn: &Turn) -> Self {
        match turn.status {
            TurnStatus::Failed => Self::Failed(Box::new(turn.clone())),
            TurnStatus::Completed | TurnStatus::WaitingForApproval => Self::Completed(Box::new(turn.clone())),
        }
    }
}

/// Takes the events of a turn, as they happen. It is called from within the turn and must not block.
pub type EventSink<'a> = &'a mut (dyn FnMut(TurnEvent) + Send);

/// A sink that effects at work share.
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
