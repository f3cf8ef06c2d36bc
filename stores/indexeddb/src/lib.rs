//! Stores conversations in the IndexedDB of a browser, where several tabs can use them at the same time.
//!
//! All data is one table of rows with binary keys (`keys.rs`) and one index over them. Each commit is one transaction, which checks
//! before it writes (`commit.rs`); the browser executes such transactions one at a time, over all tabs. Terms of messages are keys of
//! the index, so a search never lags. Subscribers in other tabs are woken by a `BroadcastChannel`.
//!
//! Start with [`IndexedDbStore::open`]. The values of a browser belong to one thread, but the ports of the library are `Send`: a task
//! of that thread owns the database, and each call sends it a job. A call that is dropped therefore still completes its transaction.
//!
//! The crate compiles on every target, but only a browser has an IndexedDB.
#![warn(missing_docs)]

mod cleaning;
mod commit;
mod dump;
mod idb;
mod keys;
mod maintenance;
mod messages;
mod records;
mod rows;
mod search;
mod snapshot;
mod store;
mod threads;
mod wake_ups;

use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use futures::StreamExt;
use futures::channel::{mpsc, oneshot};
use futures::future::LocalBoxFuture;
use threadkeep_core::{Backend, Reason, Result, StoreError, SyncPolicy, WakeUp};
use tokio::sync::broadcast;

use crate::idb::{Database, Transaction};
use crate::rows::Counters;
use crate::wake_ups::Channel;

/// The maximum number of unread wake-ups of a subscriber. A subscriber with more gets one [`WakeUp::Unspecified`] instead.
const WAKE_UP_CAPACITY: usize = 1024;

/// What an acknowledged commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power failure: the browser writes to the disk before it reports a commit.
    #[default]
    Strict,
    /// A crash of the browser: the browser hands the data to the operating system before it reports a commit.
    Relaxed,
}

/// A store in IndexedDB. Clones share the same database, which is closed when the last of them is dropped.
#[derive(Clone)]
pub struct IndexedDbStore {
    jobs: mpsc::UnboundedSender<Job>,
    wake_ups: broadcast::Sender<WakeUp>,
}

/// A call, carried out by the task that owns the database.
type Job = Box<dyn FnOnce(Rc<Connection>) -> LocalBoxFuture<'static, ()> + Send>;

struct Connection {
    database: Database,
    channel: Channel,
    wake_ups: broadcast::WeakSender<WakeUp>,
}

impl IndexedDbStore {
    /// Opens a database of the page's origin, and creates it if it does not exist. Requires the executor of
    /// `wasm_bindgen_futures`, that is, a window or worker of a browser.
    ///
    /// # Errors
    /// `Incompatible` if a later version wrote the database, `Unavailable` with [`Reason::Busy`] if a tab with an earlier version
    /// prevents an upgrade, `Unsupported` if the browser does not offer IndexedDB, as some do in private windows.
    pub async fn open(name: &str, durability: Durability) -> Result<Backend> {
        let (wake_ups, _) = broadcast::channel(WAKE_UP_CAPACITY);
        let (jobs, mut received) = mpsc::unbounded::<Job>();
        let store = Self { jobs, wake_ups };
        let (sender, opened) = oneshot::channel();
        let (name, wake_ups) = (name.to_owned(), store.wake_ups.downgrade());
        wasm_bindgen_futures::spawn_local(async move {
            let connection = match Connection::open(&name, durability, wake_ups).await {
                Ok(connection) => Rc::new(connection),
                Err(error) => return drop(sender.send(Err(error))),
            };
            if sender.send(Ok(())).is_err() {
                return;
            }
            while let Some(job) = received.next().await {
                wasm_bindgen_futures::spawn_local(job(Rc::clone(&connection)));
            }
        });
        opened.await.map_err(|_| closed())??;
        Ok(Backend { store: Arc::new(store.clone()), maintenance: Arc::new(store.clone()), search: Arc::new(store) })
    }

    /// Deletes a database. Waits for tabs that have it open; those of this version close it.
    ///
    /// # Errors
    /// `Unsupported` if the browser does not offer IndexedDB.
    pub async fn delete(name: &str) -> Result<()> {
        let (sender, deleted) = oneshot::channel();
        let name = name.to_owned();
        wasm_bindgen_futures::spawn_local(async move {
            // Sending fails if the caller does not wait.
            let _ = sender.send(idb::delete(&name).await);
        });
        deleted.await.map_err(|_| closed())?
    }

    /// Runs a call on the task that owns the database, to its end, even if this future is dropped.
    async fn call<T, W, F>(&self, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(Rc<Connection>) -> F + Send + 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        let (sender, result) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            Box::pin(async move {
                // Sending fails if the caller does not wait.
                let _ = sender.send(work(connection).await);
            })
        });
        self.jobs.unbounded_send(job).map_err(|_| closed())?;
        result.await.map_err(|_| closed())?
    }

    /// Runs a call in a transaction that only reads.
    async fn read<T, W>(&self, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: AsyncFnOnce(&Transaction) -> Result<T> + Send + 'static,
    {
        self.call(async move |connection| {
            let transaction = connection.database.read()?;
            work(&transaction).await
        })
        .await
    }

    /// Runs a call in a transaction that writes, and wakes subscribers if it succeeds.
    async fn write<T, W>(&self, sync_policy: SyncPolicy, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: AsyncFnOnce(&Transaction) -> Result<(T, Option<WakeUp>)> + Send + 'static,
    {
        self.call(async move |connection| {
            let transaction = connection.database.write_with(sync_policy)?;
            let (result, wake_up) = work(&transaction).await?;
            transaction.commit().await?;
            if let Some(wake_up) = wake_up {
                connection.wake(wake_up);
            }
            Ok(result)
        })
        .await
    }
}

impl Connection {
    async fn open(name: &str, durability: Durability, wake_ups: broadcast::WeakSender<WakeUp>) -> Result<Self> {
        let database = Database::open(name, durability).await?;
        let channel = Channel::open(name, wake_ups.clone())?;
        let transaction = database.write()?;
        if transaction.get(&keys::counters()).await?.is_none() {
            Counters::new().write(&transaction)?;
        }
        transaction.commit().await?;
        Ok(Self { database, channel, wake_ups })
    }

    fn wake(&self, wake_up: WakeUp) {
        self.channel.send(&wake_up);
        if let Some(wake_ups) = self.wake_ups.upgrade() {
            // Sending fails only if there are no subscribers.
            let _ = wake_ups.send(wake_up);
        }
    }
}

fn closed() -> StoreError {
    StoreError::unavailable(Reason::Closed)
}

impl fmt::Debug for IndexedDbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexedDbStore").finish_non_exhaustive()
    }
}
