//! A store wrapper that runs all calls on a separate runtime, whose clock is not paused.
//!
//! Tokio advances a paused clock as soon as all tasks wait, and a task that waits for a server counts as waiting. A call that
//! blocks a thread does not.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use threadkeep_core::{
    Backend, Batch, CatchUp, ChangePage, ChangedThreads, ChangesWithMessages, ChunkSize, Collection, CommitOutcome,
    Consistency, DerivedWrite, DrivenThread, Dump, IndexEntry, ListedThread, Maintenance, Message, MessagePage,
    MessageQuery, MessageRef, Namespace, OpenOutcome, OpenThread, OwnedRecord, Owner, Record, RecordOwner, RecordQuery,
    RecordWrite, Result, Scope, SearchAnswer, SearchIndex, SearchQuery, Snapshot, SnapshotTotals, Store, SweepReport,
    TaggedNumber, TenantId, ThreadId, ThreadPage, ThreadQuery, ThreadRead, ThreadRef, ThreadView, Timestamp,
    UserCursor, VerifyReport, WakeUps, WriteOutcome,
};
use tokio::runtime::{Builder, Runtime};

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}

/// Runs a future on the separate runtime and blocks until it completes.
pub(crate) fn run<T: Send>(work: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| scope.spawn(|| runtime().block_on(work)).join().unwrap())
}

/// Runs a future on the separate runtime, and waits for the result without letting a paused clock advance.
async fn call<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    tokio::task::spawn_blocking(|| runtime().block_on(work)).await.unwrap()
}

#[derive(Debug)]
struct SeparateRuntime(Backend);

/// Wraps a backend so that all calls run on the separate runtime.
pub(crate) fn on_separate_runtime(backend: Backend) -> Backend {
    let separate = Arc::new(SeparateRuntime(backend));
    Backend { store: separate.clone(), maintenance: separate.clone(), search: separate }
}

/// Calls a method on the separate runtime, with owned copies of the arguments.
macro_rules! call_inner {
    ($self:ident . $port:ident . $method:ident ( $($value:ident $(: $by:tt)?),* )) => {{
        let inner = $self.0.$port.clone();
        $(let $value = $value.to_owned();)*
        call(async move { inner.$method($(call_inner!(@ $value $(: $by)?)),*).await }).await
    }};
    (@ $value:ident : &) => { &$value };
    (@ $value:ident) => { $value };
}

#[async_trait]
impl Store for SeparateRuntime {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        call_inner!(self.store.commit(scope: &, thread, batch, now))
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        call_inner!(self.store.open_thread(scope: &, open, now))
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        call_inner!(self.store.read_thread(scope: &, thread: &, read: &, now))
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        call_inner!(self.store.list_threads(scope: &, query: &, now))
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        let (inner, scope, after) = (self.0.store.clone(), scope.clone(), after.cloned());
        call(async move { inner.list_changed_threads(&scope, after.as_ref(), limit, now).await }).await
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        call_inner!(self.store.delete_thread(scope: &, thread, now))
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        call_inner!(self.store.list_messages(scope: &, thread, query: &, now))
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        call_inner!(self.store.find_messages(scope: &, thread, messages: &, now))
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        call_inner!(self.store.list_changes(scope: &, thread, after, limit, now))
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        call_inner!(self.store.list_changes_with_messages(scope: &, thread, after, limit, now))
    }

    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        call_inner!(self.store.find_record(scope: &, owner: &, namespace: &, key: &, now))
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        call_inner!(self.store.list_records(scope: &, query: &, now))
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        call_inner!(self.store.write_record(scope: &, write, now))
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        call_inner!(self.store.write_derived(scope: &, thread, write, now))
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        call_inner!(self.store.wake_ups())
    }

    fn stamp(&self) -> Option<u64> {
        self.0.store.stamp()
    }

    fn records_stamp(&self) -> Option<u64> {
        self.0.store.records_stamp()
    }
}

#[async_trait]
impl SearchIndex for SeparateRuntime {
    async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer> {
        call_inner!(self.search.search(scope: &, query: &, now))
    }

