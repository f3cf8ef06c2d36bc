//! Turns: how one begins in a thread, holds it, is found, stopped and ended, whatever drives it.
//!
//! A turn that is on its way has a [`RunRecord`] in its thread, which is the thread's lock ([`lock`]). Two kinds of drivers
//! take it: an assistant's run, which keeps a journal and is resumed when it was cut (the crate `threadkeep-agent`), and a
//! single call of a model, which is stored whole at its end or not at all ([`Completion`]). Whoever has to wait for either
//! does so by wake-ups ([`Waiting`]); whoever wants one to stop leaves a record that its driver hears of ([`ask_to_stop`]).
//!
//! Questions about turns ([`find_turn_state`], [`list_approvals`], …) need no assistant: what they read lies in the thread.
//! This module deliberately knows no graph; what a run's journal says of its models is all that it reads there.

mod approval;
mod closing;
mod completion;
mod drivers;
mod journal;
pub mod lock;
mod look;
mod notes;
mod place;
mod questions;
pub mod record;
mod stopping;
mod turn;
mod waiting;

pub use approval::{Approval, ApprovalState, Verdict};
pub use closing::{close, interrupt};
pub use completion::{Completion, Interrupted, LockResult};
pub use drivers::{Driver, LEASE, SIGN_OF_LIFE, is_alive, is_driving, lease_until};
pub use look::{TurnState, find_turn_state, messages_of, stopped_completion};
pub use notes::{TEXT_BYTES, bound_text, encoded_bytes, metadata, note_draft, result_draft, without_nul};
pub use place::{Place, Runs, Versioned};
pub use questions::{
    InterruptedTurn, RunningTurn, approval_id, find_approval, find_running_turn, list_approvals,
    list_interrupted_turns, remove_cut_completion, stop_waiting_turn,
};
pub use record::{RunRecord, TurnKind, TurnRecord, turn_of_key};
pub use stopping::{ask_to_stop, stop_asked};
pub use turn::{ApprovalTrace, ContextNumbers, StoredMessage, ToolCallTrace, Turn, TurnStatus, TurnUsage};
pub use waiting::Waiting;
