use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use threadkeep_core::{MonotonicTime, Owner, RecordName, Scope, TenantId, ThreadId};
use tokio::sync::watch;

use super::feeds::Feeds;
use crate::Memory;

/// What somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Watched {
    /// Anything that happens to a thread.
    Thread(TenantId, ThreadId),
    /// A record of a user, or of the tenant.
    Record(TenantId, Owner, RecordName),
}

/// Says when it is worth to look again at a thread, or at a record of a user or of the tenant.
///
/// It hears from the moment that it is made, so make it before the look that decides about waiting: what happens between the
/// look and [`Watch::changed`] is not missed. It tells nothing of what happened, and may say so although nothing did.
pub struct Watch {
    feeds: Arc<Feeds>,
    watched: Watched,
    /// `None` only while it is dropped.
    hints: Option<watch::Receiver<()>>,
    /// When it returns by itself.
    until: MonotonicTime,
}

impl Watch {
    /// How long it waits at most: hints may be lost, and a store may have none.
    pub const LONGEST: Duration = Duration::from_secs(5);

    /// Waits for a hint, for [`Watch::LONGEST`] at most since it returned last. It may be dropped and called again.
    pub async fn changed(&mut self) {
        if let Some(hints) = &mut self.hints {
            // The sender is there for as long as this is.
            let _ = self.feeds.runtime().timeout_at(self.until, hints.changed()).await;
        }
        self.until = self.feeds.runtime().now() + Self::LONGEST;
    }
}

impl Memory {
    /// Begins to watch a thread. What it leads to reading is the scope's to read or not.
    pub async fn watch_thread(&self, scope: &Scope, thread: ThreadId) -> Watch {
        self.watch(Watched::Thread(scope.tenant_id().clone(), thread)).await
    }

    /// Begins to watch a record that belongs to the scope's user, or to the tenant for the tenant's scope.
    pub async fn watch_record(&self, scope: &Scope, name: &RecordName) -> Watch {
        self.watch(Watched::Record(scope.tenant_id().clone(), scope.default_owner(), name.clone())).await
    }

    async fn watch(&self, watched: Watched) -> Watch {
        let hints = self.feeds().watch(self, &watched).await;
        let until = self.runtime().now() + Watch::LONGEST;
        Watch { feeds: Arc::clone(self.feeds()), watched, hints: Some(hints), until }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.hints = None;
        self.feeds.unwatch(&self.watched);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("watched", &self.watched).finish_non_exhaustive()
    }
}
