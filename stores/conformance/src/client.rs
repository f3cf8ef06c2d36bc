//! A client of a store that retries failed calls, with the same idempotency key.

use futures::future::BoxFuture;
use threadkeep_core::{
    Backend, Batch, CatchUp, ChangePage, ChangedThreads, ChangesWithMessages, Collection, CommitOutcome, Conflict,
    DerivedWrite, DrivenThread, Dump, IndexEntry, Message, MessagePage, MessageQuery, MessageRef, Namespace,
    OpenOutcome, OpenThread, Owner, Record, RecordOwner, RecordQuery, RecordWrite, Result, Scope, SearchAnswer,
    SearchQuery, Snapshot, StoreError, SweepReport, TaggedNumber, TenantId, Thread, ThreadId, ThreadPage, ThreadQuery,
    ThreadRead, ThreadRef, ThreadView, Timestamp, UserCursor, VerifyReport, WakeUps, WriteOutcome,
};

use crate::tasks::yield_now;

/// The maximum number of attempts of a call. With `FaultyStore`, at most about one call in three fails.
const ATTEMPTS: usize = 60;

#[derive(Clone, Debug)]
pub(crate) struct Client {
    backend: Backend,
}

pub(crate) async fn with_retries<'a, T>(call: impl Fn() -> BoxFuture<'a, Result<T>>) -> Result<T> {
    for _ in 0..ATTEMPTS {
        match call().await {
            Err(error) if error.is_retryable() || error.maybe_applied() => yield_now().await,
            answer => return answer,
        }
    }
    call().await
}

impl Client {
    pub(crate) fn new(backend: Backend) -> Self {
        Self { backend }
    }

    pub(crate) fn backend(&self) -> Backend {
        self.backend.clone()
    }

    pub(crate) async fn commit(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: &Batch,
        now: Timestamp,
    ) -> Result<CommitOutcome> {
        with_retries(|| self.backend.store.commit(scope, thread, batch.clone(), now)).await
    }

    pub(crate) async fn open_thread(&self, scope: &Scope, open: &OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        with_retries(|| self.backend.store.open_thread(scope, open.clone(), now)).await
    }

