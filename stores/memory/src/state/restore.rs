//! Dumps and restores threads verbatim.

use std::collections::BTreeSet;

use threadkeep_core::{
    Conflict, DrivenThread, Dump, Kind, Owner, RecordName, Result, StoreError, TenantId, ThreadId, Timestamp, WakeUp,
    limits,
};

use super::records::to_owner;
use super::{State, StoredThread, Tenant, has_expired};

impl State {
    pub(crate) fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        limits::check_page(limit)?;
        let later = self.tenants.keys().filter(|tenant| after.is_none_or(|after| *tenant > after));
        Ok(later.take(limit).cloned().collect())
    }

    pub(crate) fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>> {
        limits::check_page(limit)?;
        let Some(tenant) = self.tenants.get(tenant) else { return Ok(Vec::new()) };
        let thread_owners = tenant.threads.values().map(|stored| stored.row.owner.clone());
        let deleted_owners = tenant.deleted.values().map(|deleted| deleted.owner.clone());
        let record_owners = tenant.records.keys().filter_map(|(owner, ..)| to_owner(owner));
        let owners: BTreeSet<Owner> =
            [Owner::Tenant].into_iter().chain(thread_owners).chain(deleted_owners).chain(record_owners).collect();
        Ok(owners.into_iter().filter(|owner| after.is_none_or(|after| owner > after)).take(limit).collect())
    }

    pub(crate) fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>> {
        limits::check_page(limit)?;
        let name = RecordName::driver();
        let threads =
            self.tenants.iter().flat_map(|(id, tenant)| tenant.threads.iter().map(move |stored| (id, stored)));
        let driven = threads.filter_map(|(tenant, (thread, stored))| {
            let record = stored.records.get(&name).filter(|record| !has_expired(record.expires_at, now))?;
            let driven = || DrivenThread {
                tenant: tenant.clone(),
                thread: *thread,
                owner: stored.row.owner.clone(),
                record: record.clone(),
            };
            let is_later = after.is_none_or(|after| (tenant, thread) > (&after.tenant, &after.thread));
            (is_later && stored.is_live(now)).then(driven)
        });
        Ok(driven.take(limit).collect())
    }

    pub(crate) fn dump_thread(
        &self,
        tenant: &TenantId,
        id: ThreadId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Dump> {
        limits::check_page(limit)?;
        let stored = self.tenants.get(tenant).and_then(|tenant| tenant.threads.get(&id));
        let stored = stored.ok_or(StoreError::NotFound(Kind::Thread))?;
        let mut dump = if after.is_none() { stored.dump_without_entries() } else { Dump::default() };
        let mut rest = stored.entries.range(after.map_or(0, |after| after + 1)..).map(|(_, entry)| entry);
        dump.entries = rest.by_ref().take(limit).cloned().collect();
        if rest.next().is_some() {
            dump.next = dump.entries.last().map(threadkeep_core::DumpEntry::seq);
        }
        Ok(dump.with_lost(after.unwrap_or(0), stored.row.positions))
    }

    pub(crate) fn restore_thread(&mut self, tenant_id: &TenantId, id: ThreadId, chunk: Dump) -> Result<Option<WakeUp>> {
        chunk.check()?;
        let stamp = self.stamp + 1;
        if chunk.thread.is_none()
            && !self.tenants.get(tenant_id).is_some_and(|tenant| tenant.unfinished.contains_key(&id))
        {
            return Err(StoreError::invalid(
                "dump",
                "the thread's first chunk was not restored; restore the chunks in order",
            ));
        }
        let tenant = self.tenants.entry(tenant_id.clone()).or_default();
        let Dump { thread, records, commits, entries, next, .. } = chunk;
        if let Some(row) = thread {
            tenant.unfinished.insert(id, StoredThread::new(row, stamp));
        }
        tenant.check_unused(id)?;
        let Some(stored) = tenant.unfinished.get_mut(&id) else { return Ok(None) };
        for record in records {
            let name = RecordName { namespace: record.namespace.clone(), key: record.key.clone() };
            stored.records.insert(name, record);
        }
        commits.into_iter().for_each(|commit| stored.insert_commit(commit));
        entries.into_iter().for_each(|entry| stored.insert_entry(entry));
        if next.is_some() {
            return Ok(None);
        }
        let Some(mut stored) = tenant.unfinished.remove(&id) else { return Ok(None) };
        (stored.first_stamp, stored.stamp) = (stamp, stamp);
        let owner = stored.row.owner.clone();
        tenant.threads.insert(id, stored);
        tenant.deleted.remove(&id);
        self.stamp = stamp;
        Ok(Some(WakeUp::Thread { tenant: tenant_id.clone(), owner, thread: id, change: None }))
    }
}

impl Tenant {
    /// Checks that no existing thread has the id or the key of an unfinished thread. If one does, discards the unfinished thread.
    fn check_unused(&mut self, id: ThreadId) -> Result<()> {
        let row = self.unfinished.get(&id).map(|stored| &stored.row);
        let has_same_key = |stored: &StoredThread| {
            row.is_some_and(|row| row.key.is_some() && row.key == stored.row.key && row.owner == stored.row.owner)
        };
        if self.threads.contains_key(&id) || self.threads.values().any(has_same_key) {
            self.unfinished.remove(&id);
            return Err(Conflict::Thread.into());
        }
        Ok(())
    }
}

impl StoredThread {
    fn dump_without_entries(&self) -> Dump {
        Dump {
            thread: Some(self.row.clone()),
            records: self.records.values().cloned().collect(),
            commits: self.commits.values().cloned().collect(),
            ..Dump::default()
        }
    }
}
