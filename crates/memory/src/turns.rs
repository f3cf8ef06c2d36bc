//! Turns: how a turn locks its thread, and how turns are found, awaited, stopped and ended, regardless of what executes them.
//!
//! An unfinished turn has a [`RunRecord`] in its thread. While the turn runs, that record is the thread's lock ([`lock`]). The
//! process that executes a turn is its driver. There are two kinds of turns ([`TurnKind`]): a *run* of an assistant's graph
//! writes a journal and is resumed after an interruption (crate `threadkeep-agent`); a *completion* is a single model call, which
//! is stored as a whole at the end or not at all ([`Completion`]). [`TurnWaiter`] waits for either kind to end. [`request_stop`]
//! writes a record that makes the driver stop.
//!
//! Queries about turns ([`find_turn_state`], [`list_approvals`], …) need no assistant, because all their data is in the thread.
//! This module deliberately does not depend on graphs: in the journal of a run, it reads only the models' answers.

mod approval;
mod closing;
mod completion;
mod drafts;
mod drivers;
mod journal;
pub mod lock;
mod queries;
pub mod record;
mod stop_requests;
mod thread_access;
mod turn;
mod turn_state;
mod waiter;

pub use approval::{Approval, ApprovalState, Verdict};
pub use closing::{close, interrupt};
pub use completion::{Completion, Interrupted, LockResult};
pub(crate) use drafts::is_answer;
pub use drafts::{
    TEXT_BYTES, approval_notice_draft, encoded_bytes, error_result_draft, limit_text, metadata, notice_draft,
    without_nul,
};
pub use drivers::{Driver, LEASE, LEASE_RENEWAL_INTERVAL, is_alive, is_driving, lease_until};
pub use queries::{
    InterruptedTurn, RunningTurn, approval_id, ended_turn_id, find_approval, find_ended_turn, find_running_turn,
    list_approvals, list_interrupted_turns, remove_interrupted_completion, stop_waiting_turn,
};
pub use record::{PendingQuestion, RunRecord, TurnKind, TurnRecord, turn_id_for_key};
pub use stop_requests::{request_stop, wait_for_stop_request};
pub use thread_access::{Runs, ThreadAccess, Versioned};
pub use turn::{ApprovalTrace, ContextSize, StoredMessage, ToolCallTrace, Turn, TurnStatus, TurnUsage};
pub use turn_state::{TurnState, find_turn_state, read_turn_messages, stopped_completion};
pub use waiter::TurnWaiter;
