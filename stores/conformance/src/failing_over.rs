//! A store that loses its last commits, as one does whose replica did not hear of them.
//!
//! What a wrapper leaves to a default body would not fail over, so leaving one out is an error here.
#![deny(clippy::missing_trait_methods)]

mod store;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use threadkeep_core::{Backend, Result, Scope, StoreError, ThreadId, Timestamp, WakeUp, limits};
use tokio::sync::broadcast;

/// A store over two others: a primary, and a replica that knows of each thread what [`FailingOver::replicate`] gave it last.
///
/// [`FailingOver::fail_over`] makes the replica the store. What was committed since then is lost, although it was acknowledged,
/// and the numbers of the lost changes are given again.
pub struct FailingOver {
    primary: Backend,
    replica: Backend,
    has_failed_over: AtomicBool,
    wake_ups: broadcast::Sender<WakeUp>,
}

impl FailingOver {
    /// Puts a store over two others, of which the replica holds nothing.
    #[must_use]
    pub fn over(primary: Backend, replica: Backend) -> Arc<Self> {
        let (wake_ups, _) = broadcast::channel(16);
        Arc::new(Self { primary, replica, has_failed_over: AtomicBool::new(false), wake_ups })
    }

    /// The store for those who use it. Maintenance and search are the primary's: only the store itself fails over.
    #[must_use]
    pub fn backend(self: &Arc<Self>) -> Backend {
        Backend { store: Arc::<Self>::clone(self), ..self.primary.clone() }
    }

    /// Lets the replica know a thread as it stands now.
    ///
    /// # Errors
    /// Those of the two stores.
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

    /// Goes on with the replica. Whoever listens hears that hints were lost.
    pub fn fail_over(&self) {
        self.has_failed_over.store(true, Ordering::SeqCst);
        // Without a listener there is nobody to tell, which is no failure.
        let _ = self.wake_ups.send(WakeUp::Anything);
    }

    fn inner(&self) -> &Backend {
        if self.has_failed_over.load(Ordering::SeqCst) { &self.replica } else { &self.primary }
    }
}

impl fmt::Debug for FailingOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailingOver").field("inner", &self.inner().store).finish_non_exhaustive()
    }
}
