//! The context state: data that is carried over from one context of a thread to the next. It is derived data, stored as a
//! record of the thread.
//!
//! Scrubbing the state means removing everything that was derived from erased, replaced or trimmed messages, in the
//! same commit that removes the messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use threadkeep_context::{Context, ContextPolicy, Summary, Trimming};
use threadkeep_core::{
    Batch, Conflict, DerivedWrite, JsonText, Kind, Namespace, Positions, PutRecord, Record, RecordCondition,
    RecordName, RecordOwner, RecordState, Scope, StoreError, TaggedNumber, ThreadId, ThreadRead, ThreadRef, ThreadView,
    limits,
};

use super::token_counts::TokenCounts;
use crate::retry::retry;
use crate::thread_cache::ThreadCache;
use crate::{Memory, MemoryError, Result};

/// A thread's context state, stored in the derived record with the key `thread`: the summary, the anchor from which the
/// history is kept (see [`Trimming::Steps`]), and token counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContextState {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<Summary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) anchor: Option<u64>,
    #[serde(default, skip_serializing_if = "TokenCounts::is_empty")]
    pub(super) counts: TokenCounts,
    /// The number of commits that removed messages covered by the summary. If it has changed since a model started to
    /// write a summary, that summary may quote removed messages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) scrubs: u64,
    /// The version of the record that stores this state; `None` if there is no record.
    #[serde(skip)]
    pub(super) version: Option<TaggedNumber>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Messages that a commit erases, replaces or trims.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemovedMessages {
    /// All messages below this position.
    pub(crate) below: u64,
    /// The messages at these positions.
    pub(crate) seqs: BTreeSet<u64>,
}

impl RemovedMessages {
    fn all() -> Self {
        Self { below: u64::MAX, seqs: BTreeSet::new() }
    }

    fn contains(&self, seq: u64) -> bool {
        seq < self.below || self.seqs.contains(&seq)
    }

    /// Whether a removed message is in a range of positions, inclusive.
    fn overlaps(&self, first_seq: u64, through_seq: u64) -> bool {
        first_seq <= through_seq
            && (first_seq < self.below || self.seqs.range(first_seq..=through_seq).next().is_some())
    }
}

impl ContextState {
    /// The state after assembling a context; `None` if it has not changed. Fields that the policy does not use stay the same.
    pub(super) fn updated(
        &self,
        policy: &ContextPolicy,
        context: &Context,
        counts: Option<TokenCounts>,
    ) -> Option<Self> {
        let summary = policy.summary.and(Some(&context.summary)).filter(|summary| **summary != self.summary);
        let has_anchor = matches!(policy.trimming, Trimming::Steps { .. });
        let anchor = if has_anchor { context.anchor } else { self.anchor };
        let counts = counts.filter(|counts| *counts != self.counts);
        if summary.is_none() && anchor == self.anchor && counts.is_none() {
            return None;
        }
        Some(Self {
            summary: summary.unwrap_or(&self.summary).clone(),
            anchor,
            counts: counts.unwrap_or_else(|| self.counts.clone()),
            scrubs: self.scrubs,
            version: self.version,
        })
    }
}

impl ContextState {
    /// Decodes a record. If the record cannot be decoded, returns an empty state, because its content can be derived again.
    fn of(record: Option<Record>) -> Self {
        let version = record.as_ref().map(Record::tagged);
        let state: Self = record.and_then(|record| record.value.read().ok()).unwrap_or_default();
        Self { version, ..state }
    }

    /// Returns the state without the data that was derived from removed messages.
    fn without(&self, removed: &RemovedMessages) -> Self {
        let is_covered = |summary: &Summary| removed.overlaps(summary.first_seq, summary.through_seq);
        let summary = self.summary.as_ref().map(|summary| {
            let is_text_affected =
                summary.written.as_ref().is_some_and(|text| removed.overlaps(text.first_seq, text.through_seq));
            let summary = summary.without(|item| removed.contains(item.seq));
            if is_text_affected { summary.without_written() } else { summary }
        });
        let scrubs = self.scrubs + u64::from(self.summary.as_ref().is_some_and(is_covered));
        Self { summary, counts: self.counts.without(|seq| removed.contains(seq)), scrubs, ..self.clone() }
    }
}

