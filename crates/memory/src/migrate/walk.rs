//! Walks over everything that a store holds, page by page.

use threadkeep_core::{
    Backend, Document, DocumentOwner, DocumentQuery, Dump, Namespace, Owner, Result, Scope, TenantId, Thread, ThreadId,
    ThreadName, ThreadOrder, ThreadQuery, Timestamp, limits,
};

use super::Item;
use crate::retry::repeat_simply;

/// Threads that are looked at together.
const THREADS: usize = 200;
/// Bytes that a chunk of a thread is to have, more or less.
const CHUNK_BYTES: usize = 2 * 1024 * 1024;
/// Entries of a thread's first chunk, whose size nobody knows yet.
const FIRST_ENTRIES: usize = 16;

/// Every tenant.
pub(crate) async fn tenants(backend: &Backend) -> Result<Vec<TenantId>> {
    let mut tenants: Vec<TenantId> = Vec::new();
    loop {
        let page = repeat_simply(|| backend.maintenance.list_tenants(tenants.last(), limits::PAGE)).await?;
        if page.is_empty() {
            return Ok(tenants);
        }
        tenants.extend(page);
    }
}

pub(crate) async fn find_thread(
    backend: &Backend,
    tenant: &TenantId,
    name: &ThreadName,
    now: Timestamp,
) -> Result<Option<Thread>> {
    let scope = Scope::Tenant(tenant.clone());
    repeat_simply(|| backend.store.find_thread(&scope, name, now)).await
}

/// The threads of a tenant, in the order of their creation.
pub(crate) struct Threads<'a> {
    backend: &'a Backend,
    scope: Scope,
    now: Timestamp,
    query: Option<ThreadQuery>,
}

impl<'a> Threads<'a> {
    pub(crate) fn of(backend: &'a Backend, tenant: &TenantId, now: Timestamp) -> Self {
        Self::of_scope(backend, Scope::Tenant(tenant.clone()), now)
    }

    /// Those that a scope has in full.
    pub(crate) fn of_scope(backend: &'a Backend, scope: Scope, now: Timestamp) -> Self {
        let query = Some(ThreadQuery::new(ThreadOrder::Created, THREADS));
        Self { backend, scope, now, query }
    }

    pub(crate) async fn next_page(&mut self) -> Result<Option<Vec<Thread>>> {
        let Some(mut query) = self.query.take() else { return Ok(None) };
        let page = repeat_simply(|| self.backend.store.list_threads(&self.scope, &query, self.now)).await?;
        if let Some(next) = page.next {
            query.after = Some(next);
            self.query = Some(query);
        }
        Ok(Some(page.threads))
    }
}

/// The documents of a tenant and of its users.
pub(crate) struct Documents<'a> {
    backend: &'a Backend,
    tenant: TenantId,
    now: Timestamp,
    last_owner: Option<Owner>,
    owners: std::vec::IntoIter<Owner>,
    query: Option<DocumentQuery>,
}

impl<'a> Documents<'a> {
    pub(crate) fn of(backend: &'a Backend, tenant: &TenantId, now: Timestamp) -> Self {
        let owners = Vec::new().into_iter();
        Self { backend, tenant: tenant.clone(), now, last_owner: None, owners, query: None }
    }

    /// Some documents of one owner; `None` when there are no more.
    pub(crate) async fn next_page(&mut self) -> Result<Option<(DocumentOwner, Vec<Document>)>> {
        loop {
            if let Some(query) = self.query.take() {
                return self.read(query).await.map(Some);
            }
            match self.next_owner().await? {
                Some(owner) => self.query = Some(DocumentQuery::of(owner)),
                None => return Ok(None),
            }
        }
    }

    async fn read(&mut self, mut query: DocumentQuery) -> Result<(DocumentOwner, Vec<Document>)> {
        let (scope, owner) = (Scope::Tenant(self.tenant.clone()), query.owner.clone());
        let mut page = repeat_simply(|| self.backend.store.list_documents(&scope, &query, self.now)).await?;
        if page.len() == query.limit {
            query.after = page.last().map(|last| (last.namespace.clone(), last.key.clone()));
            self.query = Some(query);
        }
        page.retain(|document| !is_the_stores_own(document));
        Ok((owner, page))
    }

    async fn next_owner(&mut self) -> Result<Option<DocumentOwner>> {
        if self.owners.len() == 0 {
            let after = self.last_owner.take();
            let list = || self.backend.maintenance.list_owners(&self.tenant, after.as_ref(), limits::PAGE);
            self.owners = repeat_simply(list).await?.into_iter();
        }
        let owner = self.owners.next();
        self.last_owner.clone_from(&owner);
        Ok(owner.map(|owner| match owner {
            Owner::Tenant => DocumentOwner::Tenant,
            Owner::User(user) => DocumentOwner::User(user),
        }))
    }
}

/// Whose turn it is to sweep is a matter of one store's instances.
fn is_the_stores_own(document: &Document) -> bool {
    matches!(&document.namespace, Namespace::System(name) if name == crate::sweep::NAMESPACE)
}

pub(crate) fn item(owner: &DocumentOwner, document: &Document) -> Item {
    Item::Document { owner: owner.clone(), namespace: document.namespace.clone(), key: document.key.clone() }
}

/// A thread's chunks, with as many entries each as keeps them small.
pub(crate) struct Chunks<'a> {
    backend: &'a Backend,
    tenant: &'a TenantId,
    thread: ThreadId,
    limit: usize,
    after: Option<u64>,
    is_done: bool,
}

impl<'a> Chunks<'a> {
    pub(crate) fn of(backend: &'a Backend, tenant: &'a TenantId, thread: ThreadId) -> Self {
        Self { backend, tenant, thread, limit: FIRST_ENTRIES, after: None, is_done: false }
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Dump>> {
        if self.is_done {
            return Ok(None);
        }
        let dump = || self.backend.maintenance.dump_thread(self.tenant, self.thread, self.after, self.limit);
        let chunk = repeat_simply(dump).await?;
        self.after = chunk.next;
        self.is_done = chunk.next.is_none();
        self.limit = next_limit(self.limit, entry_bytes(&chunk));
        Ok(Some(chunk))
    }
}

fn entry_bytes(chunk: &Dump) -> usize {
    let bytes = chunk.entries.iter().map(|entry| match entry {
        threadkeep_core::DumpEntry::Message { body, .. } => body.len(),
        threadkeep_core::DumpEntry::Tombstone { .. } => 0,
    });
    bytes.sum()
}

/// Large messages make for few of them in a chunk; growing is slow, as the next ones may be larger.
fn next_limit(limit: usize, bytes: usize) -> usize {
    let fitting = limit.saturating_mul(CHUNK_BYTES) / bytes.max(1);
    fitting.clamp(1, limits::PAGE).min(limit * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_stay_small() {
        assert_eq!(next_limit(16, 0), 64);
        assert_eq!(next_limit(16, 16 * 400), 64);
        assert_eq!(next_limit(800, 800 * 400), 1_000);
        assert_eq!(next_limit(16, 16 * 4 * 1024 * 1024), 1);
        assert_eq!(next_limit(1, 4 * 1024 * 1024), 1);
        assert_eq!(next_limit(1, 100), 4);
    }
}
