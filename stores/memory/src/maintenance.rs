use async_trait::async_trait;
use threadkeep_core::{
    DrivenThread, Dump, Maintenance, Owner, Record, RecordOwner, Result, Snapshot, StoreError, SweepReport, TenantId,
    ThreadId, Timestamp, VerifyReport,
};

use crate::MemoryStore;
use crate::snapshot::MemorySnapshot;

#[async_trait]
impl Maintenance for MemoryStore {
    async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        self.state().list_tenants(after, limit)
    }

    async fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>> {
        self.state().list_owners(tenant, after, limit)
    }

    async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>> {
        self.state().list_driven_threads(after, limit, now)
    }

    async fn dump_thread(&self, tenant: &TenantId, thread: ThreadId, after: Option<u64>, limit: usize) -> Result<Dump> {
        self.state().dump_thread(tenant, thread, after, limit)
    }

    /// Copies the whole state, which is simple rather than fast.
    async fn snapshot(&self, now: Timestamp) -> Result<Box<dyn Snapshot>> {
        let state = self.state().clone();
        Ok(Box::new(MemorySnapshot::new(state, now)))
    }

    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        let wake_up = self.state().restore_thread(tenant, thread, chunk)?;
        self.send_wake_up(wake_up);
        Ok(())
    }

    async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: Record) -> Result<()> {
        self.state().restore_record(tenant, owner, record)
    }

    async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        Ok(self.state().sweep(now))
    }

    async fn verify(&self) -> Result<VerifyReport> {
        Ok(self.state().verify())
    }

    /// Does nothing: derived data is updated by every write.
    async fn repair(&self, _now: Timestamp) -> Result<()> {
        Ok(())
    }

    async fn compact(&self) -> Result<()> {
        Err(StoreError::Unsupported("compaction"))
    }
}