impl Memory {
    /// Reads the context state, and the thread's change number at that time.
    pub(super) async fn find_context_state(
        &self,
        scope: &Scope,
        thread: ThreadId,
    ) -> Result<(ContextState, TaggedNumber)> {
        let (thread, read) =
            (ThreadRef::Id(thread), ThreadRead { records: vec![context_state_name()], ..ThreadRead::default() });
        let now = self.now();
        let view = retry(self.runtime(), || self.store().read_thread(scope, &thread, &read, now)).await?;
        let ThreadView { thread, records, .. } = view.ok_or(StoreError::NotFound(Kind::Thread))?;
        Ok((ContextState::of(records.into_iter().next().flatten()), thread.positions.tagged()))
    }

    /// Finds the context state in the thread cache or the store. `positions_before`: the thread's positions, as read
    /// before this call.
    pub(super) async fn find_context_state_at(
        &self,
        scope: &Scope,
        thread: ThreadId,
        positions_before: Positions,
    ) -> Result<Arc<ContextState>> {
        let key = (scope.tenant_id().clone(), thread);
        if let Some(cached) = self.thread_cache().and_then(|cache| cache.context_state(&key, positions_before.change)) {
            return Ok(cached);
        }
        let removals = self.thread_cache().map_or(0, ThreadCache::removals);
        let found = self.find_context_state_record(scope, thread).await?;
        Ok(self.cache_context_state(scope, thread, found, positions_before, removals))
    }

    /// Decodes the record of the context state, and caches the state. `positions_before`: the thread's positions, as
    /// read together with the record or before it.
    pub(super) fn cache_context_state(
        &self,
        scope: &Scope,
        thread: ThreadId,
        found: Option<Record>,
        positions_before: Positions,
        removals: u64,
    ) -> Arc<ContextState> {
        let bytes = found.as_ref().map_or(0, |record| record.value.as_str().len());
        let state = Arc::new(ContextState::of(found));
        if let Some(cache) = self.thread_cache() {
            let key = (scope.tenant_id().clone(), thread);
            cache.insert_context_state(
                &key,
                positions_before.change,
                &state,
                bytes + size_of::<ContextState>(),
                removals,
            );
        }
        state
    }

    /// Stores the context state unless the thread has changed since `read_at`, because the state may quote a message
    /// that has been erased in the meantime. A failure is ignored: the next context derives the state again.
    pub(super) async fn store_context_state(
        &self,
        scope: &Scope,
        thread: ThreadId,
        state: ContextState,
        read_at: Positions,
    ) {
        drop(self.write_context_state(scope, thread, state, read_at.tagged()).await);
    }

    /// Writes the context state if the change number of the thread is `at_change` and the record has the version
    /// `state.version`.
    pub(super) async fn write_context_state(
        &self,
        scope: &Scope,
        thread: ThreadId,
        state: ContextState,
        at_change: TaggedNumber,
    ) -> Result<()> {
        let RecordName { key, .. } = context_state_name();
        let (value, expected) = (JsonText::of(&state)?, state.version);
        let bytes = value.as_str().len() + size_of::<ContextState>();
        let write = DerivedWrite { key, at_change, expected, value };
        let (now, removals) = (self.now(), self.thread_cache().map_or(0, ThreadCache::removals));
        let written = retry(self.runtime(), || self.store().write_derived(scope, thread, write.clone(), now)).await;
        if let Some(cache) = self.thread_cache() {
            let key = (scope.tenant_id().clone(), thread);
            match &written {
                // The record is unchanged.
                Err(StoreError::Denied(_)) => {}
                Err(_) => cache.evict_context_state(&key),
                Ok(written) => {
                    cache.evict_context_state(&key);
                    let state = Arc::new(ContextState { version: Some(written.tagged()), ..state });
                    cache.insert_context_state(&key, at_change.number, &state, bytes, removals);
                }
            }
        }
        Ok(written.map(drop)?)
    }

