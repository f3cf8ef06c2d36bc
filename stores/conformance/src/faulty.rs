//! A store that injects the faults that the contract allows.
//!
//! The lint requires an implementation of every method, because a default body would inject no faults.
#![deny(clippy::missing_trait_methods)]

mod maintenance;
mod search;
mod snapshot;
mod split_mix;
mod store;

use std::fmt;
use std::sync::{Arc, Mutex};

use threadkeep_core::{Backend, Reason, Result, StoreError};

use self::split_mix::SplitMix64;

/// A wrapper around a store that injects every fault that the contract allows, at random from a seed.
///
/// The wrapper drops responses to commits, before and after the commit is applied; rejects calls as temporarily
/// unavailable; excludes the newest messages from searches and reports them as not indexed; and drops and duplicates
/// wake-ups. It never breaks the contract: a caller that retries calls after retryable errors gets the same results as
/// from the wrapped store.
pub struct FaultyStore {
    inner: Backend,
    random: Arc<Mutex<SplitMix64>>,
}

impl FaultyStore {
    /// Wraps a backend.
    #[must_use]
    pub fn wrap(inner: Backend, seed: u64) -> Backend {
        let faulty = Arc::new(Self { inner, random: Arc::new(Mutex::new(SplitMix64::new(seed))) });
        Backend { store: faulty.clone(), maintenance: faulty.clone(), search: faulty }
    }

    /// Returns a random number below `bound`.
    fn random_below(&self, bound: u64) -> u64 {
        self.random.lock().expect("no code panics while it holds the lock").below(bound)
    }

    /// Returns an error for one call in six, before the call is executed.
    fn maybe_fail(&self) -> Result<()> {
        maybe_fail(&self.random)
    }
}

/// Returns an error for one call in six.
fn maybe_fail(random: &Mutex<SplitMix64>) -> Result<()> {
    let fails = random.lock().expect("no code panics while it holds the lock").below(6) == 0;
    if fails { Err(StoreError::unavailable(Reason::Busy)) } else { Ok(()) }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").field("inner", &self.inner.store).finish_non_exhaustive()
    }
}

/// Returns the error of a write that may or may not have been executed, because the request or the response was lost.
fn unknown_outcome() -> StoreError {
    StoreError::Unavailable { reason: Reason::Disconnected, maybe_applied: true, source: None }
}