    async fn upsert(&self, scope: &Scope, collection: &Collection, entries: Vec<IndexEntry>) -> Result<()> {
        call_inner!(self.search.upsert(scope: &, collection: &, entries))
    }

    async fn remove(&self, scope: &Scope, collection: &Collection, ids: &[String]) -> Result<u64> {
        let (inner, scope, collection, ids) = (self.0.search.clone(), scope.clone(), collection.clone(), ids.to_vec());
        call(async move { inner.remove(&scope, &collection, &ids).await }).await
    }

    async fn remove_collections(&self, scope: &Scope) -> Result<u64> {
        call_inner!(self.search.remove_collections(scope: &))
    }

    async fn catch_up(&self, limit: usize) -> Result<CatchUp> {
        call_inner!(self.search.catch_up(limit))
    }
}

#[async_trait]
impl Maintenance for SeparateRuntime {
    async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        let (inner, after) = (self.0.maintenance.clone(), after.cloned());
        call(async move { inner.list_tenants(after.as_ref(), limit).await }).await
    }

    async fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>> {
        let (inner, tenant, after) = (self.0.maintenance.clone(), tenant.clone(), after.cloned());
        call(async move { inner.list_owners(&tenant, after.as_ref(), limit).await }).await
    }

    async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>> {
        let (inner, after) = (self.0.maintenance.clone(), after.cloned());
        call(async move { inner.list_driven_threads(after.as_ref(), limit, now).await }).await
    }

    async fn dump_thread(&self, tenant: &TenantId, thread: ThreadId, after: Option<u64>, limit: usize) -> Result<Dump> {
        call_inner!(self.maintenance.dump_thread(tenant: &, thread, after, limit))
    }

    async fn snapshot(&self, now: Timestamp) -> Result<Box<dyn Snapshot>> {
        let inner = call_inner!(self.maintenance.snapshot(now))?;
        Ok(Box::new(SeparateRuntimeSnapshot(Arc::from(inner))))
    }

    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        call_inner!(self.maintenance.restore_thread(tenant: &, thread, chunk))
    }

    async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: Record) -> Result<()> {
        call_inner!(self.maintenance.restore_record(tenant: &, owner: &, record))
    }

    async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        call_inner!(self.maintenance.sweep(now))
    }

    async fn verify(&self) -> Result<VerifyReport> {
        call_inner!(self.maintenance.verify())
    }

    async fn repair(&self, now: Timestamp) -> Result<()> {
        call_inner!(self.maintenance.repair(now))
    }

    async fn compact(&self) -> Result<()> {
        call_inner!(self.maintenance.compact())
    }
}

#[derive(Debug)]
struct SeparateRuntimeSnapshot(Arc<dyn Snapshot>);

#[async_trait]
impl Snapshot for SeparateRuntimeSnapshot {
    fn consistency(&self) -> Consistency {
        self.0.consistency()
    }

    fn log_growth_bytes(&self) -> Option<u64> {
        self.0.log_growth_bytes()
    }

    fn unreadable(&self) -> Vec<threadkeep_core::Finding> {
        self.0.unreadable()
    }

    async fn totals(&self) -> Result<SnapshotTotals> {
        let inner = self.0.clone();
        call(async move { inner.totals().await }).await
    }

    async fn list_threads(&self, after: Option<u64>, limit: usize) -> Result<Vec<ListedThread>> {
        let inner = self.0.clone();
        call(async move { inner.list_threads(after, limit).await }).await
    }

    async fn dump_threads(&self, numbers: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>> {
        let (inner, numbers) = (self.0.clone(), numbers.to_vec());
        call(async move { inner.dump_threads(&numbers, after, size).await }).await
    }

    async fn list_records(&self, after: Option<&OwnedRecord>, limit: usize) -> Result<Vec<OwnedRecord>> {
        let (inner, after) = (self.0.clone(), after.cloned());
        call(async move { inner.list_records(after.as_ref(), limit).await }).await
    }
}
