use async_trait::async_trait;
use threadkeep_core::{
    DrivenThread, Dump, Maintenance, Owner, Record, RecordOwner, Result, Snapshot, StoreError, SweepReport, TenantId,
    ThreadId, Timestamp, VerifyReport, limits,
};
use tokio_postgres::types::Type;

use crate::pool::{Caller, Parameter};
use crate::row::{self, owner_name, signed};
use crate::snapshot::PostgresSnapshot;
use crate::{PostgresStore, dump, error, records, restore, sweep, verify};

#[async_trait]
impl Maintenance for PostgresStore {
    async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        limits::check_page(limit)?;
        let sql = "SELECT tenant FROM threadkeep.owners WHERE owner = '' AND tenant > $1 ORDER BY tenant LIMIT $2";
        let after = after.map_or("", TenantId::as_str);
        let values: [Parameter<'_>; 2] = [(&after, Type::TEXT), (&signed(limit as u64), Type::INT8)];
        let answers = self.shared.read(&Caller::maintenance(), &[(sql, &values)]).await?;
        verify::read_names(&answers[0])?.into_iter().map(TenantId::from_stored).collect()
    }

    async fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>> {
        limits::check_page(limit)?;
        let sql = "SELECT owner FROM threadkeep.owners WHERE tenant = $1 AND ($2::text IS NULL OR owner > $2) \
                   ORDER BY owner LIMIT $3";
        let values: [Parameter<'_>; 3] =
            [(&tenant.as_str(), Type::TEXT), (&after.map(owner_name), Type::TEXT), (&signed(limit as u64), Type::INT8)];
        let answers = self.shared.read(&Caller::maintenance(), &[(sql, &values)]).await?;
        let owners = verify::read_names(&answers[0])?.iter().map(|name| row::owner(name)).collect::<error::Result<_>>();
        Ok(owners?)
    }

    async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>> {
        limits::check_page(limit)?;
        Ok(records::list_driven_threads(&self.shared, after, limit, now).await?)
    }

    async fn dump_thread(&self, tenant: &TenantId, thread: ThreadId, after: Option<u64>, limit: usize) -> Result<Dump> {
        Ok(dump::dump(&self.shared, tenant, thread, after, limit).await?)
    }

    async fn snapshot(&self, now: Timestamp) -> Result<Box<dyn Snapshot>> {
        Ok(Box::new(PostgresSnapshot::open(&self.shared, now).await?))
    }

    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        restore::thread(&self.shared, tenant, thread, &chunk).await
    }

    async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: Record) -> Result<()> {
        let owner = match owner {
            RecordOwner::Thread(_) => {
                return Err(StoreError::invalid("record owner", "a thread's records are restored with the thread"));
            }
            RecordOwner::User(user) => user.as_str(),
            RecordOwner::Tenant => "",
        };
        restore::record(&self.shared, tenant, owner, &record).await
    }

    async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        sweep::sweep(&self.shared, now).await
    }

    async fn verify(&self) -> Result<VerifyReport> {
        Ok(verify::verify(&self.shared).await?)
    }

    async fn repair(&self, _now: Timestamp) -> Result<()> {
        verify::repair(&self.shared).await
    }

    /// Not supported: only the tables' owner may run VACUUM.
    async fn compact(&self) -> Result<()> {
        Err(StoreError::Unsupported("compaction; the database's operator can run VACUUM"))
    }
}