    pub(crate) async fn find_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        now: Timestamp,
    ) -> Result<Option<Thread>> {
        let view = self.read_thread(scope, thread, &ThreadRead::default(), now).await?;
        Ok(view.map(|view| view.thread))
    }

    pub(crate) async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        with_retries(|| self.backend.store.read_thread(scope, thread, read, now)).await
    }

    pub(crate) async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        with_retries(|| self.backend.store.list_threads(scope, query, now)).await
    }

    pub(crate) async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        with_retries(|| self.backend.store.list_changed_threads(scope, after, limit, now)).await
    }

    pub(crate) async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        with_retries(|| self.backend.store.delete_thread(scope, thread, now)).await
    }

    pub(crate) async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        with_retries(|| self.backend.store.list_messages(scope, thread, query, now)).await
    }

    pub(crate) async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        with_retries(|| self.backend.store.find_messages(scope, thread, messages, now)).await
    }

    pub(crate) async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: impl Into<TaggedNumber>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        let after = after.into();
        with_retries(|| self.backend.store.list_changes(scope, thread, after, limit, now)).await
    }

    pub(crate) async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: impl Into<TaggedNumber>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        let after = after.into();
        with_retries(|| self.backend.store.list_changes_with_messages(scope, thread, after, limit, now)).await
    }

    pub(crate) async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        with_retries(|| self.backend.store.find_record(scope, owner, namespace, key, now)).await
    }

    pub(crate) async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        with_retries(|| self.backend.store.list_records(scope, query, now)).await
    }

    pub(crate) async fn write_record(
        &self,
        scope: &Scope,
        write: &RecordWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        with_retries(|| self.backend.store.write_record(scope, write.clone(), now)).await
    }

    /// Writes a derived record. If a response was lost and the retry finds the record as requested, an earlier attempt
    /// succeeded.
    pub(crate) async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: &DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        let mut may_be_written = false;
        for _ in 0..ATTEMPTS {
            match self.backend.store.write_derived(scope, thread, write.clone(), now).await {
                Err(error) if error.is_retryable() || error.maybe_applied() => may_be_written |= error.maybe_applied(),
                Err(StoreError::Conflict(Conflict::Record { actual: Some(actual), .. }))
                    if may_be_written && actual.number == write.version() =>
                {
                    let (owner, name) = (RecordOwner::Thread(thread), write.name());
                    let found = self.find_record(scope, &owner, &name.namespace, &name.key, now).await?;
                    if found.is_some_and(|found| found.tagged() == actual && found.value == write.value) {
                        return Ok(WriteOutcome { version: actual.number, tag: actual.tag });
                    }
                    let conflict = Conflict::Record { namespace: name.namespace, key: name.key, actual: Some(actual) };
                    return Err(conflict.into());
                }
                answer => return answer,
            }
        }
        panic!("all {ATTEMPTS} attempts failed");
    }

    pub(crate) fn stamp(&self) -> Option<u64> {
        self.backend.store.stamp()
    }

    pub(crate) fn records_stamp(&self) -> Option<u64> {
        self.backend.store.records_stamp()
    }

    pub(crate) async fn wake_ups(&self) -> Result<WakeUps> {
        with_retries(|| self.backend.store.wake_ups()).await
    }

    pub(crate) async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        with_retries(|| self.backend.maintenance.list_tenants(after, limit)).await
    }

    pub(crate) async fn list_owners(
        &self,
        tenant: &TenantId,
        after: Option<&Owner>,
        limit: usize,
    ) -> Result<Vec<Owner>> {
        with_retries(|| self.backend.maintenance.list_owners(tenant, after, limit)).await
    }

    pub(crate) async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>> {
        with_retries(|| self.backend.maintenance.list_driven_threads(after, limit, now)).await
    }

    pub(crate) async fn dump_thread(
        &self,
        tenant: &TenantId,
        thread: ThreadId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Dump> {
        with_retries(|| self.backend.maintenance.dump_thread(tenant, thread, after, limit)).await
    }

    pub(crate) async fn snapshot(&self, now: Timestamp) -> Result<Box<dyn Snapshot>> {
        with_retries(|| self.backend.maintenance.snapshot(now)).await
    }

    pub(crate) async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: &Dump) -> Result<()> {
        with_retries(|| self.backend.maintenance.restore_thread(tenant, thread, chunk.clone())).await
    }

    pub(crate) async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: &Record) -> Result<()> {
        with_retries(|| self.backend.maintenance.restore_record(tenant, owner, record.clone())).await
    }

    pub(crate) async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        with_retries(|| self.backend.maintenance.sweep(now)).await
    }

    pub(crate) async fn verify(&self) -> Result<VerifyReport> {
        with_retries(|| self.backend.maintenance.verify()).await
    }

    pub(crate) async fn repair(&self, now: Timestamp) -> Result<()> {
        with_retries(|| self.backend.maintenance.repair(now)).await
    }

    pub(crate) async fn compact(&self) -> Result<()> {
        with_retries(|| self.backend.maintenance.compact()).await
    }

    pub(crate) async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer> {
        with_retries(|| self.backend.search.search(scope, query, now)).await
    }

    pub(crate) async fn upsert(&self, scope: &Scope, collection: &Collection, entries: &[IndexEntry]) -> Result<()> {
        with_retries(|| self.backend.search.upsert(scope, collection, entries.to_vec())).await
    }

    pub(crate) async fn remove(&self, scope: &Scope, collection: &Collection, ids: &[String]) -> Result<u64> {
        with_retries(|| self.backend.search.remove(scope, collection, ids)).await
    }

    pub(crate) async fn remove_collections(&self, scope: &Scope) -> Result<u64> {
        with_retries(|| self.backend.search.remove_collections(scope)).await
    }

    pub(crate) async fn catch_up(&self, limit: usize) -> Result<CatchUp> {
        with_retries(|| self.backend.search.catch_up(limit)).await
    }

    /// Completes the search index, up to the end of the change log.
    pub(crate) async fn catch_up_fully(&self) {
        while !self.catch_up(1000).await.expect("the index catches up").done {}
    }
}
