use std::sync::Arc;

use threadkeep_core::Scope;

use super::{Key, Tails};
use crate::context::{CachedContext, MadeOf};

/// The context that was last made of the end of a thread.
#[derive(Clone, Debug)]
pub(super) struct MadeContext {
    made_of: MadeOf,
    context: Arc<CachedContext>,
    bytes: usize,
}

impl Tails {
    pub(crate) fn context(&self, key: &Key, made_of: &MadeOf) -> Option<Arc<CachedContext>> {
        let state = self.lock();
        let made = state.tails.get(key)?.context.as_ref()?;
        (made.made_of == *made_of).then(|| Arc::clone(&made.context))
    }

    /// Keeps a context of a thread's end beside it, when there had been so many removals before anything was read. It goes
    /// when the end of the thread goes.
    pub(crate) fn keep_context(&self, key: &Key, made_of: MadeOf, context: &Arc<CachedContext>, removals: u64) {
        let state = &mut *self.lock();
        let Some(tail) = state.tails.get_mut(key).filter(|_| state.removals == removals) else { return };
        let (bytes, before) = (context.bytes(), tail.context.as_ref().map_or(0, |made| made.bytes));
        let with_it = tail.bytes - before + bytes;
        if with_it > self.capacity / 4 {
            return;
        }
        tail.context = Some(MadeContext { made_of, context: Arc::clone(context), bytes });
        tail.bytes = with_it;
        state.figures.bytes = state.figures.bytes - before + bytes;
        state.make_room(self.capacity);
    }

    /// Whether the scope's user had no preferences when the stamp of records was this.
    pub(crate) fn is_without_preferences(&self, key: &Key, scope: &Scope, stamp: u64) -> bool {
        let state = self.lock();
        let noted = state.tails.get(key).and_then(|tail| tail.without_preferences.as_ref());
        noted.is_some_and(|(noted, at)| noted == scope && *at == stamp)
    }

    /// Notes beside the end of a thread that the scope's user has no preferences.
    pub(crate) fn note_without_preferences(&self, key: &Key, scope: &Scope, stamp: u64) {
        if let Some(tail) = self.lock().tails.get_mut(key) {
            tail.without_preferences = Some((scope.clone(), stamp));
        }
    }
}
