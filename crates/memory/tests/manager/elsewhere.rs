//! A store that runs on another runtime, by a clock that goes on while the test's own stands still.
//!
//! What stands still is moved on as soon as a test has nothing to do but wait, and waiting for a server would look like
//! that. A call that blocks a thread does not.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use threadkeep_core::{
    Backend, Batch, CatchUp, ChangePage, ChangedThreads, ChangesWithMessages, ChunkSize, Collection, CommitOutcome,
    Consistency, DerivedWrite, DrivenThread, Dump, IndexEntry, ListedThread, Maintenance, Message, MessageName,
    MessagePage, MessageQuery, Namespace, OpenThread, Opened, OwnedRecord, Owner, Record, RecordOwner, RecordQuery,
    RecordWrite, Result, Scope, SearchAnswer, SearchIndex, SearchQuery, Snapshot, SnapshotTotals, Store, SweepReport,
    Tagged, TenantId, ThreadId, ThreadName, ThreadPage, ThreadQuery, ThreadRead, ThreadView, Timestamp, UserCursor,
    VerifyReport, WakeUps, WriteOutcome,
};
use tokio::runtime::{Builder, Runtime};

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}

/// Runs on the other runtime, whatever this thread is doing.
pub(crate) fn run<T: Send>(work: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| scope.spawn(|| runtime().block_on(work)).join().unwrap())
}

async fn call<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    tokio::task::spawn_blocking(|| runtime().block_on(work)).await.unwrap()
}

#[derive(Debug)]
struct Elsewhere(Backend);

pub(crate) fn elsewhere(backend: Backend) -> Backend {
    let elsewhere = Arc::new(Elsewhere(backend));
    Backend { store: elsewhere.clone(), maintenance: elsewhere.clone(), search: elsewhere }
}

/// Makes owned copies of the arguments, and calls the port with them over there.
macro_rules! over_there {
    ($self:ident . $port:ident . $method:ident ( $($value:ident $(: $by:tt)?),* )) => {{
        let inner = $self.0.$port.clone();
        $(let $value = $value.to_owned();)*
        call(async move { inner.$method($(over_there!(@ $value $(: $by)?)),*).await }).await
    }};
    (@ $value:ident : &) => { &$value };
    (@ $value:ident) => { $value };
}

#[async_trait]
impl Store for Elsewhere {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        over_there!(self.store.commit(scope: &, thread, batch, now))
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<Opened> {
        over_there!(self.store.open_thread(scope: &, open, now))
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        name: &ThreadName,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        over_there!(self.store.read_thread(scope: &, name: &, read: &, now))
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        over_there!(self.store.list_threads(scope: &, query: &, now))
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
        over_there!(self.store.delete_thread(scope: &, thread, now))
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        over_there!(self.store.list_messages(scope: &, thread, query: &, now))
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        names: &[MessageName],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        over_there!(self.store.find_messages(scope: &, thread, names: &, now))
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: Tagged,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        over_there!(self.store.list_changes(scope: &, thread, after, limit, now))
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: Tagged,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        over_there!(self.store.list_changes_with_messages(scope: &, thread, after, limit, now))
    }

    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        over_there!(self.store.find_record(scope: &, owner: &, namespace: &, key: &, now))
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        over_there!(self.store.list_records(scope: &, query: &, now))
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        over_there!(self.store.write_record(scope: &, write, now))
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        over_there!(self.store.write_derived(scope: &, thread, write, now))
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        over_there!(self.store.wake_ups())
    }

    fn stamp(&self) -> Option<u64> {
        self.0.store.stamp()
    }

    fn records_stamp(&self) -> Option<u64> {
        self.0.store.records_stamp()
    }
}

#[async_trait]
impl SearchIndex for Elsewhere {
    async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer> {
        over_there!(self.search.search(scope: &, query: &, now))
    }

    async fn upsert(&self, scope: &Scope, collection: &Collection, entries: Vec<IndexEntry>) -> Result<()> {
        over_there!(self.search.upsert(scope: &, collection: &, entries))
    }

    async fn remove(&self, scope: &Scope, collection: &Collection, ids: &[String]) -> Result<u64> {
        let (inner, scope, collection, ids) = (self.0.search.clone(), scope.clone(), collection.clone(), ids.to_vec());
        call(async move { inner.remove(&scope, &collection, &ids).await }).await
    }

    async fn remove_collections(&self, scope: &Scope) -> Result<u64> {
        over_there!(self.search.remove_collections(scope: &))
    }

    async fn catch_up(&self, limit: usize) -> Result<CatchUp> {
        over_there!(self.search.catch_up(limit))
    }
}

#[async_trait]
impl Maintenance for Elsewhere {
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
        over_there!(self.maintenance.dump_thread(tenant: &, thread, after, limit))
    }

    async fn snapshot(&self, now: Timestamp) -> Result<Box<dyn Snapshot>> {
        let inner = over_there!(self.maintenance.snapshot(now))?;
        Ok(Box::new(SnapshotElsewhere(Arc::from(inner))))
    }

    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        over_there!(self.maintenance.restore_thread(tenant: &, thread, chunk))
    }

    async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: Record) -> Result<()> {
        over_there!(self.maintenance.restore_record(tenant: &, owner: &, record))
    }

    async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        over_there!(self.maintenance.sweep(now))
    }

    async fn verify(&self) -> Result<VerifyReport> {
        over_there!(self.maintenance.verify())
    }

    async fn repair(&self, now: Timestamp) -> Result<()> {
        over_there!(self.maintenance.repair(now))
    }

    async fn compact(&self) -> Result<()> {
        over_there!(self.maintenance.compact())
    }
}

#[derive(Debug)]
struct SnapshotElsewhere(Arc<dyn Snapshot>);

#[async_trait]
impl Snapshot for SnapshotElsewhere {
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

    async fn dump_threads(&self, places: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>> {
        let (inner, places) = (self.0.clone(), places.to_vec());
        call(async move { inner.dump_threads(&places, after, size).await }).await
    }

    async fn list_records(&self, after: Option<&OwnedRecord>, limit: usize) -> Result<Vec<OwnedRecord>> {
        let (inner, after) = (self.0.clone(), after.cloned());
        call(async move { inner.list_records(after.as_ref(), limit).await }).await
    }
}
