use async_trait::async_trait;
use threadkeep_core::{
    DrivenThread, Dump, Maintenance, Owner, Record, RecordOwner, Result, Snapshot, StoreError, SweepReport, SyncPolicy,
    TenantId, ThreadId, Timestamp, VerifyReport,
};

use crate::snapshot::IndexedDbSnapshot;
use crate::{IndexedDbStore, cleaning, dump, records};

#[async_trait]
impl Maintenance for IndexedDbStore {
    async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        let after = after.cloned();
        self.read(async move |transaction| dump::list_tenants(transaction, after.as_ref(), limit).await).await
    }

    async fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>> {
        let (tenant, after) = (tenant.clone(), after.cloned());
        self.read(async move |transaction| dump::list_owners(transaction, &tenant, after.as_ref(), limit).await).await
    }

    async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>> {
        let after = after.cloned();
        self.read(async move |transaction| dump::list_driven_threads(transaction, after.as_ref(), limit, now).await)
            .await
    }

    async fn dump_thread(&self, tenant: &TenantId, thread: ThreadId, after: Option<u64>, limit: usize) -> Result<Dump> {
        let tenant = tenant.clone();
        self.read(async move |transaction| dump::dump_thread(transaction, &tenant, thread, after, limit).await).await
    }

    /// Copies all rows into memory.
    async fn snapshot(&self, now: Timestamp) -> Result<Box<dyn Snapshot>> {
        let snapshot = self.read(async move |transaction| IndexedDbSnapshot::take(transaction, now).await).await?;
        Ok(Box::new(snapshot))
    }

    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        chunk.check()?;
        let tenant = tenant.clone();
        let is_accepted = self
            .write(SyncPolicy::Now, async move |transaction| {
                dump::restore_thread(transaction, &tenant, thread, chunk).await
            })
            .await?;
        if is_accepted { Ok(()) } else { Err(dump::refusal()) }
    }

    async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: Record) -> Result<()> {
        let (tenant, owner) = (tenant.clone(), owner.clone());
        self.write(SyncPolicy::Now, async move |transaction| {
            records::restore_record(transaction, &tenant, &owner, record).await
        })
        .await
    }

    async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        self.call(async move |connection| cleaning::sweep(&connection.database, now).await).await
    }

    async fn verify(&self) -> Result<VerifyReport> {
        self.call(async move |connection| cleaning::verify(&connection.database).await).await
    }

    async fn repair(&self, _now: Timestamp) -> Result<()> {
        self.call(async move |connection| cleaning::repair(&connection.database).await).await
    }

    async fn compact(&self) -> Result<()> {
        Err(StoreError::Unsupported("compaction"))
    }
}
