//! Leases: who drives a thread at the moment, and how a driver that was overtaken loses.
//!
//! A lease is a document of its thread (`system/lease`, by name) that expires. Taking one is a commit that demands its
//! absence, so of many who try, one gets it. What keeps a driver that was asleep from writing all the same is not the
//! clock but the version of that document, the lease's *fencing token*: each commit made under the lease demands it
//! ([`BatchBuilder::under`]), and a lease that passed on, ended or was taken anew has another.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Conflict, Document, DocumentCondition, DocumentName, DocumentOwner, DocumentState, JsonText, Namespace,
    PutDocument, Scope, StoreError, ThreadId, Timestamp,
};

use crate::retry::repeat_simply;
use crate::{BatchBuilder, Memory, MemoryError, Result};

const NAMESPACE: &str = "lease";
/// How often a lease is tried that others take and end meanwhile.
const ATTEMPTS: usize = 8;

/// The right to drive a thread for a while.
///
/// It is a claim, not a guard: dropping it does nothing, and it ends with its time or with [`Memory::release_lease`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    thread: ThreadId,
    name: String,
    holder: String,
    token: u64,
    expires_at: Timestamp,
}

/// What the document says; its expiry is the document's own.
#[derive(Serialize, Deserialize)]
struct Held {
    holder: String,
}

impl Lease {
    /// The thread that it is for.
    #[must_use]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Who holds it.
    #[must_use]
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// The fencing token: another one whenever the lease is taken or renewed, and greater each time.
    #[must_use]
    pub fn token(&self) -> u64 {
        self.token
    }

    /// From when on another may take it.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    /// What a commit made under it demands.
    #[must_use]
    pub fn condition(&self) -> DocumentCondition {
        DocumentCondition { name: document_name(&self.name), state: DocumentState::Version(self.token) }
    }
}

impl BatchBuilder {
    /// Demands that a lease is still held. Otherwise the commit fails, and [`MemoryError::is_lease_lost`] says so.
    #[must_use]
    pub fn under(self, lease: &Lease) -> Self {
        let DocumentCondition { name, state } = lease.condition();
        self.require(name, state)
    }

    /// Demands that a lease is still held, and ends it with the same commit.
    #[must_use]
    pub fn releasing(self, lease: &Lease) -> Self {
        self.under(lease).delete(document_name(&lease.name))
    }
}

impl MemoryError {
    /// Whether a commit, a renewal or a release failed because its lease is over or passed on. The call changed nothing;
    /// whoever holds the lease goes on.
    #[must_use]
    pub fn is_lease_lost(&self) -> bool {
        is_about_lease(self)
    }
}

impl Memory {
    /// Takes the lease `name` of a thread for `length`, if nobody holds it.
    ///
    /// `holder` tells one driver from another (a process and what it runs); the same holder asking again is refused like
    /// any other. One lease of a thread does not stand in the way of another, nor of commits that demand none. Taking,
    /// renewing and ending a lease are commits: each moves the thread's `change`.
    ///
    /// # Errors
    /// `LeaseHeld` while another holds it; `NotFound` for an unknown thread; `Denied` in a shared thread under a user's
    /// scope (its drivers act for the tenant); `Invalid` for a length of 0 and bad names; those of the store.
    pub async fn acquire_lease(
        &self,
        scope: &Scope,
        thread: ThreadId,
        name: &str,
        holder: &str,
        length: Duration,
    ) -> Result<Lease> {
        for _ in 0..ATTEMPTS {
            match self.write_lease(scope, thread, (name, holder), DocumentState::Absent, length).await {
                Err(error) if is_about_lease(&error) => {}
                result => return result,
            }
            if let Some(document) = self.find_lease(scope, thread, name).await? {
                let Held { holder } = document.value.read()?;
                return Err(MemoryError::LeaseHeld { holder, until: document.expires_at.unwrap_or(Timestamp::MAX) });
            }
        }
        Err(MemoryError::Contended { what: "the lease", attempts: ATTEMPTS })
    }

    /// Holds a lease for `length` from now on. It gets another token, so commits demand the renewed one from here on.
    ///
    /// A renewal whose fate is unknown (`maybe_applied`) leaves the lease unusable: take it for lost.
    ///
    /// # Errors
    /// As [`Memory::acquire_lease`]; [`MemoryError::is_lease_lost`] tells that it is over.
    pub async fn renew_lease(&self, scope: &Scope, lease: &mut Lease, length: Duration) -> Result<()> {
        let state = DocumentState::Version(lease.token);
        *lease = self.write_lease(scope, lease.thread, (&lease.name, &lease.holder), state, length).await?;
        Ok(())
    }

    /// Ends a lease, so that the next driver need not wait for its time.
    ///
    /// # Errors
    /// [`MemoryError::is_lease_lost`] tells that it was over already; those of the store.
    pub async fn release_lease(&self, scope: &Scope, lease: Lease) -> Result<()> {
        self.batch().releasing(&lease).commit(scope, lease.thread).await?;
        Ok(())
    }

    async fn write_lease(
        &self,
        scope: &Scope,
        thread: ThreadId,
        (name, holder): (&str, &str),
        state: DocumentState,
        length: Duration,
    ) -> Result<Lease> {
        if length.is_zero() {
            return Err(MemoryError::invalid("lease", "of no length; hold it for at least a moment"));
        }
        let now = self.now();
        let expires_at = now.plus_ms(i64::try_from(length.as_millis()).unwrap_or(i64::MAX).max(1));
        let (name, holder) = (name.to_owned(), holder.to_owned());
        let mut batch = self.minted_batch(now);
        batch.require.push(DocumentCondition { name: document_name(&name), state });
        let value = JsonText::of(&Held { holder: holder.clone() })?;
        batch.put.push(PutDocument { name: document_name(&name), value, expires_at: Some(expires_at) });
        let token = self.commit_repeatedly(scope, thread, &batch, now).await?.change;
        Ok(Lease { thread, name, holder, token, expires_at })
    }

    async fn find_lease(&self, scope: &Scope, thread: ThreadId, name: &str) -> Result<Option<Document>> {
        let (owner, name, now) = (DocumentOwner::Thread(thread), document_name(name), self.now());
        Ok(repeat_simply(|| self.store().find_document(scope, &owner, &name.namespace, &name.key, now)).await?)
    }
}

fn is_about_lease(error: &MemoryError) -> bool {
    let MemoryError::Store(StoreError::Conflict(Conflict::Document { namespace, .. })) = error else { return false };
    matches!(namespace, Namespace::System(name) if name == NAMESPACE)
}

fn document_name(name: &str) -> DocumentName {
    DocumentName { namespace: Namespace::System(NAMESPACE.to_owned()), key: name.to_owned() }
}
