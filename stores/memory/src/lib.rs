//! Keeps conversations in RAM, for as long as somebody holds the store.
//!
//! This is the reference: each promise of [`threadkeep_core::Store`] in the plainest code that keeps it. Everything
//! stands in ordered maps behind one lock. Content is kept as the codec's text, so a dump is verbatim and what a caller
//! gets is a copy. There is no index: a search reads the log, so it is never behind. Nothing is written to disk.
//!
//! Start with [`MemoryStore::open`]; then `state.rs` for what is kept, and `state/commit.rs` for how a thread changes.
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

/// How many hints a listener may leave unread before they become one [`WakeUp::Anything`].
const WAKE_UPS_HELD: usize = 1024;

/// A store in RAM. Its clones share the same conversations.
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
    /// Opens an empty store; all three ports look at the same conversations.
    #[must_use]
    pub fn open() -> Backend {
        let (wake_ups, _) = broadcast::channel(WAKE_UPS_HELD);
        let store = Self { shared: Arc::new(Shared { state: Mutex::new(State::new()), wake_ups }) };
        Backend { store: Arc::new(store.clone()), maintenance: Arc::new(store.clone()), search: Arc::new(store) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("nothing panics while it holds the lock")
    }

    fn wake(&self, wake_up: Option<WakeUp>) {
        if let Some(wake_up) = wake_up {
            // Without a listener there is nobody to tell, which is no failure.
            let _ = self.shared.wake_ups.send(wake_up);
        }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
