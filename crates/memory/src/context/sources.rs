//! The data from which a context is assembled, and how it is read.

use std::sync::{Arc, LazyLock};

use threadkeep_context::{ContextPolicy, PreferenceLine, ThreadRange, Trimming};
use threadkeep_core::{
    Bound, CorruptRow, Message, MessageQuery, OnCorrupt, Positions, Record, RecordQuery, Scope, ThreadId, Timestamp,
    limits,
};

use super::state::{self, ContextState};
use super::token_counts::TokenCounts;
use super::{ContextOptions, MARGIN};
use crate::preferences::preferences_query;
use crate::thread_cache::{ExtraRequest, ReadPage, ThreadCache};
use crate::{Memory, Result};

/// The data from which a context is assembled.
pub(super) struct Sources {
    pub(super) loaded: LoadedMessages,
    pub(super) state: Arc<ContextState>,
    pub(super) preferences: Vec<PreferenceLine>,
    /// [`ThreadCache::removals`] before anything was read; 0 without a cache.
    pub(super) removals: u64,
}

impl Memory {
    /// Reads the sources of a context, in one call to the store if nothing is cached.
    pub(super) async fn read_sources(
        &self,
        scope: &Scope,
        thread: ThreadId,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> Result<Sources> {
        let removals = self.thread_cache().map_or(0, ThreadCache::removals);
        let needs_state = needs_context_state(policy, options);
        let preferences = self.preferences_query(scope, thread, policy);
        let extra = ExtraRequest {
            records: needs_state.then(state::context_state_name).into_iter().collect(),
            lists: preferences.iter().map(|wanted| wanted.query.clone()).collect(),
            reads_even_if_cached: false,
        };
        let before = options.through_seq.map(|seq| Bound::Seq(seq + 1));
        let query = MessageQuery { before, ..newest(messages_to_load(policy)) };
        let (page, read) = self.read_page_with(scope, thread, &query, &extra, self.now()).await?;
        let loaded = self.select_messages(page, messages_to_load(policy), options.through_seq);
        let (records, lists) = read.map_or((None, Vec::new()), |read| (read.records, read.lists));
        let state = match records.and_then(|records| records.into_iter().next()) {
            Some(record) => self.cache_context_state(scope, thread, record, loaded.positions, removals),
            None if needs_state => self.find_context_state_at(scope, thread, loaded.positions).await?,
            None => Arc::clone(empty_context_state()),
        };
        let preferences = match preferences {
            Some(wanted) => self.preference_lines(scope, thread, wanted, lists.into_iter().next()).await?,
            None => Vec::new(),
        };
        Ok(Sources { loaded, state, preferences, removals })
    }

    /// Selects the newest messages of a page, at most `limit`, and omits those that are past their retention.
    pub(super) fn select_messages(&self, page: ReadPage, limit: usize, through_seq: Option<u64>) -> LoadedMessages {
        let positions = page.positions();
        let last_seq = positions.seq.min(through_seq.unwrap_or(u64::MAX));
        let cutoff = self.options().retention.and_then(|retention| retention.cutoff(self.now()));
        // Messages past their retention are treated as already trimmed.
        let is_outdated = |message: &&Message| cutoff.is_some_and(|cutoff| message.created_at < cutoff);
        let outdated = page.messages().iter().filter(is_outdated).map(|message| message.seq).max();
        let first_seq = outdated.map_or(0, |seq| seq + 1).max(positions.first_seq);
        let from = page.nth_newest(limit).unwrap_or(0).max(first_seq);
        let first = page.messages().partition_point(|message| message.seq < from);
        let unreadable = page.corrupt().iter().filter(|row| row.seq >= from).cloned().collect();
        let range = ThreadRange { first_seq, last_seq };
        LoadedMessages { page, first, unreadable, range, positions, cutoff }
    }

    /// The query for the preferences of the scope's user; `None` if the policy omits preferences or the user is known to have
    /// none.
    pub(super) fn preferences_query(
        &self,
        scope: &Scope,
        thread: ThreadId,
        policy: &ContextPolicy,
    ) -> Option<PreferencesQuery> {
        let query = preferences_query(scope).ok().filter(|_| policy.preferences)?;
        // Preferences are not cached, only their absence. The stamp is read first, so that it is outdated if preferences are
        // written during the read.
        let stamp = self.thread_cache().and_then(|_| self.store().records_stamp());
        let key = (scope.tenant_id().clone(), thread);
        let are_known_absent =
            |stamp| self.thread_cache().is_some_and(|cache| cache.is_without_preferences(&key, scope, stamp));
        (!stamp.is_some_and(are_known_absent)).then_some(PreferencesQuery { query, stamp })
    }

    /// Returns the preferences for a context: `read`, if it is the whole result of the query, or else the result of querying
    /// again.
    pub(super) async fn preference_lines(
        &self,
        scope: &Scope,
        thread: ThreadId,
        preferences: PreferencesQuery,
        read: Option<Vec<Record>>,
    ) -> Result<Vec<PreferenceLine>> {
        let records = match read {
            // There are no more pages after one that is not full.
            Some(read) if read.len() < preferences.query.limit => read,
            _ => Box::pin(self.all_records(scope, preferences.query)).await?,
        };
        if let (true, Some(stamp), Some(cache)) = (records.is_empty(), preferences.stamp, self.thread_cache()) {
            cache.remember_no_preferences(&(scope.tenant_id().clone(), thread), scope, stamp);
        }
        let lines = records.into_iter().map(|preference| {
            let text: Option<String> = preference.value.read().ok();
            let value = text.unwrap_or_else(|| preference.value.as_str().to_owned());
            PreferenceLine { key: preference.key, value }
        });
        Ok(lines.collect())
    }
}

/// A query for the preferences that a context includes.
#[derive(Clone, Debug)]
pub(super) struct PreferencesQuery {
    pub(super) query: RecordQuery,
    /// The store's stamp for records, read before the query.
    stamp: Option<u64>,
}

/// The state for contexts that need none. Always the same allocation, because [`super::ContextKey`] compares addresses.
pub(super) fn empty_context_state() -> &'static Arc<ContextState> {
    static EMPTY: LazyLock<Arc<ContextState>> = LazyLock::new(Arc::default);
    &EMPTY
}

