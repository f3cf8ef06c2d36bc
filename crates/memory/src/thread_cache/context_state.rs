use std::sync::Arc;

use threadkeep_core::{Batch, CommitOutcome};

use super::{ThreadCache, ThreadKey};
use crate::context::{ContextState, writes_context_state};

/// The context state of a cached thread, and the range of the thread's change numbers for which it is valid.
///
/// Content is removed from the state only by a commit to the thread. So while the thread's change number is unchanged, the cached
/// state contains nothing that has been removed. Another instance may have written a newer state without changing the number; the
/// store then rejects writes based on the cached state, and the state is read again.
#[derive(Clone, Debug)]
pub(super) struct CachedContextState {
    value: Arc<ContextState>,
    /// The first change for which the state is valid.
    from: u64,
    /// The last change for which the state is valid (inclusive).
    through: u64,
    bytes: usize,
}

impl CachedContextState {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Extends the validity to a commit by this `Memory`, unless the commit writes the context state.
    pub(super) fn extend_validity(&mut self, batch: &Batch, outcome: &CommitOutcome) {
        if self.through + 1 == outcome.change && !outcome.replayed && !writes_context_state(batch) {
            self.through = outcome.change;
        }
    }
}

impl ThreadCache {
    /// The cached context state of a thread, if it is valid for the given change.
    pub(crate) fn context_state(&self, thread: &ThreadKey, change: u64) -> Option<Arc<ContextState>> {
        let state = self.lock();
        let cached = state.threads.get(thread)?.context_state.as_ref()?;
        (cached.from..=cached.through).contains(&change).then(|| Arc::clone(&cached.value))
    }

    /// Evicts the context state of a thread, because it may have been written since it was read.
    pub(crate) fn evict_context_state(&self, thread: &ThreadKey) {
        let state = &mut *self.lock();
        let Some(cached) = state.threads.get_mut(thread) else { return };
        if let Some(evicted) = cached.context_state.take() {
            cached.bytes -= evicted.bytes;
            state.stats.bytes -= evicted.bytes;
        }
    }

    /// The number of times that content has been removed. Call this before reading anything that will be cached.
    pub(crate) fn removals(&self) -> u64 {
        self.lock().removals
    }

    /// Caches a context state if its thread is cached, and evicts it with the thread. `change` is the thread's change number as
    /// read before the state. Does nothing if content has been removed since `removals` was read.
    pub(crate) fn insert_context_state(
        &self,
        thread: &ThreadKey,
        change: u64,
        value: &Arc<ContextState>,
        bytes: usize,
        removals: u64,
    ) {
        let state = &mut *self.lock();
        if state.removals != removals || bytes > self.capacity / 4 {
            return;
        }
        let Some(cached) = state.threads.get_mut(thread) else { return };
        if cached.context_state.as_ref().is_some_and(|earlier| earlier.through > change) {
            return;
        }
        let before = cached.context_state.as_ref().map_or(0, CachedContextState::bytes);
        let inserted = CachedContextState { value: Arc::clone(value), from: change, through: change, bytes };
        cached.context_state = Some(inserted);
        cached.bytes = cached.bytes - before + bytes;
        state.stats.bytes = state.stats.bytes - before + bytes;
        state.evict_to(self.capacity);
    }
}
