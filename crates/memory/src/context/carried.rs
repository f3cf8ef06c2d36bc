//! What is carried from one context of a thread to the next: derived, and stored as a document of the thread.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use threadkeep_context::{Context, ContextPolicy, Summary, SummaryItem, Trimming};
use threadkeep_core::{
    Batch, Conflict, DocumentCondition, DocumentName, DocumentOwner, DocumentState, Expected, JsonText, Namespace,
    Positions, PutDocument, Scope, StoreError, ThreadId, Urgency, limits,
};

use crate::retry::repeat_simply;
use crate::{Memory, MemoryError, Result};

/// The document `system/summary` `thread`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Carried {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<Summary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) anchor: Option<u64>,
}

impl Carried {
    /// With what a context changed. What its policy does not use stays for the next one that does.
    pub(super) fn renewed(&self, policy: &ContextPolicy, context: &Context) -> Self {
        let mut renewed = self.clone();
        if policy.summary.is_some() {
            renewed.summary.clone_from(&context.summary);
        }
        if matches!(policy.trimming, Trimming::Steps { .. }) {
            renewed.anchor = context.anchor;
        }
        renewed
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

    /// Adds to a batch that takes words away what takes them out of the summary too.
    ///
    /// The batch then demands that the summary is the one that was looked at: [`is_about_summary`] tells when it is not.
    pub(crate) async fn scrub_summary(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &mut Batch,
        is_gone: impl Fn(&SummaryItem) -> bool,
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
        if let Some(summary) = carried.summary.filter(|summary| summary.items.iter().any(&is_gone)) {
            let carried = Carried { summary: Some(summary.without(is_gone)), ..carried };
            batch.put.push(PutDocument { name: name(), value: JsonText::of(&carried)?, expires_at: None });
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
        self.scrub_summary(scope, thread, batch, |item| item.seq < below || seqs.contains(&item.seq)).await
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
