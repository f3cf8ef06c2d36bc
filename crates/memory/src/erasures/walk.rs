//! Iterates over the current content of a store, page by page.

use threadkeep_core::{
    Owner, Record, RecordOwner, RecordQuery, Result, Scope, TenantId, Thread, ThreadOrder, ThreadQuery, Timestamp,
    limits,
};

use crate::Memory;
use crate::retry::retry;

/// Maximum number of threads per page.
const THREADS_PER_PAGE: usize = 200;

/// Lists all tenants.
pub(super) async fn list_tenants(memory: &Memory) -> Result<Vec<TenantId>> {
    let mut tenants: Vec<TenantId> = Vec::new();
    loop {
        let page = retry(memory.runtime(), || memory.maintenance().list_tenants(tenants.last(), limits::PAGE)).await?;
        if page.is_empty() {
            return Ok(tenants);
        }
        tenants.extend(page);
    }
}

/// Iterates over threads, in the order of their creation.
pub(super) struct Threads<'a> {
    memory: &'a Memory,
    scope: Scope,
    now: Timestamp,
    query: Option<ThreadQuery>,
}

impl<'a> Threads<'a> {
    /// All threads of a tenant.
    pub(super) fn in_tenant(memory: &'a Memory, tenant: &TenantId, now: Timestamp) -> Self {
        Self::in_scope(memory, Scope::Tenant(tenant.clone()), now)
    }

    /// The threads to which a scope has full access.
    pub(super) fn in_scope(memory: &'a Memory, scope: Scope, now: Timestamp) -> Self {
        let query = Some(ThreadQuery::new(ThreadOrder::Created, THREADS_PER_PAGE));
        Self { memory, scope, now, query }
    }

    /// Reads the next page; `None` after the last one.
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

/// Iterates over the records of a tenant and of its users.
pub(super) struct Records<'a> {
    memory: &'a Memory,
    tenant: TenantId,
    now: Timestamp,
    last_owner: Option<Owner>,
    owners: std::vec::IntoIter<Owner>,
    query: Option<RecordQuery>,
}

impl<'a> Records<'a> {
    pub(super) fn in_tenant(memory: &'a Memory, tenant: &TenantId, now: Timestamp) -> Self {
        let owners = Vec::new().into_iter();
        Self { memory, tenant: tenant.clone(), now, last_owner: None, owners, query: None }
    }

    /// Reads the next page, which contains records of one owner; `None` after the last one.
    pub(super) async fn next_page(&mut self) -> Result<Option<(RecordOwner, Vec<Record>)>> {
        loop {
            if let Some(query) = self.query.take() {
                return self.read_page(query).await.map(Some);
            }
            match self.next_owner().await? {
                Some(owner) => self.query = Some(RecordQuery::of(owner)),
                None => return Ok(None),
            }
        }
    }

    async fn read_page(&mut self, mut query: RecordQuery) -> Result<(RecordOwner, Vec<Record>)> {
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
