use std::sync::Arc;

use async_trait::async_trait;
use threadkeep_core::{
    DrivenThread, Dump, Maintenance, Owner, Record, RecordOwner, Result, Snapshot, StoreDurability, SweepReport,
    TenantId, ThreadId, Timestamp, VerifyReport,
};

use super::FaultyStore;
use super::snapshot::FaultySnapshot;

#[async_trait]
impl Maintenance for FaultyStore {
    fn durability(&self) -> Option<StoreDurability> {
        self.inner.maintenance.durability()
    }

    async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        self.maybe_fail()?;
        self.inner.maintenance.list_tenants(after, limit).await
    }

    async fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>> {
        self.maybe_fail()?;
        self.inner.maintenance.list_owners(tenant, after, limit).await
    }

    async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>> {
        self.maybe_fail()?;
        self.inner.maintenance.list_driven_threads(after, limit, now).await
    }

    async fn dump_thread(&self, tenant: &TenantId, thread: ThreadId, after: Option<u64>, limit: usize) -> Result<Dump> {
        self.maybe_fail()?;
        self.inner.maintenance.dump_thread(tenant, thread, after, limit).await
    }

    async fn snapshot(&self, now: Timestamp) -> Result<Box<dyn Snapshot>> {
        self.maybe_fail()?;
        let inner = self.inner.maintenance.snapshot(now).await?;
        Ok(Box::new(FaultySnapshot { inner, random: Arc::clone(&self.random) }))
    }

    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        self.maybe_fail()?;
        self.inner.maintenance.restore_thread(tenant, thread, chunk).await
    }

    async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: Record) -> Result<()> {
        self.maybe_fail()?;
        self.inner.maintenance.restore_record(tenant, owner, record).await
    }

    async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        self.maybe_fail()?;
        self.inner.maintenance.sweep(now).await
    }

    async fn verify(&self) -> Result<VerifyReport> {
        self.maybe_fail()?;
        self.inner.maintenance.verify().await
    }

    async fn repair(&self, now: Timestamp) -> Result<()> {
        self.maybe_fail()?;
        self.inner.maintenance.repair(now).await
    }

    async fn compact(&self) -> Result<()> {
        self.maybe_fail()?;
        self.inner.maintenance.compact().await
    }
}
