//! A store that loses its last commits in a failover, like a primary with asynchronous replication.
//!
//! The lint requires an implementation of every method, because a default body would not fail over.
#![deny(clippy::missing_trait_methods)]

mod store;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use threadkeep_core::{Backend, Result, Scope, StoreError, ThreadId, Timestamp, WakeUp, limits};
use tokio::sync::broadcast;

/// A store with a primary and a replica. The replica has the threads as of their last [`FailoverStore::replicate`].
///
/// [`FailoverStore::fail_over`] switches to the replica. Later commits are lost although they were acknowledged, and the
/// numbers of their changes are assigned again.
pub struct FailoverStore {
    primary: Backend,
    replica: Backend,
    has_failed_over: AtomicBool,
    wake_ups: broadcast::Sender<WakeUp>,
}

impl FailoverStore {
    /// Creates a store from a primary and an empty replica.
    #[must_use]
    pub fn new(primary: Backend, replica: Backend) -> Arc<Self> {
        let (wake_ups, _) = broadcast::channel(16);
        Arc::new(Self { primary, replica, has_failed_over: AtomicBool::new(false), wake_ups })
    }

    /// Returns the backend for clients. Maintenance and search always use the primary: only the store itself fails
    /// over.
    #[must_use]
    pub fn backend(self: &Arc<Self>) -> Backend {
        Backend { store: Arc::<Self>::clone(self), ..self.primary.clone() }
    }

    /// Copies the current state of a thread to the replica.
    ///
    /// # Errors
    /// If one of the two stores fails.
    pub async fn replicate(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        let tenant = scope.tenant_id();
        match self.replica.store.delete_thread(&Scope::Tenant(tenant.clone()), thread, now).await {
            Ok(()) | Err(StoreError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        let mut after = None;
        loop {
            let chunk = self.primary.maintenance.dump_thread(tenant, thread, after, limits::PAGE).await?;
            after = chunk.next;
            self.replica.maintenance.restore_thread(tenant, thread, chunk).await?;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Switches to the replica. Listeners receive [`WakeUp::Unspecified`], because wake-ups may be lost.
    pub fn fail_over(&self) {
        self.has_failed_over.store(true, Ordering::SeqCst);
        // Sending fails if there is no listener, which is not an error.
        let _ = self.wake_ups.send(WakeUp::Unspecified);
    }

    fn inner(&self) -> &Backend {
        if self.has_failed_over.load(Ordering::SeqCst) { &self.replica } else { &self.primary }
    }
}

impl fmt::Debug for FailoverStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailoverStore").field("inner", &self.inner().store).finish_non_exhaustive()
    }
}
