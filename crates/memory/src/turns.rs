//! Turns: how a turn locks its thread, and is found, waited for, stopped and ended, whatever drives it.
//!
//! An unfinished turn has a [`RunRecord`] in its thread. While it runs, that record is the thread's lock ([`lock`]). There are two
//! kinds of drivers: a run of an assistant, which writes a journal and is resumed after an interruption (the crate
//! `threadkeep-agent`), and a single call of a model, which is stored as a whole at its end or not at all ([`Completion`]).
//! [`TurnWaiter`] waits for either; [`request_stop`] writes a record that makes the driver stop.
//!
//! Queries about turns ([`find_turn_state`], [`list_approvals`], …) need no assistant, because all their data is in the thread.
//! This module deliberately does not know graphs: of a run's journal, it reads only the models' answers.

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
pub use drafts::{TEXT_BYTES, bound_text, encoded_bytes, metadata, note_draft, result_draft, without_nul};
pub use drivers::{Driver, LEASE, LEASE_RENEWAL_INTERVAL, is_alive, is_driving, lease_until};
pub use queries::{
    InterruptedTurn, RunningTurn, approval_id, find_approval, find_running_turn, list_approvals,
    list_interrupted_turns, remove_interrupted_completion, stop_waiting_turn,
};
pub use record::{RunRecord, TurnKind, TurnRecord, turn_of_key};
pub use stop_requests::{request_stop, wait_for_stop_request};
pub use thread_access::{Runs, ThreadAccess, Versioned};
pub use turn::{ApprovalTrace, ContextNumbers, StoredMessage, ToolCallTrace, Turn, TurnStatus, TurnUsage};
pub use turn_state::{TurnState, find_turn_state, messages_of, stopped_completion};
pub use waiter::TurnWaiter;
