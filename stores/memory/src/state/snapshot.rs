//! The queries that [`crate::snapshot::MemorySnapshot`] makes.

use std::collections::BTreeMap;

use threadkeep_core::{Kind, OwnedRecord, Record, Result, StoreError, TenantId, Thread, ThreadId, Timestamp};

use super::{State, has_expired};

impl State {
    /// Returns the threads of all tenants, by the stamp of their creation.
    pub(crate) fn threads_by_creation(&self, now: Timestamp) -> BTreeMap<u64, (TenantId, ThreadId)> {
        let threads =
            self.tenants.iter().flat_map(|(id, tenant)| tenant.threads.iter().map(move |stored| (id, stored)));
        let live = threads.filter(|(_, (_, stored))| stored.is_live(now));
        live.map(|(tenant, (id, stored))| (stored.first_stamp, (tenant.clone(), *id))).collect()
    }

    pub(crate) fn get_thread(&self, tenant: &TenantId, id: ThreadId) -> Result<Thread> {
        let stored = self.tenants.get(tenant).and_then(|tenant| tenant.threads.get(&id));
        stored.ok_or(StoreError::NotFound(Kind::Thread))?.to_thread(id)
    }

    /// Lists the records of users and tenants, in byte order of tenant, owner and name.
    pub(crate) fn list_owned_records(
        &self,
        after: Option<&OwnedRecord>,
        limit: usize,
        now: Timestamp,
    ) -> Vec<OwnedRecord> {
        let records =
            self.tenants.iter().flat_map(|(id, tenant)| tenant.records.iter().map(move |record| (id, record)));
        let is_later = |tenant: &TenantId, (owner, namespace, key): &(_, _, String)| {
            after.is_none_or(|after| {
                let Record { namespace: after_namespace, key: after_key, .. } = &after.record;
                (tenant, owner, namespace, key) > (&after.tenant, &after.owner, after_namespace, after_key)
            })
        };
        let later =
            records.filter(|(tenant, (name, record))| !has_expired(record.expires_at, now) && is_later(tenant, name));
        let owned = later.map(|(tenant, ((owner, ..), record))| OwnedRecord {
            tenant: tenant.clone(),
            owner: owner.clone(),
            record: record.clone(),
        });
        owned.take(limit).collect()
    }
}
