//! A store whose administration fails as it is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::BoxFuture;
use threadkeep_core::{
    Backend, Document, DocumentOwner, DrivenThread, Dump, Maintenance, Owner, Reason, Result, StoreError, SweepReport,
    TenantId, ThreadId, Timestamp, VerifyReport,
};

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    /// It is carried out, and the caller does not learn it.
    LostReply,
    /// It is not carried out.
    Full,
}

pub(crate) struct Failing {
    inner: Arc<dyn Maintenance>,
    fates: Mutex<VecDeque<Fate>>,
    meanwhile: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl std::fmt::Debug for Failing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Failing").finish_non_exhaustive()
    }
}

impl Failing {
    /// The writes end so, one after the other; all later ones are done.
    pub(crate) fn over(backend: &Backend, fates: impl IntoIterator<Item = Fate>) -> Backend {
        let fates = Mutex::new(fates.into_iter().collect());
        Self { inner: Arc::clone(&backend.maintenance), fates, meanwhile: Mutex::default() }.instead_of(backend)
    }

    /// Something happens each time that a thread is read on after its first chunk, the last first, until all has happened.
    pub(crate) fn with_events(backend: &Backend, events: Vec<BoxFuture<'static, ()>>) -> Backend {
        let meanwhile = Mutex::new(events);
        Self { inner: Arc::clone(&backend.maintenance), fates: Mutex::default(), meanwhile }.instead_of(backend)
    }

    fn instead_of(self, backend: &Backend) -> Backend {
        Backend { maintenance: Arc::new(self), ..backend.clone() }
    }

    async fn write<T>(&self, write: impl Future<Output = Result<T>>) -> Result<T> {
        let fate = self.fates.lock().unwrap().pop_front().unwrap_or(Fate::Done);
        if fate == Fate::Full {
            return Err(StoreError::unavailable(Reason::Full));
        }
        let written = write.await?;
        if fate == Fate::Done {
            return Ok(written);
        }
        Err(StoreError::Unavailable { reason: Reason::Disconnected, maybe_applied: true, source: None })
    }
}

#[async_trait]
impl Maintenance for Failing {
    async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        self.inner.list_tenants(after, limit).await
    }

    async fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>> {
        self.inner.list_owners(tenant, after, limit).await
    }

    async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>> {
        self.inner.list_driven_threads(after, limit, now).await
    }

    async fn dump_thread(&self, tenant: &TenantId, thread: ThreadId, after: Option<u64>, limit: usize) -> Result<Dump> {
        let event = self.meanwhile.lock().unwrap().pop_if(|_| after.is_some());
        if let Some(event) = event {
            event.await;
        }
        self.inner.dump_thread(tenant, thread, after, limit).await
    }

    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        self.write(self.inner.restore_thread(tenant, thread, chunk)).await
    }

    async fn restore_document(&self, tenant: &TenantId, owner: &DocumentOwner, document: Document) -> Result<()> {
        self.write(self.inner.restore_document(tenant, owner, document)).await
    }

    async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        self.write(self.inner.sweep(now)).await
    }

    async fn verify(&self) -> Result<VerifyReport> {
        self.inner.verify().await
    }

    async fn repair(&self, now: Timestamp) -> Result<()> {
        self.inner.repair(now).await
    }

    async fn compact(&self) -> Result<()> {
        self.inner.compact().await
    }
}
