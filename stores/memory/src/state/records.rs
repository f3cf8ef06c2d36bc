//! Records of threads, users and tenants.

use threadkeep_core::{
    Access, Conflict, DerivedWrite, Kind, Namespace, Owner, Record, RecordName, RecordOwner, RecordQuery, RecordWrite,
    Result, Scope, StoreError, TaggedNumber, ThreadId, Timestamp, WriteOutcome,
};

use super::{State, Tenant, has_expired};

impl State {
    pub(crate) fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Option<Record> {
        let record = match owner {
            RecordOwner::Thread(thread) => {
                let name = RecordName { namespace: namespace.clone(), key: key.to_owned() };
                self.find_live(scope, *thread, now).ok()?.0.live_record(&name, now)
            }
            RecordOwner::User(_) | RecordOwner::Tenant => {
                let tenant = self.tenants.get(scope.tenant_id()).filter(|_| can_read(scope, owner))?;
                tenant.live_record(owner, namespace, key, now)
            }
        };
        record.cloned()
    }

    pub(crate) fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        query.check()?;
        let all: Vec<&Record> = match &query.owner {
            RecordOwner::Thread(thread) => match self.find_live(scope, *thread, now) {
                Ok((stored, _)) => stored.records.values().collect(),
                Err(_) => Vec::new(),
            },
            owner if can_read(scope, owner) => {
                let tenant = self.tenants.get(scope.tenant_id());
                let records = tenant.into_iter().flat_map(|tenant| &tenant.records);
                records.filter(|((record_owner, ..), _)| record_owner == owner).map(|(_, record)| record).collect()
            }
            _ => Vec::new(),
        };
        let matching = all.into_iter().filter(|record| {
            !has_expired(record.expires_at, now)
                && query.namespace.as_ref().is_none_or(|namespace| *namespace == record.namespace)
                && record.key.starts_with(&query.key_prefix)
                && query
                    .after
                    .as_ref()
                    .is_none_or(|(namespace, key)| (&record.namespace, &record.key) > (namespace, key))
        });
        Ok(matching.take(query.limit).cloned().collect())
    }

    pub(crate) fn write_record(&mut self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        write.check()?;
        check_write_access(scope, &write.owner)?;
        let tenant = self.tenants.entry(scope.tenant_id().clone()).or_default();
        let actual = tenant.live_record(&write.owner, &write.namespace, &write.key, now).map(|found| found.version);
        let RecordWrite { owner, namespace, key, expected, value, expires_at } = write;
        if expected.is_some_and(|expected| expected != actual.unwrap_or(0)) {
            let actual = actual.map(TaggedNumber::from);
            return Err(Conflict::Record { namespace, key, actual }.into());
        }
        let name = (owner, namespace.clone(), key.clone());
        let Some(value) = value else {
            tenant.records.remove(&name);
            return Ok(WriteOutcome { version: 0, tag: None });
        };
        self.record_version += 1;
        let version = self.record_version;
        tenant.records.insert(name, Record { namespace, key, value, version, tag: None, expires_at });
        Ok(WriteOutcome { version, tag: None })
    }

    pub(crate) fn write_derived(
        &mut self,
        scope: &Scope,
        id: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        write.check()?;
        let (stored, access) = self.find_live(scope, id, now)?;
        if access < Access::Full {
            return Err(StoreError::Denied("changing a shared thread other than by adding messages"));
        }
        let (name, version) = (write.name(), write.version());
        let actual = stored.live_record(&name, now).map(Record::tagged);
        let positions = stored.row.positions;
        write.check_against(positions, actual)?;
        let stored = self.tenants.get_mut(scope.tenant_id()).and_then(|tenant| tenant.threads.get_mut(&id));
        let stored = stored.ok_or(StoreError::NotFound(Kind::Thread))?;
        let RecordName { namespace, key } = name.clone();
        let record = Record { namespace, key, value: write.value, version, tag: positions.tag, expires_at: None };
        stored.records.insert(name, record);
        Ok(WriteOutcome { version, tag: positions.tag })
    }

    pub(crate) fn restore_record(
        &mut self,
        tenant: &threadkeep_core::TenantId,
        owner: &RecordOwner,
        record: Record,
    ) -> Result<()> {
        if matches!(owner, RecordOwner::Thread(_)) {
            return Err(StoreError::invalid("record owner", "a thread's records are restored with the thread"));
        }
        // Later writes must not reuse a version of the source store.
        self.record_version = self.record_version.max(record.version);
        let name = (owner.clone(), record.namespace.clone(), record.key.clone());
        self.tenants.entry(tenant.clone()).or_default().records.insert(name, record);
        Ok(())
    }
}

impl Tenant {
    fn live_record(&self, owner: &RecordOwner, namespace: &Namespace, key: &str, now: Timestamp) -> Option<&Record> {
        let found = self.records.get(&(owner.clone(), namespace.clone(), key.to_owned()));
        found.filter(|record| !has_expired(record.expires_at, now))
    }
}

/// Converts to an [`Owner`], for access checks; `None` for a thread.
pub(super) fn to_owner(owner: &RecordOwner) -> Option<Owner> {
    match owner {
        RecordOwner::User(user) => Some(Owner::User(user.clone())),
        RecordOwner::Tenant => Some(Owner::Tenant),
        RecordOwner::Thread(_) => None,
    }
}

fn can_read(scope: &Scope, owner: &RecordOwner) -> bool {
    to_owner(owner).is_some_and(|owner| scope.access(&owner) != Access::None)
}

fn check_write_access(scope: &Scope, owner: &RecordOwner) -> Result<()> {
    match to_owner(owner).map_or(Access::None, |owner| scope.access(&owner)) {
        Access::Full => Ok(()),
        Access::Append => Err(StoreError::Denied("writing the tenant's records")),
        Access::None => Err(StoreError::NotFound(Kind::Record)),
    }
}
