//! What is carried from one context of a thread to the next: derived, and stored as a record of the thread.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use threadkeep_context::{Context, ContextPolicy, Summary, Trimming};
use threadkeep_core::{
    Batch, Conflict, DerivedWrite, JsonText, Kind, Namespace, Positions, PutRecord, Record, RecordCondition,
    RecordName, RecordOwner, RecordState, Scope, StoreError, Tagged, ThreadId, ThreadName, ThreadRead, ThreadView,
    limits,
};

use super::counts::Counts;
use crate::retry::repeat_simply;
use crate::tails::Tails;
use crate::{Memory, MemoryError, Result};

/// The derived record `thread` of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Carried {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<Summary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) anchor: Option<u64>,
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub(super) counts: Counts,
    /// How often messages went that the summary covers. A model that was asked before knew words that are gone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) scrubs: u64,
    /// The version of the record that it was read from or written as; `None` where there was none.
    #[serde(skip)]
    pub(super) version: Option<Tagged>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Messages that are erased, replaced or trimmed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gone {
    /// All below this position.
    pub(crate) below: u64,
    /// And those at these.
    pub(crate) seqs: BTreeSet<u64>,
}

impl Gone {
    fn all() -> Self {
        Self { below: u64::MAX, seqs: BTreeSet::new() }
    }

    fn holds(&self, seq: u64) -> bool {
        seq < self.below || self.seqs.contains(&seq)
    }

    fn touches(&self, first_seq: u64, through_seq: u64) -> bool {
        first_seq <= through_seq
            && (first_seq < self.below || self.seqs.range(first_seq..=through_seq).next().is_some())
    }
}

