//! Iteration over the current content of a store, page by page.

use threadkeep_core::{
    Owner, Record, RecordOwner, RecordQuery, Result, Scope, TenantId, Thread, ThreadOrder, ThreadQuery, Timestamp,
    limits,
};

use crate::Memory;
use crate::retry::retry;

/// Number of threads per page.
const THREADS: usize = 200;

/// Lists all tenants.
pub(super) async fn tenants(memory: &Memory) -> Result<Vec<TenantId>> {
    let mut tenants: Vec<TenantId> = Vec::new();
    loop {
        let page = retry(memory.runtime(), || memory.maintenance().list_tenants(tenants.last(), limits::PAGE)).await?;
        if page.is_empty() {
            return Ok(tenants);
        }
        tenants.extend(page);
    }
}

/// The threads of a tenant, in the order of their creation.
pub(super) struct Threads<'a> {
    memory: &'a Memory,
    scope: Scope,
    now: Timestamp,
    query: Option<ThreadQuery>,
}

impl<'a> Threads<'a> {
    pub(super) fn of(memory: &'a Memory, tenant: &TenantId, now: Timestamp) -> Self {
        Self::of_scope(memory, Scope::Tenant(tenant.clone()), now)
    }

    /// The threads to which a scope has full access.
    pub(super) fn of_scope(memory: &'a Memory, scope: Scope, now: Timestamp) -> Self {
        let query = Some(ThreadQuery::new(ThreadOrder::Created, THREADS));
        Self { memory, scope, now, query }
    }

    pub(super) async fn next_page(&mut self) -> Result<Option<Vec<Thread>>> {
        let Some(mut query) = self.query.take() else { return Ok(None) };
        let page =
            retry(self.memory.runtime(), || self.memory.store().list_threads(&self.scope, &query, self.now)).await?;
        if let Some(next) = page.next {
            query.after = Some(next);
            self.query = Some(query);
        }
        Ok(Some(page.threads))
    }
}

/// The records of a tenant and of its users.
pub(super) struct Records<'a> {
    memory: &'a Memory,
    tenant: TenantId,
    now: Timestamp,
    last_owner: Option<Owner>,
    owners: std::vec::IntoIter<Owner>,
    query: Option<RecordQuery>,
}

impl<'a> Records<'a> {
    pub(super) fn of(memory: &'a Memory, tenant: &TenantId, now: Timestamp) -> Self {
        let owners = Vec::new().into_iter();
        Self { memory, tenant: tenant.clone(), now, last_owner: None, owners, query: None }
    }

    /// Reads the next page, with records of one owner; `None` after the last one.
    pub(super) async fn next_page(&mut self) -> Result<Option<(RecordOwner, Vec<Record>)>> {
        loop {
            if let Some(query) = self.query.take() {
                return self.read(query).await.map(Some);
            }
            match self.next_owner().await? {
                Some(owner) => self.query = Some(RecordQuery::of(owner)),
                None => return Ok(None),
            }
        }
    }

    async fn read(&mut self, mut query: RecordQuery) -> Result<(RecordOwner, Vec<Record>)> {
        let (scope, owner) = (Scope::Tenant(self.tenant.clone()), query.owner.clone());
        let page = retry(self.memory.runtime(), || self.memory.store().list_records(&scope, &query, self.now)).await?;
        if page.len() == query.limit {
            query.after = page.last().map(|last| (last.namespace.clone(), last.key.clone()));
            self.query = Some(query);
        }
        Ok((owner, page))
    }

    async fn next_owner(&mut self) -> Result<Option<RecordOwner>> {
        if self.owners.len() == 0 {
            let after = self.last_owner.take();
            let list = || self.memory.maintenance().list_owners(&self.tenant, after.as_ref(), limits::PAGE);
            self.owners = retry(self.memory.runtime(), list).await?.into_iter();
        }
        let owner = self.owners.next();
        self.last_owner.clone_from(&owner);
        Ok(owner.map(|owner| match owner {
            Owner::Tenant => RecordOwner::Tenant,
            Owner::User(user) => RecordOwner::User(user),
        }))
    }
}
