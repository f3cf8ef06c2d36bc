//! What a context is made of, and how it is read.

use std::sync::{Arc, LazyLock};

use threadkeep_context::{ContextPolicy, PreferenceLine, ThreadRange, Trimming};
use threadkeep_core::{
    Bound, CorruptRow, Message, MessageQuery, OnCorrupt, Positions, Record, RecordQuery, Scope, ThreadId, Timestamp,
    limits,
};

use super::carried::{self, Carried};
use super::counts::Counts;
use super::{ContextOptions, MARGIN};
use crate::preferences::preferences_of;
use crate::tails::{Beside, Shared, Tails};
use crate::{Memory, Result};

/// What a context is made of.
pub(super) struct Sources {
    pub(super) loaded: Loaded,
    /// What was carried on from earlier contexts.
    pub(super) stored: Arc<Carried>,
    pub(super) preferences: Vec<PreferenceLine>,
    /// How often words had been taken away before anything was read.
    pub(super) removals: u64,
}

impl Memory {
    /// Reads all of it, in one call of the store where nothing is held.
    pub(super) async fn read_sources(
        &self,
        scope: &Scope,
        thread: ThreadId,
        policy: &ContextPolicy,
        options: &ContextOptions,
    ) -> Result<Sources> {
        let removals = self.tails().map_or(0, Tails::removals);
        let has_memory = has_memory(policy, options);
        let preferences = self.preferences_to_read(scope, thread, policy);
        let beside = Beside {
            records: has_memory.then(carried::name).into_iter().collect(),
            lists: preferences.iter().map(|wanted| wanted.query.clone()).collect(),
            is_always_read: false,
        };
        let before = options.through_seq.map(|seq| Bound::Seq(seq + 1));
        let query = MessageQuery { before, ..newest(reach(policy)) };
        let (page, read) = self.read_shared(scope, thread, &query, &beside, self.now()).await?;
        let loaded = self.loaded(page, reach(policy), options.through_seq);
        let (records, lists) = read.map_or((None, Vec::new()), |read| (read.records, read.lists));
        let stored = match records.and_then(|records| records.into_iter().next()) {
            Some(record) => self.keep_carried(scope, thread, record, loaded.positions, removals),
            None if has_memory => self.carried_at(scope, thread, loaded.positions).await?,
            None => Arc::clone(nothing_carried()),
        };
        let preferences = match preferences {
            Some(wanted) => self.preference_lines(scope, thread, wanted, lists.into_iter().next()).await?,
            None => Vec::new(),
        };
        Ok(Sources { loaded, stored, preferences, removals })
    }

    /// The newest messages of a page, at most `reach`, without what is too old.
    pub(super) fn loaded(&self, page: Shared, reach: usize, through_seq: Option<u64>) -> Loaded {
        let positions = page.positions();
        let last_seq = positions.seq.min(through_seq.unwrap_or(u64::MAX));
        let cutoff = self.options().retention.and_then(|retention| retention.cutoff(self.now()));
        // What is too old is as if it were trimmed already.
        let is_outdated = |message: &&Message| cutoff.is_some_and(|cutoff| message.created_at < cutoff);
        let outdated = page.messages().iter().filter(is_outdated).map(|message| message.seq).max();
        let first_seq = outdated.map_or(0, |seq| seq + 1).max(positions.first_seq);
        let from = page.nth_newest(reach).unwrap_or(0).max(first_seq);
        let first = page.messages().partition_point(|message| message.seq < from);
        let unreadable = page.corrupt().iter().filter(|row| row.seq >= from).cloned().collect();
        let range = ThreadRange { first_seq, last_seq };
        Loaded { page, first, unreadable, range, positions, cutoff }
    }

