//! What is carried from one context of a thread to the next: derived, and stored as a document of the thread.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use threadkeep_context::{Context, ContextPolicy, Summary, Trimming};
use threadkeep_core::{
    Batch, Conflict, DocumentCondition, DocumentName, DocumentOwner, DocumentState, Expected, JsonText, Namespace,
    Positions, PutDocument, Scope, StoreError, ThreadId, Urgency, limits,
};

use super::counts::Counts;
use crate::retry::repeat_simply;
use crate::{Memory, MemoryError, Result};

/// The document `system/summary` `thread`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Carried {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<Summary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) anchor: Option<u64>,
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    pub(super) counts: Counts,
}

impl Carried {
    /// With what a context changed. What its policy does not use stays for the next one that does.
    pub(super) fn renewed(&self, policy: &ContextPolicy, context: &Context, counts: Option<Counts>) -> Self {
        let mut renewed = self.clone();
        if policy.summary.is_some() {
            renewed.summary.clone_from(&context.summary);
        }
        if matches!(policy.trimming, Trimming::Steps { .. }) {
            renewed.anchor = context.anchor;
        }
        if let Some(counts) = counts {
            renewed.counts = counts;
        }
        renewed
    }
}

impl Carried {
    /// Without what was taken from messages that are gone.
    fn without(&self, is_gone: impl Fn(u64) -> bool) -> Self {
        let summary = self.summary.as_ref().map(|summary| summary.without(|item| is_gone(item.seq)));
        Self { summary, counts: self.counts.without(is_gone), ..self.clone() }
    }
}

impl Memory {
    /// Reads what was carried. What does not decode is derived, and made anew.
    pub(super) async fn find_carried(&self, scope: &Scope, thread: ThreadId) -> Result<Carried> {
        let found = self.find_carried_document(scope, thread).await?;
        Ok(found.and_then(|document| document.value.read().ok()).unwrap_or_default())
    }

    /// Stores what is carried on, unless the thread changed since it was read: then it may hold words of a message that
    /// was erased meanwhile. Failing costs only that the same work is done again.
    pub(super) async fn store_carried(&self, scope: &Scope, thread: ThreadId, carried: &Carried, read_at: Positions) {
        let Ok(value) = JsonText::of(carried) else { return };
        let now = self.now();
        let mut batch = self.minted_batch(now);
        batch.expected = Some(Expected::Change(read_at.change));
        batch.put.push(PutDocument { name: name(), value, expires_at: None });
        // What is derived can be derived again.
        batch.urgency = Urgency::Deferred;
        drop(self.commit_repeatedly(scope, thread, &batch, now).await);
    }

    /// Adds to a batch that takes messages away what takes them out of the summary and the counts too.
    ///
    /// The batch then demands that the summary is the one that was looked at: [`is_about_summary`] tells when it is not.
    pub(crate) async fn scrub_summary(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &mut Batch,
        is_gone: impl Fn(u64) -> bool,
    ) -> Result<()> {
        batch.put.retain(|put| put.name != name());
        batch.delete.retain(|deleted| *deleted != name());
        batch.require.retain(|condition| condition.name != name());
        let found = self.find_carried_document(scope, thread).await?;
        let state = found.as_ref().map_or(DocumentState::Absent, |document| DocumentState::Version(document.version));
        batch.require.push(DocumentCondition { name: name(), state });
        let Some(document) = found else { return Ok(()) };
        let Ok(carried) = document.value.read::<Carried>() else {
            batch.delete.push(name());
            return Ok(());
        };
        let scrubbed = carried.without(is_gone);
        if scrubbed != carried {
            batch.put.push(PutDocument { name: name(), value: JsonText::of(&scrubbed)?, expires_at: None });
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
        let mut seqs = BTreeSet::new();
        for ids in ids.chunks(limits::PAGE) {
            match self.find_by_ids(scope, thread, ids.iter().copied()).await {
                Ok(edited) => seqs.extend(edited.iter().map(|message| message.seq)),
                // Which message does not decode is not told, so nothing of the summary is sure to stay true.
                Err(MemoryError::Store(StoreError::Corrupt { .. })) => {
                    return self.scrub_summary(scope, thread, batch, |_| true).await;
                }
                Err(error) => return Err(error),
            }
        }
        self.scrub_summary(scope, thread, batch, |seq| seq < below || seqs.contains(&seq)).await
    }

    async fn find_carried_document(
        &self,
        scope: &Scope,
        thread: ThreadId,
    ) -> Result<Option<threadkeep_core::Document>> {
        let (owner, DocumentName { namespace, key }, now) = (DocumentOwner::Thread(thread), name(), self.now());
        Ok(repeat_simply(|| self.store().find_document(scope, &owner, &namespace, &key, now)).await?)
    }
}

/// Whether a commit failed because the summary changed since [`Memory::scrub_summary`] looked at it.
pub(crate) fn is_about_summary(error: &MemoryError) -> bool {
    let MemoryError::Store(StoreError::Conflict(Conflict::Document { namespace, key, .. })) = error else {
        return false;
    };
    let name = name();
    *namespace == name.namespace && *key == name.key
}

fn name() -> DocumentName {
    DocumentName { namespace: Namespace::System("summary".to_owned()), key: "thread".to_owned() }
}
