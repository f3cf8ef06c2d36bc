//! Approvals. An approval is a person's permission to make one exact tool call once.

use std::fmt;

use serde::{Deserialize, Serialize};
use threadkeep_core::{JsonText, Map, PutRecord, Timestamp};

use super::ApprovalTrace;
use super::record::{self, TURN_RETENTION_MS};
use crate::Result;

/// A request for approval and its state. Stored as an internal record of its thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The id.
    pub id: String,
    /// The turn that requested the approval.
    pub turn: String,
    /// The number of the request in the turn's run.
    pub request: u32,
    /// The id that the model assigned to the tool call; for a question asked by a node of the graph, the name of the node.
    pub call_id: String,
    /// The tool; for a node's question, the node.
    pub tool: String,
    /// Whether this is a question asked by a node, instead of a tool call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_question: bool,
    /// The exact arguments.
    pub arguments: JsonText,
    /// A description of the call for the person who decides.
    pub preview: String,
    /// When the approval was requested.
    pub requested_at: Timestamp,
    /// When the approval expires.
    pub expires_at: Timestamp,
    /// The state.
    pub state: ApprovalState,
    /// Who decided; `None` without a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When the decision was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    /// The reason for the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The approved arguments, if they differ from the requested arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<JsonText>,
}

impl Approval {
    /// Returns the part of the approval that a [`super::Turn`] contains.
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

    /// Creates the record of the approval. A finished approval is retained for 30 days, so that decisions can be audited.
    ///
    /// # Errors
    /// An encoding error, which is not expected.
    pub fn record(&self, now: Timestamp) -> Result<PutRecord> {
        let is_over = !matches!(self.state, ApprovalState::Pending | ApprovalState::Claimed);
        let expires_at = is_over.then(|| now.plus_ms(TURN_RETENTION_MS));
        Ok(PutRecord { name: record::approval_name(&self.id), value: JsonText::of(self)?, expires_at })
    }

    /// Whether the approval can still be decided.
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
    /// Not decided yet.
    Pending,
    /// Approved, and the call is being made.
    Claimed,
    /// The call was made and succeeded.
    Done,
    /// The call was made and failed.
    Failed,
    /// The call may have been made. It will not be made again.
    OutcomeUnknown,
    /// Denied.
    Denied,
    /// Not decided in time.
    Expired,
    /// A later request replaced the approval, or the turn ended before a decision.
    #[serde(rename = "replaced")]
    Void,
}

impl ApprovalState {
    /// The text for the model that explains why a call was not made.
    #[must_use]
    pub fn refusal_text(self, reason: Option<&str>) -> String {
        let explanation = match self {
            Self::Denied => "the approval was denied",
            Self::Expired => "the approval expired",
            Self::Void => "a later request replaced it",
            _ => "the approval was already used",
        };
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("not done: {explanation}{reason}")
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
            Self::Void => "replaced",
        })
    }
}

/// A person's decision about an approval.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The call may be made with the requested arguments.
    Approve,
    /// The call may be made with these arguments.
    ApproveWithChanges(Map),
    /// The call must not be made.
    Deny {
        /// The reason, as text for the model.
        reason: Option<String>,
    },
}
