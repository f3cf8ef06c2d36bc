//! Reading everything that a turn needs from its thread before it starts, in one call to the store.

use std::sync::Arc;

use threadkeep_context::ContextPolicy;
use threadkeep_core::{
    Kind, Positions, Record, RecordName, RecordQuery, Scope, StoreError, TaggedNumber, Thread, ThreadId,
};

use super::sources::{PreferencesQuery, Sources, empty_context_state, messages_to_load, needs_context_state, newest};
use super::state;
use super::{CachedContext, ContextOptions};
use crate::config::config_name;
use crate::thread_cache::{ExtraRequest, ReadPage, ThreadCache};
use crate::{Memory, Result, ThreadConfig};

/// The data that a turn needs from its thread at the start, all read at the same instant.
#[derive(Clone, Debug)]
pub struct Prefetched {
    /// The thread itself, without messages.
    pub thread: Thread,
    /// The settings of the thread. Those that are not set are `None`.
    pub config: ThreadConfig,
    /// The requested records, in the order of the request; `None` for records that do not exist.
    pub records: Vec<Option<Record>>,
    /// The requested pages of records, in the order of the request.
    pub lists: Vec<Vec<Record>>,
    scope: Scope,
    /// The maximum number of messages that were read.
    message_limit: usize,
    page: ReadPage,
    /// The record of the context state.
    state_record: Option<Record>,
    /// Whether the policy for which the data was read includes preferences.
    includes_preferences: bool,
    preferences: Option<(PreferencesQuery, Vec<Record>)>,
    removals: u64,
    /// Whether appending removes older messages.
    is_trimmed: bool,
    /// The thread's current change, including the caller's own commits ([`Prefetched::after`]).
    change: TaggedNumber,
}

impl Memory {
    /// Reads a thread, its settings, the named `records`, a page of records for each query in `lists`, and the sources of a
    /// context with this `policy`. This takes one call to the store, or two if the thread is cached and others have written to
    /// it since.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `Corrupt` for settings that cannot be decoded, `LimitExceeded` for too many records or a
    /// window of more than [`threadkeep_core::limits::PAGE`] messages.
    pub async fn prefetch(
        &self,
        scope: &Scope,
        thread: ThreadId,
        policy: &ContextPolicy,
        records: &[RecordName],
        lists: &[RecordQuery],
    ) -> Result<Prefetched> {
        policy.check()?;
        let removals = self.thread_cache().map_or(0, ThreadCache::removals);
        let preferences_query = self.preferences_query(scope, thread, policy);
        let extra = ExtraRequest {
            records: [config_name(), state::context_state_name()].into_iter().chain(records.iter().cloned()).collect(),
            lists: lists.iter().cloned().chain(preferences_query.iter().map(|wanted| wanted.query.clone())).collect(),
            reads_even_if_cached: true,
        };
        let message_limit = messages_to_load(policy);
        let (page, read) = self.read_page_with(scope, thread, &newest(message_limit), &extra, self.now()).await?;
        let read = read.ok_or(StoreError::NotFound(Kind::Thread))?;
        let mut found = read.records.unwrap_or_default().into_iter();
        let (config, state_record) = (found.next().flatten(), found.next().flatten());
        let config = config.map(|record| record.value.read()).transpose()?.unwrap_or_default();
        let mut listed = read.lists;
        let preferences = preferences_query.zip(if listed.len() > lists.len() { listed.pop() } else { None });
        Ok(Prefetched {
            config,
            records: found.collect(),
            lists: listed,
            scope: scope.clone(),
            message_limit,
            // The thread and its messages were read at the same instant: a cached page is revalidated.
            change: page.positions().tagged(),
            page,
            state_record,
            includes_preferences: policy.preferences,
            preferences,
            removals,
            is_trimmed: self.options().retention.is_some(),
            thread: read.thread,
        })
    }

    /// Assembles a context as [`Memory::shared_context`] does, from prefetched data.
    ///
    /// The store is queried only if `policy` needs data that was not prefetched, if the summary lacks messages, or if messages
    /// are recalled. The updated context state is stored only if the thread has not changed since the prefetch: assemble the
    /// context before the turn's first commit, or from the result of [`Prefetched::after`].
    ///
    /// # Errors
    /// The same as for [`Memory::context`].
    pub async fn context_of(
        &self,
        prefetched: &Prefetched,
        question: Option<&str>,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> Result<Arc<CachedContext>> {
        policy.check()?;
        let (scope, thread) = (&prefetched.scope, prefetched.thread.id);
        let sources = if prefetched.suffices_for(policy, options) {
            self.sources_from(prefetched, policy, options).await?
        } else {
            self.read_sources(scope, thread, policy, options).await?
        };
        self.context_from(scope, thread, question, policy, options, sources).await
    }

    async fn sources_from(
        &self,
        prefetched: &Prefetched,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> Result<Sources> {
        let Prefetched { scope, page, state_record, removals, .. } = prefetched;
        let thread = prefetched.thread.id;
        let mut loaded = self.select_messages(page.clone(), messages_to_load(policy), options.through_seq);
        let TaggedNumber { number: change, tag } = prefetched.change;
        loaded.positions = Positions { change, tag, ..loaded.positions };
        let state = match needs_context_state(policy, options) {
            true => self.cache_context_state(scope, thread, state_record.clone(), loaded.positions, *removals),
            false => Arc::clone(empty_context_state()),
        };
        let preferences = match &prefetched.preferences {
            Some((wanted, read)) if policy.preferences => {
                self.preference_lines(scope, thread, wanted.clone(), Some(read.clone())).await?
            }
            _ => Vec::new(),
        };
        Ok(Sources { loaded, state, preferences, removals: *removals })
    }
}

impl Prefetched {
    /// Makes the data valid after the caller's own commit, which resulted in `change` and only appended messages and put records.
    ///
    /// Returns `None` if others have committed since the data was read, or if appending removes older messages. The thread then
    /// has to be read again. A context assembled from the result does not contain the appended messages.
    #[must_use]
    pub fn after(self, change: TaggedNumber) -> Option<Self> {
        let is_valid = change.number == self.change.number + 1 && !self.is_trimmed;
        is_valid.then_some(Self { change, ..self })
    }

    /// Whether a context can be assembled without reading more messages or preferences.
    fn suffices_for(&self, policy: &ContextPolicy, options: &ContextOptions) -> bool {
        let has_messages = messages_to_load(policy) <= self.message_limit || !self.page.has_older();
        let has_preferences = self.includes_preferences || !policy.preferences;
        let ends_at_last = options.through_seq.is_none_or(|seq| seq >= self.page.positions().seq);
        has_messages && has_preferences && ends_at_last
    }
}
