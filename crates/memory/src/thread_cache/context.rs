use std::sync::Arc;

use threadkeep_core::Scope;

use super::{ThreadCache, ThreadKey};
use crate::context::{CachedContext, ContextKey};

/// The context that was last assembled from a cached thread.
#[derive(Clone, Debug)]
pub(super) struct LatestContext {
    key: ContextKey,
    context: Arc<CachedContext>,
    bytes: usize,
}

impl ThreadCache {
    pub(crate) fn context(&self, thread: &ThreadKey, key: &ContextKey) -> Option<Arc<CachedContext>> {
        let state = self.lock();
        let latest = state.threads.get(thread)?.context.as_ref()?;
        (latest.key == *key).then(|| Arc::clone(&latest.context))
    }

    /// Caches a context with its thread, and evicts it with the thread. Does nothing if content was removed since `removals` was
    /// read.
    pub(crate) fn insert_context(
        &self,
        thread: &ThreadKey,
        key: ContextKey,
        context: &Arc<CachedContext>,
        removals: u64,
    ) {
        let state = &mut *self.lock();
        let Some(cached) = state.threads.get_mut(thread).filter(|_| state.removals == removals) else { return };
        let (bytes, before) = (context.bytes(), cached.context.as_ref().map_or(0, |latest| latest.bytes));
        let total = cached.bytes - before + bytes;
        if total > self.capacity / 4 {
            return;
        }
        cached.context = Some(LatestContext { key, context: Arc::clone(context), bytes });
        cached.bytes = total;
        state.stats.bytes = state.stats.bytes - before + bytes;
        state.evict_to(self.capacity);
    }

    /// Whether the scope's user is known to have no preferences while the store's stamp for records is `stamp`.
    pub(crate) fn is_without_preferences(&self, thread: &ThreadKey, scope: &Scope, stamp: u64) -> bool {
        let state = self.lock();
        let remembered = state.threads.get(thread).and_then(|cached| cached.without_preferences.as_ref());
        remembered.is_some_and(|(owner, at)| owner == scope && *at == stamp)
    }

    /// Remembers, with a cached thread, that the scope's user had no preferences when the store's stamp for records was `stamp`.
    pub(crate) fn remember_no_preferences(&self, thread: &ThreadKey, scope: &Scope, stamp: u64) {
        if let Some(cached) = self.lock().threads.get_mut(thread) {
            cached.without_preferences = Some((scope.clone(), stamp));
        }
    }
}
