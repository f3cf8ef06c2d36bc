//! Documents of threads, users and tenants.

use threadkeep_core::{
    Access, Conflict, DerivedWrite, Document, DocumentName, DocumentOwner, DocumentQuery, DocumentWrite, Kind,
    Namespace, Owner, Result, Scope, StoreError, Tagged, ThreadId, Timestamp, Written,
};

use super::{State, Tenant, has_expired};

impl State {
    pub(crate) fn find_document(
        &self,
        scope: &Scope,
        owner: &DocumentOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Option<Document> {
        let document = match owner {
            DocumentOwner::Thread(thread) => {
                let name = DocumentName { namespace: namespace.clone(), key: key.to_owned() };
                self.reach(scope, *thread, now).ok()?.0.live_document(&name, now)
            }
            DocumentOwner::User(_) | DocumentOwner::Tenant => {
                let tenant = self.tenants.get(scope.tenant_id()).filter(|_| reads(scope, owner))?;
                tenant.live_document(owner, namespace, key, now)
            }
        };
        document.cloned()
    }

    pub(crate) fn list_documents(&self, scope: &Scope, query: &DocumentQuery, now: Timestamp) -> Result<Vec<Document>> {
        query.check()?;
        let all: Vec<&Document> = match &query.owner {
            DocumentOwner::Thread(thread) => match self.reach(scope, *thread, now) {
                Ok((kept, _)) => kept.documents.values().collect(),
                Err(_) => Vec::new(),
            },
            owner if reads(scope, owner) => {
                let tenant = self.tenants.get(scope.tenant_id());
                let documents = tenant.into_iter().flat_map(|tenant| &tenant.documents);
                documents.filter(|((of, ..), _)| of == owner).map(|(_, document)| document).collect()
            }
            _ => Vec::new(),
        };
        let matching = all.into_iter().filter(|document| {
            !has_expired(document.expires_at, now)
                && query.namespace.as_ref().is_none_or(|namespace| *namespace == document.namespace)
                && document.key.starts_with(&query.key_prefix)
                && query
                    .after
                    .as_ref()
                    .is_none_or(|(namespace, key)| (&document.namespace, &document.key) > (namespace, key))
        });
        Ok(matching.take(query.limit).cloned().collect())
    }

    pub(crate) fn write_document(&mut self, scope: &Scope, write: DocumentWrite, now: Timestamp) -> Result<Written> {
        write.check()?;
        check_writes(scope, &write.owner)?;
        let tenant = self.tenants.entry(scope.tenant_id().clone()).or_default();
        let actual = tenant.live_document(&write.owner, &write.namespace, &write.key, now).map(|found| found.version);
        let DocumentWrite { owner, namespace, key, expected, value, expires_at } = write;
        if expected.is_some_and(|expected| expected != actual.unwrap_or(0)) {
            let actual = actual.map(Tagged::from);
            return Err(Conflict::Document { namespace, key, actual }.into());
        }
        let name = (owner, namespace.clone(), key.clone());
        let Some(value) = value else {
            tenant.documents.remove(&name);
            return Ok(Written { version: 0, tag: None });
        };
        self.document_version += 1;
        let version = self.document_version;
        tenant.documents.insert(name, Document { namespace, key, value, version, tag: None, expires_at });
        Ok(Written { version, tag: None })
    }

    pub(crate) fn write_derived(
        &mut self,
        scope: &Scope,
        id: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<Written> {
        write.check()?;
        let (kept, access) = self.reach(scope, id, now)?;
        if access < Access::Full {
            return Err(StoreError::Denied("changing a shared thread other than by adding messages"));
        }
        let (name, version) = (write.name(), write.version());
        let actual = kept.live_document(&name, now).map(Document::tagged);
        let positions = kept.row.positions;
        write.check_against(positions, actual)?;
        let kept = self.tenants.get_mut(scope.tenant_id()).and_then(|tenant| tenant.threads.get_mut(&id));
        let kept = kept.ok_or(StoreError::NotFound(Kind::Thread))?;
        let DocumentName { namespace, key } = name.clone();
        let document = Document { namespace, key, value: write.value, version, tag: positions.tag, expires_at: None };
        kept.documents.insert(name, document);
        Ok(Written { version, tag: positions.tag })
    }

    pub(crate) fn restore_document(
        &mut self,
        tenant: &threadkeep_core::TenantId,
        owner: &DocumentOwner,
        document: Document,
    ) -> Result<()> {
        if matches!(owner, DocumentOwner::Thread(_)) {
            return Err(StoreError::invalid("document owner", "a thread's documents come with its dump"));
        }
        // Later writes must not repeat a version that was given before the move.
        self.document_version = self.document_version.max(document.version);
        let name = (owner.clone(), document.namespace.clone(), document.key.clone());
        self.tenants.entry(tenant.clone()).or_default().documents.insert(name, document);
        Ok(())
    }
}

impl Tenant {
    fn live_document(
        &self,
        owner: &DocumentOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Option<&Document> {
        let found = self.documents.get(&(owner.clone(), namespace.clone(), key.to_owned()));
        found.filter(|document| !has_expired(document.expires_at, now))
    }
}

/// The owner as one of threads, for the table of access.
pub(super) fn plain_owner(owner: &DocumentOwner) -> Option<Owner> {
    match owner {
        DocumentOwner::User(user) => Some(Owner::User(user.clone())),
        DocumentOwner::Tenant => Some(Owner::Tenant),
        DocumentOwner::Thread(_) => None,
    }
}

fn reads(scope: &Scope, owner: &DocumentOwner) -> bool {
    plain_owner(owner).is_some_and(|owner| scope.access(&owner) != Access::None)
}

fn check_writes(scope: &Scope, owner: &DocumentOwner) -> Result<()> {
    match plain_owner(owner).map_or(Access::None, |owner| scope.access(&owner)) {
        Access::Full => Ok(()),
        Access::Append => Err(StoreError::Denied("only the application writes a tenant's documents")),
        Access::None => Err(StoreError::NotFound(Kind::Document)),
    }
}
