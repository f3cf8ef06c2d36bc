use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use threadkeep_context::{ContextPolicy, RecallFrom};
use threadkeep_core::{Message, Scope, ThreadId};

use super::sources::Loaded;
use super::{AssembledContext, Carried, ContextOptions};
use crate::Memory;
use crate::tails::{Shared, part_bytes};

/// A context as it is held in memory.
pub struct CachedContext {
    assembled: AssembledContext,
    /// What a reader made of it.
    form: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl fmt::Debug for CachedContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldContext").field("assembled", &self.assembled).finish_non_exhaustive()
    }
}

impl CachedContext {
    pub(super) fn new(assembled: AssembledContext) -> Self {
        Self { assembled, form: OnceLock::new() }
    }

    /// The context and where it was read.
    #[must_use]
    pub fn assembled(&self) -> &AssembledContext {
        &self.assembled
    }

    /// Something that a reader makes of it alone, such as its JSON. It is kept beside it and goes when it goes; there is room
    /// for one, made by whoever comes first.
    pub fn form<T: Any + Send + Sync>(&self, make: impl Fn(&AssembledContext) -> T) -> Arc<T> {
        let form = self.form.get_or_init(|| Arc::new(make(&self.assembled)));
        Arc::clone(form).downcast().unwrap_or_else(|_| Arc::new(make(&self.assembled)))
    }

    /// The context alone; a copy of it where it is held in memory.
    #[must_use]
    pub fn into_assembled(held: Arc<Self>) -> AssembledContext {
        match Arc::try_unwrap(held) {
            Ok(held) => held.assembled,
            Err(held) => held.assembled.clone(),
        }
    }

    /// The bytes that it takes with a form about as large, about.
    pub(crate) fn bytes(&self) -> usize {
        let messages = &self.assembled.context.messages;
        let parts = messages.iter().flat_map(|message| &message.parts).map(part_bytes).sum::<usize>();
        size_of::<Self>() + 2 * (parts + size_of_val(&messages[..]))
    }
}

/// All that a context is made of. It is assembled by no other means, so that of the same it is the same.
#[derive(Clone, Debug)]
pub(crate) struct MadeOf {
    /// Known by where they lie: they are kept with the context.
    messages: Arc<Vec<Message>>,
    from: usize,
    carried: Arc<Carried>,
    policy: ContextPolicy,
    counter: String,
}

impl PartialEq for MadeOf {
    fn eq(&self, other: &Self) -> bool {
        let Self { messages, from, carried, policy, counter } = self;
        Arc::ptr_eq(messages, &other.messages)
            && *from == other.from
            && Arc::ptr_eq(carried, &other.carried)
            && *policy == other.policy
            && *counter == other.counter
    }
}

impl MadeOf {
    /// `None` where there is more to it: what passes with time, what was found, what stands in no store.
    pub(super) fn of(
        loaded: &Loaded,
        carried: &Arc<Carried>,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> Option<Self> {
        let ContextOptions { counter, recalled, embedder: _, enrichment, through_seq, turn } = options;
        let is_plain = recalled.is_empty() && enrichment.is_none() && through_seq.is_none() && turn.is_none();
        let (Shared::Held(held), first) = loaded.held() else { return None };
        if !is_plain || policy.recall.from != RecallFrom::Nowhere || loaded.cutoff.is_some() {
            return None;
        }
        let (messages, from) = held.place();
        let (carried, policy, counter) = (Arc::clone(carried), policy.clone(), counter.name().to_owned());
        Some(Self { messages: Arc::clone(messages), from: from + first, carried, policy, counter })
    }
}

impl Memory {
    /// The context of a thread that was assembled before of the same.
    pub(super) fn held_context(&self, scope: &Scope, thread: ThreadId, made_of: &MadeOf) -> Option<Arc<CachedContext>> {
        self.tails()?.context(&(scope.tenant_id().clone(), thread), made_of)
    }

    /// Keeps a context, when there had been so many removals before anything was read.
    pub(super) fn hold_context(
        &self,
        scope: &Scope,
        thread: ThreadId,
        made_of: MadeOf,
        context: &Arc<CachedContext>,
        removals: u64,
    ) {
        if let Some(tails) = self.tails() {
            tails.keep_context(&(scope.tenant_id().clone(), thread), made_of, context, removals);
        }
    }
}
