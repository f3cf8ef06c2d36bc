//! Building batches: several changes to a thread in one commit.

use threadkeep_core::{
    Batch, Expected, IdempotencyKey, MessageId, PutRecord, RecordCondition, RecordName, RecordState, Replacement,
    Result as StoreResult, Scope, SyncPolicy, ThreadId, ThreadPatch, Timestamp,
};

use crate::fingerprint::{FOR_GENERATED_KEYS, Request};
use crate::{Appended, Draft, Memory, Result, Retention};

impl Memory {
    /// Starts a batch with a new idempotency key.
    #[must_use]
    pub fn batch(&self) -> BatchBuilder {
        let now = self.now();
        BatchBuilder {
            memory: self.clone(),
            batch: self.new_batch(now),
            request: Request::default(),
            invalid: None,
            now,
            retention: self.options().retention,
        }
    }

    /// Commits a finished batch, retrying transient failures with the same key.
    ///
    /// Unlike [`BatchBuilder::commit`], neither gives the thread a title nor trims it.
    ///
    /// # Errors
    /// The same as for [`Memory::append_all`], and `Conflict` if a condition of the batch is not met.
    pub async fn commit(&self, scope: &Scope, thread: ThreadId, batch: &Batch) -> Result<Appended> {
        self.commit_with_retries(scope, thread, batch, self.now()).await
    }
}

/// Builds a batch. Created by [`Memory::batch`], finished by [`BatchBuilder::commit`].
#[derive(Debug)]
pub struct BatchBuilder {
    memory: Memory,
    batch: Batch,
    request: Request,
    invalid: Option<threadkeep_core::StoreError>,
    now: Timestamp,
    retention: Option<Retention>,
}

impl BatchBuilder {
    /// Identifies repeated requests for seven days, so that only one takes effect.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.batch.key = IdempotencyKey::FromCaller(key.into());
        self
    }

    /// Requires the thread to be at a position or change.
    #[must_use]
    pub fn expect(mut self, expected: Expected) -> Self {
        self.batch.expected = Some(expected);
        self
    }

    /// Requires a record of the thread to be absent or to have a certain version.
    #[must_use]
    pub fn require(mut self, name: RecordName, state: RecordState) -> Self {
        self.batch.require.push(RecordCondition { name, state });
        self
    }

    /// Appends a message.
    #[must_use]
    pub fn append(mut self, draft: impl Into<Draft>) -> Self {
        let draft = draft.into();
        if let Err(error) = self.request.append(&draft) {
            self.invalid.get_or_insert(error);
        }
        self.batch.append.push(draft.into_message(&self.memory, self.now));
        self
    }

    /// Replaces the content of a message.
    #[must_use]
    pub fn replace(mut self, replacement: Replacement) -> Self {
        self.batch.replace.push(replacement);
        self
    }

    /// Erases a message. Unlike [`Memory::erase_messages`], keeps a title that was made from the message.
    #[must_use]
    pub fn erase(mut self, id: MessageId) -> Self {
        self.batch.erase.push(id);
        self
    }

    /// Writes a record of the thread.
    #[must_use]
    pub fn put(mut self, put: PutRecord) -> Self {
        self.batch.put.push(put);
        self
    }

    /// Deletes a record of the thread.
    #[must_use]
    pub fn delete(mut self, name: RecordName) -> Self {
        self.batch.delete.push(name);
        self
    }

    /// Changes the thread's title, metadata, state or expiry.
    #[must_use]
    pub fn patch(mut self, patch: ThreadPatch) -> Self {
        self.batch.patch = patch;
        self
    }

    /// Allows the store to sync the batch to disk together with a later commit ([`SyncPolicy::Deferred`]).
    #[must_use]
    pub fn deferred(mut self) -> Self {
        self.batch.sync_policy = SyncPolicy::Deferred;
        self
    }

    /// Sets the retention policy of the thread, instead of [`MemoryOptions::retention`](crate::MemoryOptions::retention).
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Ignores the retention policy's maximum number of messages. The policy's maximum age still applies.
    #[must_use]
    pub fn skip_trimming(mut self) -> Self {
        if let Some(retention) = &mut self.retention {
            retention.max_messages = None;
        }
        self
    }

    /// Validates the batch without calling the store.
    ///
    /// # Errors
    /// `Invalid` and `LimitExceeded`, as in [`Memory::commit`].
    pub fn check(self) -> Result<()> {
        if let Some(error) = self.invalid {
            return Err(error.into());
        }
        self.batch.encode()?;
        Ok(())
    }

    /// Commits the batch after adding the title and the trimming that its messages require.
    ///
    /// # Errors
    /// The same as for [`Memory::commit`].
    pub async fn commit(self, scope: &Scope, thread: ThreadId) -> Result<Appended> {
        let Self { memory, mut batch, request, invalid, now, retention } = self;
        if let Some(error) = invalid {
            return Err(error.into());
        }
        if let Some(retention) = &retention {
            retention.check()?;
        }
        batch.fingerprint = fingerprint(&batch, request)?;
        memory.commit_by_policy(scope, thread, batch, retention, now).await
    }
}

fn fingerprint(batch: &Batch, request: Request) -> StoreResult<threadkeep_core::Fingerprint> {
    match batch.key {
        IdempotencyKey::Generated(_) => Ok(FOR_GENERATED_KEYS),
        IdempotencyKey::FromCaller(_) => request.finish(batch),
    }
}
