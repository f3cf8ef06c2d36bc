//! Indexes new messages in the background.

use std::sync::{PoisonError, Weak};
use std::time::Duration;

use threadkeep_core::limits;

use crate::shared::Shared;

/// The pause after a commit, during which further commits are collected.
const PAUSE: Duration = Duration::from_millis(200);

/// Indexes the messages that this process has written, until the store is closed.
pub(crate) async fn index(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some(shared) = shared.upgrade() else { return };
        let written = std::mem::take(&mut *shared.written.lock().unwrap_or_else(PoisonError::into_inner));
        for tenant in written {
            // If this fails, the messages are indexed later: with the tenant's next commit, or before a search.
            let _ = shared.catch_up_tenant(&tenant, limits::PAGE).await;
        }
    }
}
