use serde::{Deserialize, Serialize};
use threadkeep::agent::{Approval, ApprovalState};
use threadkeep::{JsonText, ThreadId, Timestamp};
use utoipa::ToSchema;

/// A request for permission to make one exact call, with its state.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalJson {
    id: String,
    #[schema(value_type = String, format = Uuid)]
    thread: ThreadId,
    /// The turn that requested the approval.
    turn: String,
    /// The tool to call, or the graph node that requested the approval.
    tool: String,
    /// The exact arguments of the call. If the decision changed the arguments, these are the changed ones.
    #[schema(value_type = Object)]
    arguments: JsonText,
    /// A description of the call for people.
    preview: String,
    state: StateJson,
    #[schema(value_type = String, format = DateTime)]
    requested_at: Timestamp,
    /// When the approval expires if no decision is made.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// Who made the decision.
    by: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    decided_at: Option<Timestamp>,
    /// The reason for the decision.
    reason: Option<String>,
}

/// The state of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateJson {
    /// Waiting for a decision.
    Pending,
    /// Approved; the call is in progress.
    Claimed,
    /// Approved; the call succeeded.
    Done,
    /// Approved; the call failed.
    Failed,
    /// Approved, but it is unknown whether the call was made. It will not be repeated.
    OutcomeUnknown,
    Denied,
    /// No decision was made in time.
    Expired,
    /// Closed, because a later request replaced the approval or the turn has ended.
    Replaced,
}

impl ApprovalJson {
    /// Converts an approval. If no decision was made in time, the approval is reported as expired, even if its stored
    /// state is still pending.
    pub fn of(thread: ThreadId, approval: Approval, now: Timestamp) -> Self {
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
            ApprovalState::Void => Self::Replaced,
            // This API does not know the state, so it reports the most cautious one: no decision can be made any more.
            _ => Self::OutcomeUnknown,
        }
    }
}
