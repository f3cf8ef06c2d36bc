use serde::{Deserialize, Serialize};
use threadkeep::agent::{Approval, ApprovalState};
use threadkeep::{JsonText, ThreadId, Timestamp};
use utoipa::ToSchema;

/// A request for leave to make one exact call, and what became of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovalJson {
    id: String,
    #[schema(value_type = String, format = Uuid)]
    thread: ThreadId,
    /// The turn that asks.
    turn: String,
    /// The tool, or the node that asks.
    tool: String,
    /// The exact arguments: those that were approved, where they were changed.
    #[schema(value_type = Object)]
    arguments: JsonText,
    /// What it will do, in words.
    preview: String,
    state: StateJson,
    #[schema(value_type = String, format = DateTime)]
    requested_at: Timestamp,
    /// From when on it is void.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// Who decided.
    by: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    decided_at: Option<Timestamp>,
    /// Why.
    reason: Option<String>,
}

/// Where an approval stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StateJson {
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
    Denied,
    /// Nobody decided in time.
    Expired,
    /// A later request took its place, or its turn is over.
    Replaced,
}

impl ApprovalJson {
    /// The approval as it stands now: one that nobody decided in time is told as expired, whether that is written or not.
    pub(crate) fn of(thread: ThreadId, approval: Approval, now: Timestamp) -> Self {
        let state = if approval.state == ApprovalState::Pending && !approval.is_open(now) {
            StateJson::Expired
        } else {
            approval.state.into()
        };
        let Approval { id, turn, tool, arguments, preview, requested_at, expires_at, by, decided_at, reason, .. } =
            approval;
        let arguments = approval.changed.unwrap_or(arguments);
        Self { id, thread, turn, tool, arguments, preview, state, requested_at, expires_at, by, decided_at, reason }
    }
}

impl From<ApprovalState> for StateJson {
    fn from(state: ApprovalState) -> Self {
        match state {
            ApprovalState::Pending => Self::Pending,
            ApprovalState::Claimed => Self::Claimed,
            ApprovalState::Done => Self::Done,
            ApprovalState::Failed => Self::Failed,
            ApprovalState::Denied => Self::Denied,
            ApprovalState::Expired => Self::Expired,
            ApprovalState::Replaced => Self::Replaced,
            // Of a state that this door has no word for nobody should think that it can be decided.
            _ => Self::OutcomeUnknown,
        }
    }
}
