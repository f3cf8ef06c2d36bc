//! Conversations in Redis and Redis Cluster: a store for several instances, which can be distributed across several servers.
//!
//! Start with [`RedisStore::open`]. `library.lua` contains the functions that run in the server, `keys` the names of keys and their hash
//! slots. `shared` reads and writes threads, and `commit` changes them. `marks` and `lists` keep the lists in other slots up to date, and
//! `index` (with `index.lua`) the search index.
//!
//! All keys of a thread are in one hash slot, so a single function call changes the thread atomically. It checks the thread's revision
//! before it writes, so what was read before a decision is still true when the decision is carried out.
#![warn(missing_docs)]

mod args;
mod background;
mod changes;
mod collections;
mod commit;
mod connection;
mod data_loss;
mod dump;
mod durability;
mod encoding;
mod error;
mod groups;
mod history;
mod index;
mod keys;
mod known_rows;
mod lists;
mod maintenance;
mod marks;
mod messages;
mod options;
mod records;
mod recovery;
mod reply;
mod row;
mod search;
mod shared;
mod snapshot;
mod store;
mod subscription;
mod sweep;
mod threads;
mod verify;
mod wake_ups;

use std::sync::{Arc, OnceLock};

use threadkeep_core::{Backend, Result, WakeUps};
use tokio::sync::watch;

use crate::connection::Connections;
pub use crate::durability::Durability;
use crate::keys::Keys;
pub use crate::options::RedisOptions;
use crate::shared::Shared;

/// A store in Redis. Cheap to clone; dropping the last clone closes its connections.
#[derive(Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
    /// Whether wake-ups are received; missing before the first subscriber.
    is_listening: Arc<OnceLock<watch::Receiver<bool>>>,
}

impl RedisStore {
    /// Opens the store at a URL, and installs its functions if they are missing.
    ///
    /// [`RedisOptions::from_url`] describes the URL. Requires a tokio runtime, in which it spawns tasks.
    ///
    /// # Errors
    /// `Invalid` for an invalid URL, rejected credentials, or a server that may delete data when its memory is full; `Unavailable` if the
    /// server cannot be reached; `Incompatible` if a later version wrote the data.
    pub async fn open(url: &str) -> Result<Self> {
        Self::open_with(RedisOptions::from_url(url)?).await
    }

    /// Opens a store with options.
    ///
    /// # Errors
    /// The same as [`RedisStore::open`].
    pub async fn open_with(options: RedisOptions) -> Result<Self> {
        let keys = Keys::new(&options.prefix);
        let has_background = options.background;
        let connections = Connections::new(options)?;
        let durability = durability::inspect(&connections).await?;
        let incarnation = durability::prepare(&connections, &keys).await?;
        let shared = Arc::new(Shared::new(connections, keys, incarnation, durability));
        // During a failover, this may fail, and a later check finds the history. Cursors that were issued before that are then reset.
        let _ = shared.observe_history().await;
        if shared.durability().lost_parts == 0 {
            shared.prepare_index().await?;
        }
        if let Some(outbox) = shared.outbox.take_receiver() {
            tokio::spawn(wake_ups::send(Arc::downgrade(&shared), outbox));
        }
        tokio::spawn(marks::follow(Arc::downgrade(&shared)));
        tokio::spawn(history::watch(Arc::downgrade(&shared)));
        if has_background {
            tokio::spawn(background::index(Arc::downgrade(&shared)));
        }
        Ok(Self { shared, is_listening: Arc::default() })
    }

    /// Asks the servers at a URL what they do with acknowledged commits, without changing anything.
    ///
    /// # Errors
    /// The same as [`RedisStore::open`].
    pub async fn inspect(url: &str) -> Result<Durability> {
        let connections = Connections::new(RedisOptions::from_url(url)?)?;
        let keys = Keys::new(&connections.options().prefix);
        let durability = durability::inspect(&connections).await?;
        let lost_parts = durability::count_losses(&connections, &keys).await?;
        Ok(Durability { lost_parts, ..durability })
    }

    /// Returns the store behind the backend-independent ports.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let this = Arc::new(self.clone());
        Backend { store: this.clone(), maintenance: this.clone(), search: this }
    }

    /// Returns what the servers do with acknowledged commits. The primaries' persistence, the replicas and lost data are checked about every
    /// two seconds, everything else when the store is opened.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.shared.durability()
    }

    async fn subscribe(&self) -> Result<WakeUps> {
        let sent = self.shared.sent.all_ended();
        let wake_ups = wake_ups::subscribe(&self.shared.wake_ups, sent);
        // Waits until wake-ups are received, so that every later commit wakes this subscriber, if the servers can be reached.
        let is_listening = self.is_listening.get_or_init(|| {
            let (sender, is_listening) = watch::channel(false);
            tokio::spawn(subscription::listen(Arc::downgrade(&self.shared), sender));
            is_listening
        });
        let mut is_listening = is_listening.clone();
        let timeout = self.shared.options().connect_timeout;
        let _ = tokio::time::timeout(timeout, is_listening.wait_for(|is_listening| *is_listening)).await;
        Ok(wake_ups)
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").finish_non_exhaustive()
    }
}
