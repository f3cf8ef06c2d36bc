use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use threadkeep_context::{ContextPolicy, RecallFrom};
use threadkeep_core::{Message, Scope, ThreadId};

use super::sources::LoadedMessages;
use super::{AssembledContext, ContextOptions, ContextState};
use crate::Memory;
use crate::thread_cache::{ReadPage, part_bytes};

/// An assembled context that can be cached and shared.
pub struct CachedContext {
    assembled: AssembledContext,
    /// A value that a caller derived from the context.
    derived: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl fmt::Debug for CachedContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedContext").field("assembled", &self.assembled).finish_non_exhaustive()
    }
}

impl CachedContext {
    pub(super) fn new(assembled: AssembledContext) -> Self {
        Self { assembled, derived: OnceLock::new() }
    }

    /// The context and the positions at which it was read.
    #[must_use]
    pub fn assembled(&self) -> &AssembledContext {
        &self.assembled
    }

    /// Returns a value that `compute` derives from the context alone, such as its JSON.
    ///
    /// The value of the first call is cached with the context. A later call that returns another type computes its value every
    /// time.
    pub fn derived<T: Any + Send + Sync>(&self, compute: impl Fn(&AssembledContext) -> T) -> Arc<T> {
        let derived = self.derived.get_or_init(|| Arc::new(compute(&self.assembled)));
        Arc::clone(derived).downcast().unwrap_or_else(|_| Arc::new(compute(&self.assembled)))
    }

    /// Returns the assembled context, which is copied if other references to it exist.
    #[must_use]
    pub fn into_assembled(cached: Arc<Self>) -> AssembledContext {
        match Arc::try_unwrap(cached) {
            Ok(cached) => cached.assembled,
            Err(cached) => cached.assembled.clone(),
        }
    }

    /// The approximate size in bytes, assuming that the derived value is as large as the context.
    pub(crate) fn bytes(&self) -> usize {
        let messages = &self.assembled.context.messages;
        let parts = messages.iter().flat_map(|message| &message.parts).map(part_bytes).sum::<usize>();
        size_of::<Self>() + 2 * (parts + size_of_val(&messages[..]))
    }
}

/// Everything from which a cacheable context is assembled. Equal keys result in equal contexts.
#[derive(Clone, Debug)]
pub(crate) struct ContextKey {
    /// Compared by address, which is safe because the key keeps the messages alive.
    messages: Arc<Vec<Message>>,
    from: usize,
    state: Arc<ContextState>,
    policy: ContextPolicy,
    counter: String,
}

impl PartialEq for ContextKey {
    fn eq(&self, other: &Self) -> bool {
        let Self { messages, from, state, policy, counter } = self;
        Arc::ptr_eq(messages, &other.messages)
            && *from == other.from
            && Arc::ptr_eq(state, &other.state)
            && *policy == other.policy
            && *counter == other.counter
    }
}

impl ContextKey {
    /// The key of a context; `None` if the context also depends on the time, on recalled messages, or on data from the caller.
    pub(super) fn of(
        loaded: &LoadedMessages,
        state: &Arc<ContextState>,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> Option<Self> {
        let ContextOptions { counter, recalled, embedder: _, enrichment, through_seq, turn } = options;
        let is_cacheable = recalled.is_empty() && enrichment.is_none() && through_seq.is_none() && turn.is_none();
        let (ReadPage::Cached(cached), first) = loaded.page() else { return None };
        if !is_cacheable || policy.recall.from != RecallFrom::Nowhere || loaded.cutoff.is_some() {
            return None;
        }
        let (messages, from) = cached.as_part();
        let (state, policy, counter) = (Arc::clone(state), policy.clone(), counter.name().to_owned());
        Some(Self { messages: Arc::clone(messages), from: from + first, state, policy, counter })
    }
}

impl Memory {
    /// Returns the cached context of a thread; `None` if no context with this key is cached.
    pub(super) fn cached_context(
        &self,
        scope: &Scope,
        thread: ThreadId,
        key: &ContextKey,
    ) -> Option<Arc<CachedContext>> {
        self.thread_cache()?.context(&(scope.tenant_id().clone(), thread), key)
    }

    /// Caches a context, unless content was removed since `removals` was read.
    pub(super) fn cache_context(
        &self,
        scope: &Scope,
        thread: ThreadId,
        key: ContextKey,
        context: &Arc<CachedContext>,
        removals: u64,
    ) {
        if let Some(cache) = self.thread_cache() {
            cache.insert_context(&(scope.tenant_id().clone(), thread), key, context, removals);
        }
    }
}
