use std::sync::Arc;

use threadkeep_core::{Batch, CommitOutcome};

use super::{Key, Tails};
use crate::context::{Carried, touches_carried};

/// What contexts of a thread carry on, beside its end.
///
/// Words leave it with a change of the thread alone, so at the same change it may be shown. Another instance may have written
/// a later one at that change; what is derived from this one is then refused, and it is read again.
#[derive(Clone, Debug)]
pub(super) struct HeldCarried {
    value: Arc<Carried>,
    /// It stands so from this change of the thread on,
    from: u64,
    /// through this one.
    through: u64,
    bytes: usize,
}

impl HeldCarried {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Follows a commit of this manager that leaves it as it is.
    pub(super) fn follow(&mut self, batch: &Batch, outcome: &CommitOutcome) {
        if self.through + 1 == outcome.change && !outcome.replayed && !touches_carried(batch) {
            self.through = outcome.change;
        }
    }
}

impl Tails {
    /// What is carried in a thread that stands at this change, where it is held.
    pub(crate) fn carried(&self, key: &Key, change: u64) -> Option<Arc<Carried>> {
        let state = self.lock();
        let held = state.tails.get(key)?.carried.as_ref()?;
        (held.from..=held.through).contains(&change).then(|| Arc::clone(&held.value))
    }

    /// Forgets what is carried in a thread: it was written, here or by another, after it was read.
    pub(crate) fn forget_carried(&self, key: &Key) {
        let state = &mut *self.lock();
        let Some(tail) = state.tails.get_mut(key) else { return };
        if let Some(held) = tail.carried.take() {
            tail.bytes -= held.bytes;
            state.figures.bytes -= held.bytes;
        }
    }

    /// How often words were taken away so far; to be asked before something is read that is to be kept.
    pub(crate) fn removals(&self) -> u64 {
        self.lock().removals
    }

    /// Keeps what is carried in a thread that stood at this change before it was read, when there had been so many removals.
    /// It goes when the end of the thread goes, and is not kept without it.
    pub(crate) fn keep_carried(&self, key: &Key, change: u64, value: &Arc<Carried>, bytes: usize, removals: u64) {
        let state = &mut *self.lock();
        if state.removals != removals || bytes > self.capacity / 4 {
            return;
        }
        let Some(tail) = state.tails.get_mut(key) else { return };
        if tail.carried.as_ref().is_some_and(|held| held.through > change) {
            return;
        }
        let before = tail.carried.as_ref().map_or(0, HeldCarried::bytes);
        tail.carried = Some(HeldCarried { value: Arc::clone(value), from: change, through: change, bytes });
        tail.bytes = tail.bytes - before + bytes;
        state.figures.bytes = state.figures.bytes - before + bytes;
        state.make_room(self.capacity);
    }
}
