use async_trait::async_trait;
use threadkeep_core::{
    CatchUp, Collection, DrivenThread, Dump, IndexEntry, Maintenance, Owner, Record, RecordOwner, Result, Scope,
    SearchAnswer, SearchIndex, SearchQuery, Snapshot, StoreDurability, StoreError, SweepReport, TenantId, ThreadId,
    Timestamp, VerifyReport, limits,
};

use crate::RedisStore;

#[async_trait]
impl Maintenance for RedisStore {
    fn durability(&self) -> Option<StoreDurability> {
        let durability = RedisStore::durability(self);
        Some(StoreDurability { description: durability.describe(), is_volatile: durability.is_volatile() })
    }

    async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        self.shared.list_tenants(after, limit).await
    }

    async fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>> {
        self.shared.list_owners(tenant, after, limit).await
    }

    async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>> {
        self.shared.list_driven_threads(after, limit, now).await
    }

    async fn dump_thread(&self, tenant: &TenantId, thread: ThreadId, after: Option<u64>, limit: usize) -> Result<Dump> {
        self.shared.dump_thread(tenant, thread, after, limit).await
    }

    async fn snapshot(&self, now: Timestamp) -> Result<Box<dyn Snapshot>> {
        Ok(Box::new(self.shared.snapshot(now).await?))
    }

    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        self.shared.restore_thread(tenant, thread, chunk).await
    }

    async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: Record) -> Result<()> {
        self.shared.restore_record(tenant, owner, &record).await
    }

    async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        self.shared.sweep(now).await
    }

    async fn verify(&self) -> Result<VerifyReport> {
        self.shared.verify().await
    }

    /// Makes a store usable again after a server has lost its data. Deletes the index and builds it again.
    async fn repair(&self, _now: Timestamp) -> Result<()> {
        self.shared.recover().await?;
        let mut after = None;
        loop {
            let tenants = self.shared.list_tenants(after.as_ref(), limits::PAGE).await?;
            for tenant in &tenants {
                self.shared.rebuild_index(tenant).await?;
                self.shared.catch_up_tenant(tenant, usize::MAX).await?;
            }
            after = tenants.last().cloned();
            if tenants.len() < limits::PAGE {
                return self.shared.note_index_version().await;
            }
        }
    }

    async fn compact(&self) -> Result<()> {
        Err(StoreError::Unsupported("compaction"))
    }
}

#[async_trait]
impl SearchIndex for RedisStore {
    async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer> {
        self.shared.search(scope, query, now).await
    }

    async fn upsert(&self, scope: &Scope, collection: &Collection, entries: Vec<IndexEntry>) -> Result<()> {
        self.shared.upsert(scope, collection, entries).await
    }

    async fn remove(&self, scope: &Scope, collection: &Collection, ids: &[String]) -> Result<u64> {
        self.shared.remove_entries(scope, collection, ids).await
    }

    async fn remove_collections(&self, scope: &Scope) -> Result<u64> {
        self.shared.remove_collections(scope).await
    }

    async fn catch_up(&self, limit: usize) -> Result<CatchUp> {
        self.shared.catch_up(limit).await
    }
}
