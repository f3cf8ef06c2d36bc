//! A store wrapper that makes maintenance writes fail as a test specifies, and runs actions while its snapshots are read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::BoxFuture;
use threadkeep_core::{
    Backend, ChunkSize, Consistency, DrivenThread, Dump, ListedThread, Maintenance, OwnedRecord, Owner, Reason, Record,
    RecordOwner, Result, Snapshot, SnapshotTotals, StoreError, SweepReport, TenantId, ThreadId, Timestamp,
    VerifyReport,
};

/// The outcome of a write, as specified by the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    /// The write is executed, but the error does not show whether it was.
    LostResponse,
    /// The write is not executed.
    DiskFull,
}

pub(crate) struct FaultyMaintenance {
    inner: Arc<dyn Maintenance>,
    outcomes: Mutex<VecDeque<Outcome>>,
    actions: PendingActions,
}

/// Actions that have not run yet. The last one runs first.
type PendingActions = Arc<tokio::sync::Mutex<Vec<BoxFuture<'static, ()>>>>;

impl std::fmt::Debug for FaultyMaintenance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyMaintenance").finish_non_exhaustive()
    }
}

impl FaultyMaintenance {
    /// Wraps a backend and sets the outcomes of the first writes, in order. All later writes succeed.
    pub(crate) fn wrap(backend: &Backend, outcomes: impl IntoIterator<Item = Outcome>) -> Backend {
        let outcomes = Mutex::new(outcomes.into_iter().collect());
        Self { inner: Arc::clone(&backend.maintenance), outcomes, actions: PendingActions::default() }
            .install_in(backend)
    }

    /// Wraps a backend and runs one of the actions before each read of a snapshot, beginning with the last action.
    pub(crate) fn with_actions(backend: &Backend, actions: Vec<BoxFuture<'static, ()>>) -> Backend {
        let actions = Arc::new(tokio::sync::Mutex::new(actions));
        Self { inner: Arc::clone(&backend.maintenance), outcomes: Mutex::default(), actions }.install_in(backend)
    }

    /// Returns the backend with this value as its maintenance interface.
    fn install_in(self, backend: &Backend) -> Backend {
        Backend { maintenance: Arc::new(self), ..backend.clone() }
    }

    /// Performs a write with the next specified outcome.
    async fn write_with_outcome<T>(&self, write: impl Future<Output = Result<T>>) -> Result<T> {
        let outcome = self.outcomes.lock().unwrap().pop_front().unwrap_or(Outcome::Success);
        if outcome == Outcome::DiskFull {
            return Err(StoreError::unavailable(Reason::Full));
        }
        let written = write.await?;
        if outcome == Outcome::Success {
            return Ok(written);
        }
        Err(StoreError::Unavailable { reason: Reason::Disconnected, maybe_applied: true, source: None })
    }
}

#[async_trait]
impl Maintenance for FaultyMaintenance {
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
        Ok(Box::new(SnapshotWithActions { inner, actions: Arc::clone(&self.actions) }))
    }

    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        self.write_with_outcome(self.inner.restore_thread(tenant, thread, chunk)).await
    }

    async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: Record) -> Result<()> {
        self.write_with_outcome(self.inner.restore_record(tenant, owner, record)).await
    }

    async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        self.write_with_outcome(self.inner.sweep(now)).await
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

/// A snapshot that runs an action before each read.
struct SnapshotWithActions {
    inner: Box<dyn Snapshot>,
    actions: PendingActions,
}

impl std::fmt::Debug for SnapshotWithActions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotWithActions").finish_non_exhaustive()
    }
}

impl SnapshotWithActions {
    async fn run_next_action(&self) {
        // The lock serialises the actions of concurrent reads.
        let mut actions = self.actions.lock().await;
        if let Some(action) = actions.pop() {
            action.await;
        }
    }
}

#[async_trait]
impl Snapshot for SnapshotWithActions {
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
        self.run_next_action().await;
        self.inner.list_threads(after, limit).await
    }

    async fn dump_threads(&self, numbers: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>> {
        self.run_next_action().await;
        // Small chunks, so that actions also run in the middle of a thread.
        let size = ChunkSize { entries: size.entries.min(20), ..size };
        self.inner.dump_threads(numbers, after, size).await
    }

    async fn list_records(&self, after: Option<&OwnedRecord>, limit: usize) -> Result<Vec<OwnedRecord>> {
        self.run_next_action().await;
        self.inner.list_records(after, limit).await
    }
}
