use std::sync::Arc;

use threadkeep_core::{Batch, CommitOutcome};

use super::{ThreadCache, ThreadKey};
use crate::context::{ContextState, writes_context_state};

/// The context state of a cached thread, with the changes of the thread that it is valid for.
///
/// Content is removed from it only by a change of the thread, so at the same change it can be used. Another instance may have
/// written a later state at that change; the store then rejects what is derived from this one, and it is read again.
#[derive(Clone, Debug)]
pub(super) struct CachedContextState {
    value: Arc<ContextState>,
    /// The first change of the thread that it is valid for.
    from: u64,
    /// The last one, inclusive.
    through: u64,
    bytes: usize,
}

impl CachedContextState {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Extends its validity over a commit of this manager that does not write the context state.
    pub(super) fn extend_over(&mut self, batch: &Batch, outcome: &CommitOutcome) {
        if self.through + 1 == outcome.change && !outcome.replayed && !writes_context_state(batch) {
            self.through = outcome.change;
        }
    }
}

impl ThreadCache {
    /// The cached context state of a thread at a change.
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

    /// How often content was removed so far. Read it before reading something to be cached.
    pub(crate) fn removals(&self) -> u64 {
        self.lock().removals
    }

    /// Caches the context state of a thread that was at `change` before the state was read, unless content was removed since
    /// `removals` was read. It is evicted with the thread, and not cached if the thread is not.
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
