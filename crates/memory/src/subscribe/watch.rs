use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use threadkeep_core::{MonotonicTime, Owner, RecordName, Scope, TenantId, ThreadId};
use tokio::sync::watch;

use super::feeds::Feeds;
use crate::Memory;

/// The data whose changes a [`Watch`] reports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum WatchTarget {
    /// A thread.
    Thread(TenantId, ThreadId),
    /// A record of a user or of the tenant.
    Record(TenantId, Owner, RecordName),
}

/// Reports when a thread, or a record of a user or of the tenant, may have changed.
///
/// A watch receives wake-ups from its creation on. Create it before reading the data that decides whether to wait, so that a
/// change between the read and [`Watch::changed`] is not missed. A watch may report a change although there was none.
pub struct Watch {
    feeds: Arc<Feeds>,
    target: WatchTarget,
    /// `None` only while the watch is being dropped.
    receiver: Option<watch::Receiver<()>>,
    /// When [`Watch::changed`] returns even without a change.
    until: MonotonicTime,
}

impl Watch {
    /// Maximum time to wait. It is limited because wake-ups may be lost, and some stores provide none.
    pub const MAX_WAIT: Duration = Duration::from_secs(5);

    /// Waits until the target may have changed, or until [`Watch::MAX_WAIT`] after the previous call returned. Cancel safe.
    pub async fn changed(&mut self) {
        if let Some(receiver) = &mut self.receiver {
            // The sender exists at least as long as this receiver.
            let _ = self.feeds.runtime().timeout_at(self.until, receiver.changed()).await;
        }
        self.until = self.feeds.runtime().now() + Self::MAX_WAIT;
    }
}

impl Memory {
    /// Watches a thread. Does not check whether the scope can read it.
    pub async fn watch_thread(&self, scope: &Scope, thread: ThreadId) -> Watch {
        self.watch(WatchTarget::Thread(scope.tenant_id().clone(), thread)).await
    }

    /// Watches a record of the scope's user, or of the tenant for a tenant's scope.
    pub async fn watch_record(&self, scope: &Scope, name: &RecordName) -> Watch {
        self.watch(WatchTarget::Record(scope.tenant_id().clone(), scope.default_owner(), name.clone())).await
    }

    async fn watch(&self, target: WatchTarget) -> Watch {
        let receiver = self.feeds().watch(self, &target).await;
        let until = self.runtime().now() + Watch::MAX_WAIT;
        Watch { feeds: Arc::clone(self.feeds()), target, receiver: Some(receiver), until }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.receiver = None;
        self.feeds.unwatch(&self.target);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("target", &self.target).finish_non_exhaustive()
    }
}
