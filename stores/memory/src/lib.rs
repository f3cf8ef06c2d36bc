//! Stores conversations in memory until the last handle of the store is dropped.
//!
//! This is the reference implementation of [`threadkeep_core::Store`], simple rather than fast. All data is in ordered maps
//! behind one lock. Content is stored as the codec's text, so dumps are verbatim and callers get copies. There is no search
//! index: a search scans all messages, so it never lags. Nothing is written to disk.
//!
//! Start with [`MemoryStore::open`], then read `state.rs` for the data structures and `state/commit.rs` for commits.
#![warn(missing_docs)]

mod maintenance;
mod search;
mod snapshot;
mod state;
mod store;
mod wake_ups;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use threadkeep_core::{Backend, WakeUp};
use tokio::sync::broadcast;

use crate::state::State;

/// The maximum number of unread wake-ups of a subscriber. A subscriber with more gets one [`WakeUp::Unspecified`] instead.
const WAKE_UP_CAPACITY: usize = 1024;

/// A store in memory. Clones share the same conversations.
///
/// ```
/// # async fn example() -> threadkeep_core::Result<()> {
/// use threadkeep_core::{OpenThread, Scope, ThreadId, Timestamp};
///
/// let backend = threadkeep_store_memory::MemoryStore::open();
/// let (scope, now) = (Scope::user("acme", "ana")?, "2026-11-21T08:30:00Z".parse::<Timestamp>()?);
/// let opened = backend.store.open_thread(&scope, OpenThread::new(&scope, ThreadId::v7(now, [7; 10])), now).await?;
/// assert!(opened.created);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    wake_ups: broadcast::Sender<WakeUp>,
}

impl MemoryStore {
    /// Opens an empty store. All three ports of the backend access the same conversations.
    #[must_use]
    pub fn open() -> Backend {
        let (wake_ups, _) = broadcast::channel(WAKE_UP_CAPACITY);
        let store = Self { shared: Arc::new(Shared { state: Mutex::new(State::new()), wake_ups }) };
        Backend { store: Arc::new(store.clone()), maintenance: Arc::new(store.clone()), search: Arc::new(store) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("no code panics while it holds the lock")
    }

    fn send_wake_up(&self, wake_up: Option<WakeUp>) {
        if let Some(wake_up) = wake_up {
            // Sending fails only if there are no subscribers.
            let _ = self.shared.wake_ups.send(wake_up);
        }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
