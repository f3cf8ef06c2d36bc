//! What a turn reads of its thread before it begins, in one call of the store.

use std::sync::Arc;

use threadkeep_context::ContextPolicy;
use threadkeep_core::{Kind, Positions, Record, RecordName, RecordQuery, Scope, StoreError, Tagged, Thread, ThreadId};

use super::carried;
use super::sources::{Sources, WantedPreferences, has_memory, newest, nothing_carried, reach};
use super::{CachedContext, ContextOptions};
use crate::config::config_name;
use crate::tails::{Beside, Shared, Tails};
use crate::{Memory, Result, ThreadConfig};

/// A thread as it stood before a turn, all of it as of one instant.
#[derive(Clone, Debug)]
pub struct Prefetched {
    /// The thread's own row.
    pub thread: Thread,
    /// Its settings; those that nobody set are `None`.
    pub config: ThreadConfig,
    /// The records that were named, in that order; `None` for one that is not there.
    pub records: Vec<Option<Record>>,
    /// The pages of records that were asked for, in that order.
    pub lists: Vec<Vec<Record>>,
    scope: Scope,
    /// How many messages were asked for.
    reach: usize,
    page: Shared,
    carried: Option<Record>,
    /// Whether the policy that it was read for tells preferences.
    tells_preferences: bool,
    preferences: Option<(WantedPreferences, Vec<Record>)>,
    removals: u64,
    /// Whether appending takes older messages away.
    is_trimmed: bool,
    /// The change that the thread stands at, with commits of the reader's own.
    change: Tagged,
}

impl Memory {
    /// Reads a thread's row, its settings, some of its records by name and by page, and what a context of it by `policy` is made
    /// of. The cost is one call of the store; a second one where the end of the thread is held in memory and others wrote
    /// meanwhile.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `Corrupt` for settings that have another shape, `LimitExceeded` for a window over
    /// [`threadkeep_core::limits::PAGE`] or too many records.
    pub async fn prefetch(
        &self,
        scope: &Scope,
        thread: ThreadId,
        policy: &ContextPolicy,
        records: &[RecordName],
        lists: &[RecordQuery],
    ) -> Result<Prefetched> {
        policy.check()?;
        let removals = self.tails().map_or(0, Tails::removals);
        let wanted = self.preferences_to_read(scope, thread, policy);
        let beside = Beside {
            records: [config_name(), carried::name()].into_iter().chain(records.iter().cloned()).collect(),
            lists: lists.iter().cloned().chain(wanted.iter().map(|wanted| wanted.query.clone())).collect(),
            is_always_read: true,
        };
        let reach = reach(policy);
        let (page, read) = self.read_shared(scope, thread, &newest(reach), &beside, self.now()).await?;
        let read = read.ok_or(StoreError::NotFound(Kind::Thread))?;
        let mut found = read.records.unwrap_or_default().into_iter();
        let (config, carried) = (found.next().flatten(), found.next().flatten());
        let config = config.map(|record| record.value.read()).transpose()?.unwrap_or_default();
        let mut listed = read.lists;
        let preferences = wanted.zip(if listed.len() > lists.len() { listed.pop() } else { None });
        Ok(Prefetched {
            config,
            records: found.collect(),
            lists: listed,
            scope: scope.clone(),
            reach,
            // The row and the page are of one instant, also where the page is held and was only looked after.
            change: page.positions().tagged(),
            page,
            carried,
            tells_preferences: policy.preferences,
            preferences,
            removals,
            is_trimmed: self.options().retention.is_some(),
            thread: read.thread,
        })
    }

    /// As [`Memory::shared_context`], of what was read before: the store is not asked again, unless the policy looks further back
    /// than the one that it was read for, a summary has to catch up, or messages are recalled. What a context carries on is kept
    /// only while the thread stands where it was read: make it before the turn's first commit, or of what [`Prefetched::after`]
    /// gives.
    ///
    /// # Errors
    /// As [`Memory::context`].
    pub async fn context_of(
        &self,
        prefetched: &Prefetched,
        question: Option<&str>,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> Result<Arc<CachedContext>> {
        policy.check()?;
        let (scope, thread) = (&prefetched.scope, prefetched.thread.id);
        let sources = if prefetched.holds(policy, options) {
            self.sources_of(prefetched, policy, options).await?
        } else {
            self.read_sources(scope, thread, policy, options).await?
        };
        self.context_from(scope, thread, question, policy, options, sources).await
    }

    async fn sources_of(
        &self,
        prefetched: &Prefetched,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> Result<Sources> {
        let Prefetched { scope, page, carried, removals, .. } = prefetched;
        let thread = prefetched.thread.id;
        let mut loaded = self.loaded(page.clone(), reach(policy), options.through_seq);
        let Tagged { number: change, tag } = prefetched.change;
        loaded.positions = Positions { change, tag, ..loaded.positions };
        let stored = match has_memory(policy, options) {
            true => self.keep_carried(scope, thread, carried.clone(), loaded.positions, *removals),
            false => Arc::clone(nothing_carried()),
        };
        let preferences = match &prefetched.preferences {
            Some((wanted, read)) if policy.preferences => {
                self.preference_lines(scope, thread, wanted.clone(), Some(read.clone())).await?
            }
            _ => Vec::new(),
        };
        Ok(Sources { loaded, stored, preferences, removals: *removals })
    }
}

impl Prefetched {
    /// The same after a commit of the reader's own that made this `change`, and only appended and put records. `None` where
    /// others committed since it was read, or where appending takes older messages away: the thread has to be read again. A
    /// context of it leaves out what the commit appended.
    #[must_use]
    pub fn after(self, change: Tagged) -> Option<Self> {
        let is_next = change.number == self.change.number + 1 && !self.is_trimmed;
        is_next.then_some(Self { change, ..self })
    }

    /// Whether it is all that a context is made of.
    fn holds(&self, policy: &ContextPolicy, options: &ContextOptions) -> bool {
        let is_far_enough = reach(policy) <= self.reach || !self.page.has_older();
        let has_preferences = self.tells_preferences || !policy.preferences;
        let is_of_all = options.through_seq.is_none_or(|seq| seq >= self.page.positions().seq);
        is_far_enough && has_preferences && is_of_all
    }
}