/// The newest messages of a thread, as selected by [`Memory::select_messages`].
pub(super) struct LoadedMessages {
    page: ReadPage,
    /// The index of the first message that is used. The messages before it are past their retention, or exceed the limit.
    first: usize,
    pub(super) unreadable: Vec<CorruptRow>,
    pub(super) range: ThreadRange,
    pub(super) positions: Positions,
    pub(super) cutoff: Option<Timestamp>,
}

impl LoadedMessages {
    pub(super) fn messages(&self) -> &[Message] {
        &self.page.messages()[self.first..]
    }

    /// The page that was read, and the index of the first message that is used.
    pub(super) fn page(&self) -> (&ReadPage, usize) {
        (&self.page, self.first)
    }

    /// The first position that was loaded, or the position after the thread's last message if nothing was loaded.
    pub(super) fn from(&self) -> u64 {
        let first = self.messages().first().map(|message| message.seq);
        let first = first.into_iter().chain(self.unreadable.iter().map(|row| row.seq)).min();
        first.unwrap_or(self.range.last_seq + 1)
    }
}

/// Whether contexts with this policy read and update the context state.
pub(super) fn needs_context_state(policy: &ContextPolicy, options: &ContextOptions) -> bool {
    let trims_in_steps = matches!(policy.trimming, Trimming::Steps { .. });
    policy.summary.is_some() || trims_in_steps || TokenCounts::are_stored_for(&*options.counter)
}

/// A query for the newest messages that also reports those that cannot be decoded.
pub(super) fn newest(limit: usize) -> MessageQuery {
    MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::newest(limit) }
}

/// The number of newest messages that a context with this policy loads.
pub(super) fn messages_to_load(policy: &ContextPolicy) -> usize {
    let window = policy.window.unwrap_or(limits::PAGE);
    let considered = policy.pruning.map_or(window, |pruning| pruning.consider.max(window));
    match policy.summary {
        Some(_) if considered < limits::PAGE => (considered + MARGIN).min(limits::PAGE),
        _ => considered,
    }
}