    /// The preferences of the scope's user, unless the policy leaves them out or there are known to be none.
    pub(super) fn preferences_to_read(
        &self,
        scope: &Scope,
        thread: ThreadId,
        policy: &ContextPolicy,
    ) -> Option<WantedPreferences> {
        let query = preferences_of(scope).ok().filter(|_| policy.preferences)?;
        // Before they are read: what is written from now on makes it another one. Their words are not kept, only that
        // there are none.
        let stamp = self.tails().and_then(|_| self.store().records_stamp());
        let key = (scope.tenant_id().clone(), thread);
        let are_none = |stamp| self.tails().is_some_and(|tails| tails.is_without_preferences(&key, scope, stamp));
        (!stamp.is_some_and(are_none)).then_some(WantedPreferences { query, stamp })
    }

    pub(super) async fn preference_lines(
        &self,
        scope: &Scope,
        thread: ThreadId,
        wanted: WantedPreferences,
        read: Option<Vec<Record>>,
    ) -> Result<Vec<PreferenceLine>> {
        let preferences = match read {
            // Fewer than there is room for are all that there are.
            Some(read) if read.len() < wanted.query.limit => read,
            _ => Box::pin(self.all_records(scope, wanted.query)).await?,
        };
        if let (true, Some(stamp), Some(tails)) = (preferences.is_empty(), wanted.stamp, self.tails()) {
            tails.note_without_preferences(&(scope.tenant_id().clone(), thread), scope, stamp);
        }
        let lines = preferences.into_iter().map(|preference| {
            let text: Option<String> = preference.value.read().ok();
            let value = text.unwrap_or_else(|| preference.value.as_str().to_owned());
            PreferenceLine { key: preference.key, value }
        });
        Ok(lines.collect())
    }
}

/// Preferences that a context is to tell.
#[derive(Clone, Debug)]
pub(super) struct WantedPreferences {
    pub(super) query: RecordQuery,
    /// The store's stamp of records before they are read.
    stamp: Option<u64>,
}

/// What is carried on where nothing is: always the same one.
pub(super) fn nothing_carried() -> &'static Arc<Carried> {
    static NOTHING: LazyLock<Arc<Carried>> = LazyLock::new(Arc::default);
    &NOTHING
}

/// The newest messages of a thread.
pub(super) struct Loaded {
    page: Shared,
    /// Those of the page before this one are gone, or further back than is looked at.
    first: usize,
    pub(super) unreadable: Vec<CorruptRow>,
    pub(super) range: ThreadRange,
    pub(super) positions: Positions,
    pub(super) cutoff: Option<Timestamp>,
}

impl Loaded {
    pub(super) fn messages(&self) -> &[Message] {
        &self.page.messages()[self.first..]
    }

    /// The messages as they are held, and which is the first of them.
    pub(super) fn held(&self) -> (&Shared, usize) {
        (&self.page, self.first)
    }

    /// The first position that was loaded; one past the last where nothing was.
    pub(super) fn from(&self) -> u64 {
        let first = self.messages().first().map(|message| message.seq);
        let first = first.into_iter().chain(self.unreadable.iter().map(|row| row.seq)).min();
        first.unwrap_or(self.range.last_seq + 1)
    }
}

/// Whether contexts by this policy carry anything on.
pub(super) fn has_memory(policy: &ContextPolicy, options: &ContextOptions) -> bool {
    let is_stepped = matches!(policy.trimming, Trimming::Steps { .. });
    policy.summary.is_some() || is_stepped || Counts::are_kept_of(&*options.counter)
}

/// So many of the newest messages, those that do not decode told of.
pub(super) fn newest(limit: usize) -> MessageQuery {
    MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::newest(limit) }
}

/// How many messages a context by this policy looks at.
pub(super) fn reach(policy: &ContextPolicy) -> usize {
    let window = policy.window.unwrap_or(limits::PAGE);
    let considered = policy.pruning.map_or(window, |pruning| pruning.consider.max(window));
    match policy.summary {
        Some(_) if considered < limits::PAGE => (considered + MARGIN).min(limits::PAGE),
        _ => considered,
    }
}
