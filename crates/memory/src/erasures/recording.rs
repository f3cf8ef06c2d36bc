//! A store that wraps another one and records every erasure in a log before carrying it out.
#![deny(clippy::missing_trait_methods)]

use std::sync::Arc;

use async_trait::async_trait;
use threadkeep_core::{
    Access, Backend, Batch, ChangePage, ChangedThreads, ChangesWithMessages, CommitOutcome, DerivedWrite, Message,
    MessagePage, MessageQuery, MessageRef, Namespace, OpenOutcome, OpenThread, Owner, Record, RecordOwner, RecordQuery,
    RecordWrite, Result, Scope, Store, StoreError, StoreExt, TaggedNumber, Thread, ThreadId, ThreadPage, ThreadQuery,
    ThreadRead, ThreadRef, ThreadView, Timestamp, UserCursor, WakeUps, WriteOutcome,
};

use super::{ErasedItem, Erasure, ErasureLog, ErasureReceipt};

/// Records erasures and forwards every call to the inner store.
#[derive(Debug)]
pub(crate) struct RecordingStore {
    inner: Arc<dyn Store>,
    log: Arc<dyn ErasureLog>,
}

impl RecordingStore {
    pub(crate) fn wrap(backend: &Backend, log: Arc<dyn ErasureLog>) -> Backend {
        let inner = Arc::clone(&backend.store);
        Backend { store: Arc::new(Self { inner, log }), ..backend.clone() }
    }

    /// Finds the thread. `None` if it does not exist or the scope must not change it: the inner store then rejects the call.
    async fn find_erasable(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<Option<Thread>> {
        let found = self.inner.find_thread(scope, &ThreadRef::Id(thread), now).await?;
        Ok(found.filter(|thread| scope.access(&thread.owner) == Access::Full))
    }

    /// Withdraws entries if nothing was erased. Keeps them if the outcome is unknown or the thread no longer exists.
    async fn withdraw_if_rejected<T>(&self, receipt: ErasureReceipt, result: Result<T>) -> Result<T> {
        match &result {
            Err(StoreError::NotFound(threadkeep_core::Kind::Thread)) | Ok(_) => {}
            Err(error) if error.maybe_applied() => {}
            Err(_) => self.log.withdraw(receipt).await?,
        }
        result
    }
}

/// Creates the log entries for a batch that results in the change number `change`.
fn batch_erasures(scope: &Scope, thread: ThreadId, batch: &Batch, change: u64) -> Vec<Erasure> {
    let messages = batch.erase.iter().map(|message| ErasedItem::Message { thread, message: *message, change });
    // Deleting Threadkeep's internal records of a thread (journals, locks) is not an erasure.
    let records = batch.delete.iter().filter(|name| is_app(&name.namespace)).map(|name| ErasedItem::Record {
        owner: RecordOwner::Thread(thread),
        namespace: name.namespace.clone(),
        key: name.key.clone(),
        version: change,
    });
    let items = messages.chain(records);
    items.map(|item| Erasure { tenant: scope.tenant_id().clone(), item }).collect()
}

fn is_app(namespace: &Namespace) -> bool {
    matches!(namespace, Namespace::App(_))
}

/// Whether a namespace contains technical data, whose deletion is not an erasure.
fn is_technical(namespace: &Namespace) -> bool {
    matches!(namespace, Namespace::System(name) if name == crate::sweep::NAMESPACE)
}

#[async_trait]
impl Store for RecordingStore {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        if batch.erase.is_empty() && !batch.delete.iter().any(|name| is_app(&name.namespace)) {
            return self.inner.commit(scope, thread, batch, now).await;
        }
        let Some(found) = self.find_erasable(scope, thread, now).await? else {
            return self.inner.commit(scope, thread, batch, now).await;
        };
        let (change, at) = (found.positions.change + 1, now.max(found.updated_at));
        let receipt = self.log.record(batch_erasures(scope, thread, &batch, change), at).await?;
        let outcome = self.inner.commit(scope, thread, batch.clone(), now).await;
        if let Ok(outcome) = &outcome
            && outcome.change > change
        {
            // Others committed between the read and the erasure, so the logged change number is too low.
            self.log.record(batch_erasures(scope, thread, &batch, outcome.change), at).await?;
        }
        self.withdraw_if_rejected(receipt, outcome).await
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        let Some(found) = self.find_erasable(scope, thread, now).await? else {
            return self.inner.delete_thread(scope, thread, now).await;
        };
        let erasure = Erasure { tenant: scope.tenant_id().clone(), item: ErasedItem::Thread(thread) };
        let receipt = self.log.record(vec![erasure], now.max(found.updated_at)).await?;
        let deleted = self.inner.delete_thread(scope, thread, now).await;
        self.withdraw_if_rejected(receipt, deleted).await
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        let owner = match &write.owner {
            RecordOwner::User(user) => Owner::User(user.clone()),
            _ => Owner::Tenant,
        };
        if write.value.is_some() || is_technical(&write.namespace) || scope.access(&owner) != Access::Full {
            return self.inner.write_record(scope, write, now).await;
        }
        let RecordWrite { owner, namespace, key, .. } = &write;
        let Some(found) = self.inner.find_record(scope, owner, namespace, key, now).await? else {
            return self.inner.write_record(scope, write, now).await;
        };
        let (owner, namespace, key) = (owner.clone(), namespace.clone(), key.clone());
        let item = ErasedItem::Record { owner, namespace, key, version: found.version };
        let receipt = self.log.record(vec![Erasure { tenant: scope.tenant_id().clone(), item }], now).await?;
        let written = self.inner.write_record(scope, write, now).await;
        self.withdraw_if_rejected(receipt, written).await
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        self.inner.open_thread(scope, open, now).await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        self.inner.read_thread(scope, thread, read, now).await
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        self.inner.list_threads(scope, query, now).await
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        self.inner.list_changed_threads(scope, after, limit, now).await
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        self.inner.list_messages(scope, thread, query, now).await
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        self.inner.find_messages(scope, thread, messages, now).await
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        self.inner.list_changes(scope, thread, after, limit, now).await
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        self.inner.list_changes_with_messages(scope, thread, after, limit, now).await
    }

    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        self.inner.find_record(scope, owner, namespace, key, now).await
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        self.inner.list_records(scope, query, now).await
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        self.inner.write_derived(scope, thread, write, now).await
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        self.inner.wake_ups().await
    }

    fn stamp(&self) -> Option<u64> {
        self.inner.stamp()
    }

    fn records_stamp(&self) -> Option<u64> {
        self.inner.records_stamp()
    }
}