    /// Extends a batch that removes messages so that it also scrubs the context state.
    ///
    /// The batch then requires that the context state has not changed since this call read it. If the state has changed, the
    /// commit fails with a conflict that [`is_context_state_conflict`] recognises.
    pub(crate) async fn scrub_context_state(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &mut Batch,
        removed: &RemovedMessages,
    ) -> Result<()> {
        batch.put.retain(|put| put.name != context_state_name());
        batch.delete.retain(|deleted| *deleted != context_state_name());
        batch.require.retain(|condition| condition.name != context_state_name());
        let found = self.find_context_state_record(scope, thread).await?;
        let required = found.as_ref().map_or(RecordState::Absent, |record| RecordState::Version(record.tagged()));
        batch.require.push(RecordCondition { name: context_state_name(), state: required });
        let Some(record) = found else { return Ok(()) };
        let Ok(state) = record.value.read::<ContextState>() else {
            batch.delete.push(context_state_name());
            return Ok(());
        };
        let scrubbed = state.without(removed);
        if scrubbed != state {
            batch.put.push(PutRecord { name: context_state_name(), value: JsonText::of(&scrubbed)?, expires_at: None });
        }
        Ok(())
    }

    /// Calls [`Memory::scrub_context_state`] for the messages that a batch erases, replaces or trims. Does not change a batch
    /// that removes no messages.
    pub(crate) async fn scrub_removed_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &mut Batch,
    ) -> Result<()> {
        let ids: Vec<_> = batch.erase.iter().copied().chain(batch.replace.iter().map(|replace| replace.id)).collect();
        let below = batch.trim_below.unwrap_or(0);
        if ids.is_empty() && below == 0 {
            return Ok(());
        }
        let mut removed = RemovedMessages { below, seqs: BTreeSet::new() };
        for ids in ids.chunks(limits::PAGE) {
            match self.find_by_ids(scope, thread, ids.iter().copied()).await {
                Ok(affected) => removed.seqs.extend(affected.iter().map(|message| message.seq)),
                // The error does not name the message that cannot be decoded, so any part of the summary may come from it.
                Err(MemoryError::Store(StoreError::Corrupt { .. })) => {
                    return self.scrub_context_state(scope, thread, batch, &RemovedMessages::all()).await;
                }
                Err(error) => return Err(error),
            }
        }
        self.scrub_context_state(scope, thread, batch, &removed).await
    }

    async fn find_context_state_record(&self, scope: &Scope, thread: ThreadId) -> Result<Option<Record>> {
        let (owner, RecordName { namespace, key }, now) =
            (RecordOwner::Thread(thread), context_state_name(), self.now());
        Ok(retry(self.runtime(), || self.store().find_record(scope, &owner, &namespace, &key, now)).await?)
    }
}

/// Whether a commit failed because the context state has changed since [`Memory::scrub_context_state`] read it.
pub(crate) fn is_context_state_conflict(error: &MemoryError) -> bool {
    let MemoryError::Store(StoreError::Conflict(Conflict::Record { namespace, key, .. })) = error else {
        return false;
    };
    let name = context_state_name();
    *namespace == name.namespace && *key == name.key
}

/// Whether a batch writes or deletes the context state.
pub(crate) fn writes_context_state(batch: &Batch) -> bool {
    let name = context_state_name();
    batch.put.iter().any(|put| put.name == name) || batch.delete.contains(&name)
}

/// The name of the record that stores the context state.
pub(super) fn context_state_name() -> RecordName {
    RecordName { namespace: Namespace::derived(), key: "thread".to_owned() }
}
