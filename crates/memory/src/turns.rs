//! Turns: how one begins in a thread, holds it, is found, stopped and ended, whatever drives it.
//!
//! A turn that is on its way has a [`RunRecord`] in its thread, which is the thread's lock ([`lock`]). Two kinds of drivers
//! take it: an assistant's run, which keeps a journal and is resumed when it was cut (the crate `threadkeep-agent`), and a
//! single call of a model, which is stored whole at its end or not at all ([`Completion`]). Whoever has to wait for either
//! does so by wake-ups ([`TurnWaiter`]); whoever wants one to stop leaves a record that its driver hears of ([`request_stop`]).
//!
//! Questions about turns ([`find_turn_state`], [`list_approvals`], …) need no assistant: what they read lies in the thread.
//! This module deliberately knows no graph; what a run's journal says of its models is all that it reads there.

mod approval;
mod closing;
mod completion;
mod drivers;
mod journal;
pub mod lock;
mod turn_state;
mod drafts;
mod thread_access;
mod queries;
pub mod record;
mod stop_requests;
mod turn;
mod waiter;

pub use approval::{Approval, ApprovalState, Verdict};
pub use closing::{close, interrupt};
pub use completion::{Completion, Interrupted, LockResult};
pub use drivers::{Driver, LEASE, LEASE_RENEWAL_INTERVAL, is_alive, is_driving, lease_until};
pub use turn_state::{TurnState, find_turn_state, messages_of, stopped_completion};
pub use drafts::{TEXT_BYTES, bound_text, encoded_bytes, metadata, note_draft, result_draft, without_nul};
pub use thread_access::{ThreadAccess, Runs, Versioned};
pub use queries::{
    InterruptedTurn, RunningTurn, approval_id, find_approval, find_running_turn, list_approvals,
    list_interrupted_turns, remove_interrupted_completion, stop_waiting_turn,
};
pub use record::{RunRecord, TurnKind, TurnRecord, turn_of_key};
pub use stop_requests::{request_stop, wait_for_stop_request};
pub use turn::{ApprovalTrace, ContextNumbers, StoredMessage, ToolCallTrace, Turn, TurnStatus, TurnUsage};
pub use waiter::TurnWaiter;
