//! A store that keeps its promises as badly as it may.
//!
//! What a wrapper leaves to a default body it would not weaken, so leaving one out is an error here.
#![deny(clippy::missing_trait_methods)]

mod dice;
mod maintenance;
mod search;
mod snapshot;
mod store;

use std::fmt;
use std::sync::{Arc, Mutex};

use threadkeep_core::{Backend, Reason, Result, StoreError};

use self::dice::Dice;

/// A store over another that makes use of every weakness that the contract allows.
///
/// Driven by a seed, it loses replies to commits (after the commit, and before it was carried out), refuses calls for the
/// moment, hides the newest messages from searches and says so, and drops and doubles wake-ups. What it does not do is
/// break a promise: every case that a store passes it passes over `FaultyStore`, too, if the caller repeats what may be repeated.
pub struct FaultyStore {
    inner: Backend,
    dice: Arc<Mutex<Dice>>,
}

impl FaultyStore {
    /// Puts a weak store over another.
    #[must_use]
    pub fn over(inner: Backend, seed: u64) -> Backend {
        let weak = Arc::new(Self { inner, dice: Arc::new(Mutex::new(Dice::new(seed))) });
        Backend { store: weak.clone(), maintenance: weak.clone(), search: weak }
    }

    /// A number below `sides`.
    fn roll(&self, sides: u64) -> u64 {
        self.dice.lock().expect("nothing panics while it holds the dice").roll(sides)
    }

    /// Refuses every sixth call, before anything is done.
    fn may_refuse(&self) -> Result<()> {
        may_refuse(&self.dice)
    }
}

/// Refuses every sixth call.
fn may_refuse(dice: &Mutex<Dice>) -> Result<()> {
    let is_refused = dice.lock().expect("nothing panics while it holds the dice").roll(6) == 0;
    if is_refused { Err(StoreError::unavailable(Reason::Busy)) } else { Ok(()) }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Weak").field("inner", &self.inner.store).finish_non_exhaustive()
    }
}

/// A reply that never came.
fn lost_reply() -> StoreError {
    StoreError::Unavailable { reason: Reason::Disconnected, maybe_applied: true, source: None }
}
