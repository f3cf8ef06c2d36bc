//! Approvals: a person's permission for one exact call, used once.

use std::fmt;

use serde::{Deserialize, Serialize};
use threadkeep_core::{JsonText, Map, PutRecord, Timestamp};

use super::ApprovalTrace;
use super::record::{self, TURN_RETENTION_MS};
use crate::Result;

/// A request for approval and its state. Stored as an internal record of its thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// Its id.
    pub id: String,
    /// The turn that requested it.
    pub turn: String,
    /// The number of the request in the turn's run.
    pub request: u32,
    /// The model's id of the call; for a node's question, the node's name.
    pub call_id: String,
    /// The tool; for a node's question, the node.
    pub tool: String,
    /// Whether it is a node's question, and not a call of a tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_question: bool,
    /// The exact arguments.
    pub arguments: JsonText,
    /// A description of the call for the person who decides.
    pub preview: String,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// Its state.
    pub state: ApprovalState,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    /// The reason for the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The approved arguments, if they differ from the requested ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<JsonText>,
}

impl Approval {
    /// The approval as part of a [`super::Turn`].
    #[must_use]
    pub fn trace(&self) -> ApprovalTrace {
        ApprovalTrace {
            id: self.id.clone(),
            tool: self.tool.clone(),
            arguments: self.changed.clone().unwrap_or_else(|| self.arguments.clone()),
            preview: self.preview.clone(),
            expires_at: self.expires_at,
            state: self.state,
        }
    }

    /// The record that stores it. A finished approval is retained for 30 days, so that decisions can be audited.
    ///
    /// # Errors
    /// Those of the codec; none is known.
    pub fn record(&self, now: Timestamp) -> Result<PutRecord> {
        let is_over = !matches!(self.state, ApprovalState::Pending | ApprovalState::Claimed);
        let expires_at = is_over.then(|| now.plus_ms(TURN_RETENTION_MS));
        Ok(PutRecord { name: record::approval(&self.id), value: JsonText::of(self)?, expires_at })
    }

    /// Whether it can still be decided.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.state == ApprovalState::Pending && now < self.expires_at
    }
}

/// The state of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalState {
    /// It was not decided yet.
    Pending,
    /// It was approved, and the call is being made.
    Claimed,
    /// The call was made and succeeded.
    Done,
    /// The call was made and failed.
    Failed,
    /// The call may have been made. It will not be made again.
    OutcomeUnknown,
    /// It was denied.
    Denied,
    /// It was not decided in time.
    Expired,
    /// A later request replaced it, or its turn has ended.
    Replaced,
}

impl ApprovalState {
    /// The reason why a call was not made, as text for the model.
    #[must_use]
    pub fn not_made(self, reason: Option<&str>) -> String {
        let why = match self {
            Self::Denied => "the approval was denied",
            Self::Expired => "the approval expired",
            Self::Replaced => "a later request replaced it",
            _ => "the approval was already used",
        };
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("not done: {why}{reason}")
    }
}

impl fmt::Display for ApprovalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Claimed => "claimed",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::OutcomeUnknown => "outcome unknown",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Replaced => "replaced",
        })
    }
}

/// A person's decision about an approval.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The call may be made with the requested arguments.
    Approve,
    /// The call may be made with these arguments.
    ApproveChanged(Map),
    /// The call must not be made.
    Deny {
        /// The reason, as text for the model.
        reason: Option<String>,
    },
}
