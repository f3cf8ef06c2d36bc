//! Threads on their way out and in, verbatim.

use std::collections::BTreeSet;

use threadkeep_core::{
    Conflict, DrivenThread, Dump, Kind, Owner, RecordName, Result, StoreError, TenantId, ThreadId, Timestamp, WakeUp,
    limits,
};

use super::records::plain_owner;
use super::{KeptThread, State, Tenant, has_expired};

impl State {
    pub(crate) fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        limits::check_page(limit)?;
        let later = self.tenants.keys().filter(|tenant| after.is_none_or(|after| *tenant > after));
        Ok(later.take(limit).cloned().collect())
    }

    pub(crate) fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>> {
        limits::check_page(limit)?;
        let Some(tenant) = self.tenants.get(tenant) else { return Ok(Vec::new()) };
        let of_threads = tenant.threads.values().map(|kept| kept.row.owner.clone());
        let of_graves = tenant.graves.values().map(|grave| grave.owner.clone());
        let of_records = tenant.records.keys().filter_map(|(owner, ..)| plain_owner(owner));
        let owners: BTreeSet<Owner> =
            [Owner::Tenant].into_iter().chain(of_threads).chain(of_graves).chain(of_records).collect();
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
        let threads = self.tenants.iter().flat_map(|(id, tenant)| tenant.threads.iter().map(move |kept| (id, kept)));
        let driven = threads.filter_map(|(tenant, (thread, kept))| {
            let record = kept.records.get(&name).filter(|record| !has_expired(record.expires_at, now))?;
            let driven = || DrivenThread {
                tenant: tenant.clone(),
                thread: *thread,
                owner: kept.row.owner.clone(),
                record: record.clone(),
            };
            let is_later = after.is_none_or(|after| (tenant, thread) > (&after.tenant, &after.thread));
            (is_later && kept.is_live(now)).then(driven)
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
        let kept = self.tenants.get(tenant).and_then(|tenant| tenant.threads.get(&id));
        let kept = kept.ok_or(StoreError::NotFound(Kind::Thread))?;
        let mut dump = if after.is_none() { kept.dump_head() } else { Dump::default() };
        let mut rest = kept.entries.range(after.map_or(0, |after| after + 1)..).map(|(_, entry)| entry);
        dump.entries = rest.by_ref().take(limit).cloned().collect();
        if rest.next().is_some() {
            dump.next = dump.entries.last().map(threadkeep_core::DumpEntry::seq);
        }
        Ok(dump.with_lost(after.unwrap_or(0), kept.row.positions))
    }

    pub(crate) fn restore_thread(&mut self, tenant_id: &TenantId, id: ThreadId, chunk: Dump) -> Result<Option<WakeUp>> {
        chunk.check()?;
        let stamp = self.stamp + 1;
        if chunk.thread.is_none() && !self.tenants.get(tenant_id).is_some_and(|it| it.unfinished.contains_key(&id)) {
            return Err(StoreError::invalid("dump", "not the first chunk, and no restoration has begun"));
        }
        let tenant = self.tenants.entry(tenant_id.clone()).or_default();
        let Dump { thread, records, commits, entries, next, .. } = chunk;
        if let Some(row) = thread {
            tenant.unfinished.insert(id, KeptThread::new(row, stamp));
        }
        tenant.check_free(id)?;
        let Some(kept) = tenant.unfinished.get_mut(&id) else { return Ok(None) };
        for record in records {
            let name = RecordName { namespace: record.namespace.clone(), key: record.key.clone() };
            kept.records.insert(name, record);
        }
        commits.into_iter().for_each(|commit| kept.insert_commit(commit));
        entries.into_iter().for_each(|entry| kept.insert_entry(entry));
        if next.is_some() {
            return Ok(None);
        }
        let Some(mut kept) = tenant.unfinished.remove(&id) else { return Ok(None) };
        (kept.first_stamp, kept.stamp) = (stamp, stamp);
        let owner = kept.row.owner.clone();
        tenant.threads.insert(id, kept);
        tenant.graves.remove(&id);
        self.stamp = stamp;
        Ok(Some(WakeUp::Thread { tenant: tenant_id.clone(), owner, thread: id, change: None }))
    }
}

impl Tenant {
    /// Checks that neither the id nor the key of an unfinished thread belongs to one that is there.
    fn check_free(&mut self, id: ThreadId) -> Result<()> {
        let row = self.unfinished.get(&id).map(|kept| &kept.row);
        let taken = |kept: &KeptThread| {
            row.is_some_and(|row| row.key.is_some() && row.key == kept.row.key && row.owner == kept.row.owner)
        };
        if self.threads.contains_key(&id) || self.threads.values().any(taken) {
            self.unfinished.remove(&id);
            return Err(Conflict::Thread.into());
        }
        Ok(())
    }
}

impl KeptThread {
    fn dump_head(&self) -> Dump {
        Dump {
            thread: Some(self.row.clone()),
            records: self.records.values().cloned().collect(),
            commits: self.commits.values().cloned().collect(),
            ..Dump::default()
        }
    }
}
