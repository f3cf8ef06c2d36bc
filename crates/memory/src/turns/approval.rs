//! Approvals: a person's leave for one exact call, used once.

use std::fmt;

use serde::{Deserialize, Serialize};
use threadkeep_core::{JsonText, Map, PutRecord, Timestamp};

use super::ApprovalTrace;
use super::record::{self, KEPT_MS};
use crate::Result;

/// A request for leave, and what became of it. Kept as a record of its thread that no door reaches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// Its id.
    pub id: String,
    /// The turn that asks.
    pub turn: String,
    /// The request of the turn's run.
    pub request: u32,
    /// The model's id of the call; the node's name where a node asks.
    pub call_id: String,
    /// The tool, or the node that asks.
    pub tool: String,
    /// Whether a node asks a question, and no tool is to be called.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_question: bool,
    /// The exact arguments.
    pub arguments: JsonText,
    /// What it will do, in words.
    pub preview: String,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// From when on it is void.
    pub expires_at: Timestamp,
    /// Where it stands.
    pub state: ApprovalState,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The arguments that were approved in place of the requested ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<JsonText>,
}

impl Approval {
    /// As a turn shows it.
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

    /// The record that keeps it. One that is over is kept for 30 days, for whoever asks who allowed what.
    ///
    /// # Errors
    /// Those of the codec; none is known.
    pub fn record(&self, now: Timestamp) -> Result<PutRecord> {
        let is_over = !matches!(self.state, ApprovalState::Pending | ApprovalState::Claimed);
        let expires_at = is_over.then(|| now.plus_ms(KEPT_MS));
        Ok(PutRecord { name: record::approval(&self.id), value: JsonText::of(self)?, expires_at })
    }

    /// Whether it still can be decided.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.state == ApprovalState::Pending && now < self.expires_at
    }
}

/// Where an approval stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalState {
    /// Nobody has decided.
    Pending,
    /// It was given, and the call is being made.
    Claimed,
    /// The call was made and gave a result.
    Done,
    /// The call was made and failed.
    Failed,
    /// It is not known whether the call was made. It will not be made again.
    OutcomeUnknown,
    /// It was denied.
    Denied,
    /// Nobody decided in time.
    Expired,
    /// A later request took its place, or its turn is over.
    Replaced,
}

impl ApprovalState {
    /// Why a call was not made, in words for the model.
    #[must_use]
    pub fn not_made(self, reason: Option<&str>) -> String {
        let why = match self {
            Self::Denied => "the approval was denied",
            Self::Expired => "the approval expired",
            Self::Replaced => "a later request took its place",
            _ => "the approval was used before",
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
            Self::OutcomeUnknown => "of unknown outcome",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Replaced => "replaced",
        })
    }
}

/// What a person decides about an approval.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The call may be made as it is.
    Approve,
    /// The call may be made with these arguments instead.
    ApproveChanged(Map),
    /// It must not be made.
    Deny {
        /// Why, in words for the model.
        reason: Option<String>,
    },
}