impl Carried {
    /// With what a context changed, if it did. What its policy does not use stays for the next one that does.
    pub(super) fn renewed(&self, policy: &ContextPolicy, context: &Context, counts: Option<Counts>) -> Option<Self> {
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

impl Carried {
    /// Reads a record. What does not decode is derived, and made again.
    fn of(record: Option<Record>) -> Self {
        let version = record.as_ref().map(Record::tagged);
        let carried: Self = record.and_then(|record| record.value.read().ok()).unwrap_or_default();
        Self { version, ..carried }
    }

    /// Without what was taken from messages that are gone.
    fn without(&self, gone: &Gone) -> Self {
        let is_covered = |summary: &Summary| gone.touches(summary.first_seq, summary.through_seq);
        let summary = self.summary.as_ref().map(|summary| {
            let knew = summary.written.as_ref().is_some_and(|text| gone.touches(text.first_seq, text.through_seq));
            let summary = summary.without(|item| gone.holds(item.seq));
            if knew { summary.without_written() } else { summary }
        });
        let scrubs = self.scrubs + u64::from(self.summary.as_ref().is_some_and(is_covered));
        Self { summary, counts: self.counts.without(|seq| gone.holds(seq)), scrubs, ..self.clone() }
    }
}

impl Memory {
    /// Reads what was carried, and at which change.
    pub(super) async fn find_carried(&self, scope: &Scope, thread: ThreadId) -> Result<(Carried, Tagged)> {
        let (of, read) = (ThreadName::Id(thread), ThreadRead { records: vec![name()], ..ThreadRead::default() });
        let now = self.now();
        let view = repeat_simply(self.runtime(), || self.store().read_thread(scope, &of, &read, now)).await?;
        let ThreadView { thread, records, .. } = view.ok_or(StoreError::NotFound(Kind::Thread))?;
        Ok((Carried::of(records.into_iter().next().flatten()), thread.positions.tagged()))
    }

    /// As [`Memory::find_carried`], for a thread that was found to stand here: read once while it stands so, or only changes
    /// in other ways by this manager, where the ends of threads are kept.
    pub(super) async fn carried_at(&self, scope: &Scope, thread: ThreadId, at: Positions) -> Result<Arc<Carried>> {
        let key = (scope.tenant_id().clone(), thread);
        if let Some(held) = self.tails().and_then(|tails| tails.carried(&key, at.change)) {
            return Ok(held);
        }
        let removals = self.tails().map_or(0, Tails::removals);
        let found = self.find_carried_record(scope, thread).await?;
        Ok(self.keep_carried(scope, thread, found, at, removals))
    }

    /// Reads what was carried from its record, and keeps it where the ends of threads are kept. The thread was found to
    /// stand here before or when the record was read.
    pub(super) fn keep_carried(
        &self,
        scope: &Scope,
        thread: ThreadId,
        found: Option<Record>,
        at: Positions,
        removals: u64,
    ) -> Arc<Carried> {
        let bytes = found.as_ref().map_or(0, |record| record.value.as_str().len());
        let carried = Arc::new(Carried::of(found));
        if let Some(tails) = self.tails() {
            let key = (scope.tenant_id().clone(), thread);
            tails.keep_carried(&key, at.change, &carried, bytes + size_of::<Carried>(), removals);
        }
        carried
    }

    /// Stores what is carried on, unless the thread changed since it was read: then it may hold words of a message that
    /// was erased meanwhile. Failing costs only that the same work is done again.
    pub(super) async fn store_carried(&self, scope: &Scope, thread: ThreadId, carried: Carried, read_at: Positions) {
        drop(self.write_carried(scope, thread, carried, read_at.tagged()).await);
    }

    /// Writes what is carried on, derived at this change from what was carried at its version.
    pub(super) async fn write_carried(
        &self,
        scope: &Scope,
        thread: ThreadId,
        carried: Carried,
        at_change: Tagged,
    ) -> Result<()> {
        let RecordName { key, .. } = name();
        let (value, expected) = (JsonText::of(&carried)?, carried.version);
        let bytes = value.as_str().len() + size_of::<Carried>();
        let write = DerivedWrite { key, at_change, expected, value };
        let (now, removals) = (self.now(), self.tails().map_or(0, Tails::removals));
        let written =
            repeat_simply(self.runtime(), || self.store().write_derived(scope, thread, write.clone(), now)).await;
        if let Some(tails) = self.tails() {
            let held_as = (scope.tenant_id().clone(), thread);
            match &written {
                // Nothing was written, and nobody was first.
                Err(StoreError::Denied(_)) => {}
                Err(_) => tails.forget_carried(&held_as),
                Ok(written) => {
                    tails.forget_carried(&held_as);
                    let carried = Arc::new(Carried { version: Some(written.tagged()), ..carried });
                    tails.keep_carried(&held_as, at_change.number, &carried, bytes, removals);
                }
            }
        }
        Ok(written.map(drop)?)
    }

    /// Adds to a batch that takes messages away what takes them out of the summary and the counts too.
    ///
    /// The batch then demands that the summary is the one that was looked at: [`is_about_summary`] tells when it is not.
    pub(crate) async fn scrub_summary(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &mut Batch,
        gone: &Gone,
    ) -> Result<()> {
        batch.put.retain(|put| put.name != name());
        batch.delete.retain(|deleted| *deleted != name());
        batch.require.retain(|condition| condition.name != name());
        let found = self.find_carried_record(scope, thread).await?;
        let state = found.as_ref().map_or(RecordState::Absent, |record| RecordState::Version(record.tagged()));
        batch.require.push(RecordCondition { name: name(), state });
        let Some(record) = found else { return Ok(()) };
        let Ok(carried) = record.value.read::<Carried>() else {
            batch.delete.push(name());
            return Ok(());
        };
        let scrubbed = carried.without(gone);
        if scrubbed != carried {
            batch.put.push(PutRecord { name: name(), value: JsonText::of(&scrubbed)?, expires_at: None });
        }
        Ok(())
    }

    /// Scrubs what was taken from the messages that a batch erases, replaces or trims. A batch that takes nothing away stays
    /// as it is.
    pub(crate) async fn scrub_what_goes(&self, scope: &Scope, thread: ThreadId, batch: &mut Batch) -> Result<()> {
        let ids: Vec<_> = batch.erase.iter().copied().chain(batch.replace.iter().map(|replace| replace.id)).collect();
        let below = batch.trim_below.unwrap_or(0);
        if ids.is_empty() && below == 0 {
            return Ok(());
        }
        let mut gone = Gone { below, seqs: BTreeSet::new() };
        for ids in ids.chunks(limits::PAGE) {
            match self.find_by_ids(scope, thread, ids.iter().copied()).await {
                Ok(edited) => gone.seqs.extend(edited.iter().map(|message| message.seq)),
                // Which message does not decode is not told, so nothing of the summary is sure to stay true.
                Err(MemoryError::Store(StoreError::Corrupt { .. })) => {
                    return self.scrub_summary(scope, thread, batch, &Gone::all()).await;
                }
                Err(error) => return Err(error),
            }
        }
        self.scrub_summary(scope, thread, batch, &gone).await
    }

    async fn find_carried_record(&self, scope: &Scope, thread: ThreadId) -> Result<Option<Record>> {
        let (owner, RecordName { namespace, key }, now) = (RecordOwner::Thread(thread), name(), self.now());
        Ok(repeat_simply(self.runtime(), || self.store().find_record(scope, &owner, &namespace, &key, now)).await?)
    }
}

/// Whether a commit failed because the summary changed since [`Memory::scrub_summary`] looked at it.
pub(crate) fn is_about_summary(error: &MemoryError) -> bool {
    let MemoryError::Store(StoreError::Conflict(Conflict::Record { namespace, key, .. })) = error else {
        return false;
    };
    let name = name();
    *namespace == name.namespace && *key == name.key
}

/// Whether a commit writes what is carried.
pub(crate) fn touches_carried(batch: &Batch) -> bool {
    let name = name();
    batch.put.iter().any(|put| put.name == name) || batch.delete.contains(&name)
}

pub(super) fn name() -> RecordName {
    RecordName { namespace: Namespace::derived(), key: "thread".to_owned() }
}
