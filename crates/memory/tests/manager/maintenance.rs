//! A store whose administration fails as it is told, and whose snapshots see something happen while they are read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::BoxFuture;
use threadkeep_core::{
    Backend, ChunkSize, Consistency, DrivenThread, Dump, ListedThread, Maintenance, OwnedRecord, Owner, Reason, Record,
    RecordOwner, Result, Snapshot, SnapshotTotals, StoreError, SweepReport, TenantId, ThreadId, Timestamp,
    VerifyReport,
};

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    /// It is carried out, and the caller does not learn it.
    LostReply,
    /// It is not carried out.
    Full,
}

pub(crate) struct Failing {
    inner: Arc<dyn Maintenance>,
    fates: Mutex<VecDeque<Fate>>,
    meanwhile: Events,
}

type Events = Arc<tokio::sync::Mutex<Vec<BoxFuture<'static, ()>>>>;

impl std::fmt::Debug for Failing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Failing").finish_non_exhaustive()
    }
}

impl Failing {
    /// The writes end so, one after the other; all later ones are done.
    pub(crate) fn over(backend: &Backend, fates: impl IntoIterator<Item = Fate>) -> Backend {
        let fates = Mutex::new(fates.into_iter().collect());
        Self { inner: Arc::clone(&backend.maintenance), fates, meanwhile: Events::default() }.instead_of(backend)
    }

    /// Something happens before each read of a snapshot, the last first, until all has happened.
    pub(crate) fn with_events(backend: &Backend, events: Vec<BoxFuture<'static, ()>>) -> Backend {
        let meanwhile = Arc::new(tokio::sync::Mutex::new(events));
        Self { inner: Arc::clone(&backend.maintenance), fates: Mutex::default(), meanwhile }.instead_of(backend)
    }

    fn instead_of(self, backend: &Backend) -> Backend {
        Backend { maintenance: Arc::new(self), ..backend.clone() }
    }

    async fn write<T>(&self, write: impl Future<Output = Result<T>>) -> Result<T> {
        let fate = self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Done);
        if fate == Fate::Full {
            return Err(StoreError::unavailable(Reason::Full));
        }
        let written = write.await?;
        if fate == Fate::Done {
            return Ok(written);
        }
        Err(StoreError::Unavailable { reason: Reason::Disconnected, maybe_applied: true, source: None })
    }
}

#[async_trait]
impl Maintenance for Failing {
    async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        self.inner.list_tenants(after, limit).await
    }

    async fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>> {
        self.inner.list_owners(tenant, after, limit).await
    }

    async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>> {
        self.inner.list_driven_threads(after, limit, now).await
    }

    async fn dump_thread(&self, tenant: &TenantId, thread: ThreadId, after: Option<u64>, limit: usize) -> Result<Dump> {
        self.inner.dump_thread(tenant, thread, after, limit).await
    }

    async fn snapshot(&self, now: Timestamp) -> Result<Box<dyn Snapshot>> {
        let inner = self.inner.snapshot(now).await?;
        Ok(Box::new(Eventful { inner, meanwhile: Arc::clone(&self.meanwhile) }))
    }

    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        self.write(self.inner.restore_thread(tenant, thread, chunk)).await
    }

    async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: Record) -> Result<()> {
        self.write(self.inner.restore_record(tenant, owner, record)).await
    }

    async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        self.write(self.inner.sweep(now)).await
    }

    async fn verify(&self) -> Result<VerifyReport> {
        self.inner.verify().await
    }

    async fn repair(&self, now: Timestamp) -> Result<()> {
        self.inner.repair(now).await
    }

    async fn compact(&self) -> Result<()> {
        self.inner.compact().await
    }
}

/// A snapshot during whose reading something happens.
struct Eventful {
    inner: Box<dyn Snapshot>,
    meanwhile: Events,
}

impl std::fmt::Debug for Eventful {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Eventful").finish_non_exhaustive()
    }
}

impl Eventful {
    async fn happen(&self) {
        // One after the other, though several threads are read at once.
        let mut events = self.meanwhile.lock().await;
        if let Some(event) = events.pop() {
            event.await;
        }
    }
}

#[async_trait]
impl Snapshot for Eventful {
    fn consistency(&self) -> Consistency {
        self.inner.consistency()
    }

    fn log_growth_bytes(&self) -> Option<u64> {
        self.inner.log_growth_bytes()
    }

    fn unreadable(&self) -> Vec<threadkeep_core::Finding> {
        self.inner.unreadable()
    }

    async fn totals(&self) -> Result<SnapshotTotals> {
        self.inner.totals().await
    }

    async fn list_threads(&self, after: Option<u64>, limit: usize) -> Result<Vec<ListedThread>> {
        self.happen().await;
        self.inner.list_threads(after, limit).await
    }

    async fn dump_threads(&self, places: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>> {
        self.happen().await;
        // A few entries at a time, so that there is an event in the middle of a thread.
        let size = ChunkSize { entries: size.entries.min(20), ..size };
        self.inner.dump_threads(places, after, size).await
    }

    async fn list_records(&self, after: Option<&OwnedRecord>, limit: usize) -> Result<Vec<OwnedRecord>> {
        self.happen().await;
        self.inner.list_records(after, limit).await
    }
}
