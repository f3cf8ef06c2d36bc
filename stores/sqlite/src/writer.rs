//! Executes all writes on one connection. If the connection is free, a caller writes on its own thread. Otherwise the write is queued,
//! and a writer thread executes the queued writes as one transaction, so that many commits share one sync.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use rusqlite::Connection;
use threadkeep_core::{Reason, StoreError, SyncPolicy};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::Durability;
use crate::connection::{self, Shared, lock};
use crate::error::{GroupFailure, Result, SqliteError};
use crate::watch::WriteKind;

/// The maximum number of writes in a transaction. Limits how much a crash can undo and how long the first write waits.
const MAX_GROUP_SIZE: usize = 256;
/// How long the writer thread waits for further jobs, because the writers of the last group are likely to write again.
const GATHER_TIMEOUT: Duration = Duration::from_micros(80);
/// How long the writer thread waits for a first job after a group of several writers. Their work between two writes may take longer
/// than [`GATHER_TIMEOUT`], and a write outside a group would need its own sync and block a runtime thread.
const RETURN_TIMEOUT: Duration = Duration::from_millis(2);
/// How long the writer thread waits for work before it ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// Reports the result of a write to its caller. The argument is the failure of the group, if there is one.
type Finish = Box<dyn FnOnce(Option<GroupFailure>) + Send>;
/// Executes a write and returns the function that reports its result. If the group has already failed, there is no connection, and it
/// writes nothing.
type Work = Box<dyn FnOnce(Option<&Connection>) -> (Option<GroupFailure>, Finish) + Send>;

struct Job {
    work: Work,
    kind: WriteKind,
}

/// Writes waiting for the connection.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    arrived: Condvar,
    /// The number of queued jobs, which can be read without the lock.
    length: AtomicUsize,
    /// Whether there are concurrent writers. If so, further writes are queued, so that they share a sync.
    is_contended: AtomicBool,
    /// The number of callers that are about to write.
    pending_writers: AtomicUsize,
}

/// Counts a caller as about to write until this value is dropped, which also happens if the caller is cancelled.
struct PendingWriter<'a>(&'a AtomicUsize);

impl<'a> PendingWriter<'a> {
    fn count(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for PendingWriter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct QueueState {
    jobs: VecDeque<Job>,
    /// The number of queued jobs at which the writer thread is woken.
    wake_up_length: usize,
    /// Whether the writer thread is running.
    is_served: bool,
    is_closed: bool,
}

impl QueueState {
    fn is_idle(&self) -> bool {
        self.jobs.is_empty() && !self.is_closed
    }
}

impl Queue {
    /// Whether no other caller writes or is about to write. On a single-threaded runtime, other writers cannot run while this caller
    /// writes and syncs, so it yields to them first. On a multi-threaded runtime, they run anyway, and yielding would only slow down a
    /// single writer.
    async fn is_uncontended(&self) -> bool {
        let _pending_writer = PendingWriter::count(&self.pending_writers);
        if Handle::try_current().is_ok_and(|runtime| runtime.metrics().num_workers() == 1) {
            tokio::task::yield_now().await;
        }
        self.pending_writers.load(Ordering::Relaxed) == 1 && self.length.load(Ordering::Acquire) == 0
    }

    /// Ends the writer thread.
    pub(crate) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.arrived.notify_all();
    }

    /// Waits until jobs are queued, and briefly until there are `expected` jobs, because a sync costs far more than this wait. Returns
    /// `false` if the writer thread should end.
    fn wait_for(&self, expected: usize) -> bool {
        let mut state = self.wait(lock(&self.state), expected, GATHER_TIMEOUT);
        if state.is_idle() && expected > 1 {
            state = self.wait(state, 1, RETURN_TIMEOUT);
            if !state.is_idle() {
                state = self.wait(state, expected, GATHER_TIMEOUT);
            }
        }
        if state.is_idle() {
            self.is_contended.store(false, Ordering::Relaxed);
            state = self.wait(state, 1, IDLE_TIMEOUT);
        }
        state.is_served = !state.jobs.is_empty();
        state.is_served
    }

    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, QueueState>,
        wake_up_length: usize,
        timeout: Duration,
    ) -> MutexGuard<'a, QueueState> {
        state.wake_up_length = wake_up_length.clamp(1, MAX_GROUP_SIZE);
        let is_short = |state: &mut QueueState| state.jobs.len() < state.wake_up_length && !state.is_closed;
        let waited = self.arrived.wait_timeout_while(state, timeout, is_short);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Runs a write in its own transaction or in the transaction of a group.
///
/// `work` must do all its checks before its first write, because its own errors do not roll back the group's transaction. An
/// error from SQLite fails the whole group.
pub(crate) async fn write<T: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    write_with(shared, SyncPolicy::Now, WriteKind::Anything, work).await
}

/// Like [`write()`], with the sync policy and kind of the write. A deferred write is synced only if it is in a group.
pub(crate) async fn write_with<T: Send + 'static>(
    shared: &Arc<Shared>,
    sync_policy: SyncPolicy,
    kind: WriteKind,
    work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    shared.check_writable()?;
    shared.activity.fetch_add(1, Ordering::Relaxed);
    if !shared.queue.is_contended.load(Ordering::Relaxed) && shared.queue.is_uncontended().await {
        match shared.writer.try_lock() {
            Ok(connection) => return write_alone(shared, &connection, sync_policy, kind, work),
            Err(TryLockError::Poisoned(poisoned)) => {
                return write_alone(shared, &poisoned.into_inner(), sync_policy, kind, work);
            }
            Err(TryLockError::WouldBlock) => {}
        }
    }
    let (sender, receiver) = oneshot::channel();
    let work: Work = Box::new(move |connection| {
        let result = connection.map(work);
        let failure = match &result {
            Some(Err(error @ SqliteError::Sqlite(_))) => Some(GroupFailure::before(error)),
            _ => None,
        };
        let finish: Finish = Box::new(move |failure| {
            let outcome = match (result, failure) {
                (Some(Err(error)), _) => Err(error.into()),
                (_, Some(failure)) => Err(failure.into_error()),
                (Some(Ok(value)), None) => Ok(value),
                (None, None) => Err(StoreError::unavailable(Reason::Closed)),
            };
            // The caller may have been cancelled; the write stays committed.
            drop(sender.send(outcome));
        });
        (failure, finish)
    });
    enqueue(shared, Job { work, kind });
    match receiver.await {
        Ok(outcome) => outcome,
        Err(_) => Err(StoreError::Unavailable { reason: Reason::Closed, maybe_applied: true, source: None }),
    }
}

/// Runs a write on the current thread and blocks until the connection is free. For work on blocking threads.
pub(crate) fn write_blocking<T>(shared: &Shared, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T, StoreError> {
    shared.check_writable()?;
    write_now(shared, &lock(&shared.writer), WriteKind::Anything, work)
}

/// Runs a write in its own transaction, synced according to its sync policy.
fn write_alone<T>(
    shared: &Shared,
    connection: &Connection,
    sync_policy: SyncPolicy,
    kind: WriteKind,
    work: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T, StoreError> {
    if sync_policy == SyncPolicy::Now || shared.options.durability == Durability::Process {
        return write_now(shared, connection, kind, work);
    }
    // A sync covers the whole write-ahead log, so the next synced commit also makes this commit durable.
    connection::set_durability(connection, Durability::Process).map_err(StoreError::from)?;
    let result = write_now(shared, connection, kind, work);
    let restored = connection::set_durability(connection, Durability::Full);
    let value = result?;
    // The write is committed already, so the failure is reported as one of the commit itself.
    restored.map_err(|error| GroupFailure::at_commit(&error).into_error())?;
    Ok(value)
}

/// Runs a write in its own transaction.
fn write_now<T>(
    shared: &Shared,
    connection: &Connection,
    kind: WriteKind,
    work: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T, StoreError> {
    begin(connection).map_err(StoreError::from)?;
    let start = shared.watch.begin(connection);
    match work(connection) {
        Ok(value) => match commit(connection) {
            Ok(()) => {
                shared.watch.end(connection, &start, kind);
                Ok(value)
            }
            Err(error) => {
                roll_back(connection);
                Err(GroupFailure::at_commit(&error).into_error())
            }
        },
        Err(error) => {
            roll_back(connection);
            Err(error.into())
        }
    }
}

fn enqueue(shared: &Arc<Shared>, job: Job) {
    let mut state = lock(&shared.queue.state);
    state.jobs.push_back(job);
    shared.queue.length.store(state.jobs.len(), Ordering::Release);
    if state.is_served {
        // The writer thread is woken once per group instead of once per job.
        if state.jobs.len() >= state.wake_up_length {
            shared.queue.arrived.notify_one();
        }
        return;
    }
    state.is_served = true;
    let (store, queue) = (Arc::downgrade(shared), Arc::clone(&shared.queue));
    let thread = std::thread::Builder::new().name("threadkeep-sqlite-writer".to_owned());
    let spawned = thread.spawn(move || serve(&store, &queue));
    if spawned.is_err() {
        // If there is no writer thread, this caller executes the queued jobs.
        state.is_served = false;
        drop(state);
        while let Some(group) = take_group(&shared.queue) {
            write_group(shared, group);
        }
    }
}

/// Executes queued jobs until the store is closed or idle. Between groups, it has a reference only to the queue, so that dropping the
/// last handle of the store closes the file immediately.
fn serve(shared: &Weak<Shared>, queue: &Queue) {
    let mut expected = 1;
    while queue.wait_for(expected) {
        let Some(group) = take_group(queue) else { continue };
        // Waiting callers have a reference to the store. If the store has been dropped, all of them were cancelled.
        let Some(shared) = shared.upgrade() else { return };
        let size = write_group(&shared, group);
        expected = size + queue.length.load(Ordering::Acquire);
        queue.is_contended.store(expected > 1, Ordering::Relaxed);
    }
}

fn take_group(queue: &Queue) -> Option<Vec<Job>> {
    let mut state = lock(&queue.state);
    if state.jobs.is_empty() {
        return None;
    }
    let size = state.jobs.len().min(MAX_GROUP_SIZE);
    let group = state.jobs.drain(..size).collect();
    queue.length.store(state.jobs.len(), Ordering::Release);
    Some(group)
}

/// Executes a group in one transaction and returns its size.
fn write_group(shared: &Shared, mut group: Vec<Job>) -> usize {
    let connection = lock(&shared.writer);
    // More jobs may have been queued while this thread waited for the connection.
    if group.len() < MAX_GROUP_SIZE
        && let Some(more) = take_group(&shared.queue)
    {
        group.extend(more);
    }
    let mut failure = begin(&connection).err().map(|error| GroupFailure::before(&error));
    let start = shared.watch.begin(&connection);
    let is_threads_only = group.iter().all(|job| job.kind == WriteKind::Threads);
    let mut finishes = Vec::with_capacity(group.len());
    for job in group {
        let (job_failure, finish) = (job.work)(failure.is_none().then_some(&connection));
        failure = failure.or(job_failure);
        finishes.push(finish);
    }
    if failure.is_none() {
        match commit(&connection) {
            Ok(()) => {
                let kind = if is_threads_only { WriteKind::Threads } else { WriteKind::Anything };
                shared.watch.end(&connection, &start, kind);
            }
            Err(error) => failure = Some(GroupFailure::at_commit(&error)),
        }
    }
    if failure.is_some() {
        roll_back(&connection);
    }
    drop(connection);
    let size = finishes.len();
    for finish in finishes {
        finish(failure);
    }
    size
}

fn begin(connection: &Connection) -> Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    Ok(())
}

fn commit(connection: &Connection) -> Result<()> {
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

fn roll_back(connection: &Connection) {
    // After some errors SQLite has already rolled back.
    if !connection.is_autocommit() {
        drop(connection.execute_batch("ROLLBACK"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqliteOptions, SqliteStore};

    /// Returns SQLite's setting `synchronous`: with 1, a commit does not sync the log, with 2 it does.
    fn synchronous(connection: &Connection) -> Result<i64> {
        Ok(connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?)
    }

    #[tokio::test]
    async fn writers_on_one_thread_share_transactions() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("one.db"), SqliteOptions::default()).unwrap();
        store.shared.watch.stamp().unwrap();
        let mut writers = tokio::task::JoinSet::new();
        for number in 0..64 {
            let (shared, watched) = (Arc::clone(&store.shared), Arc::clone(&store.shared));
            writers.spawn(async move {
                let work = move |connection: &Connection| {
                    let sql = "INSERT INTO marks (name, value) VALUES (?1, 0)";
                    connection.execute(sql, [format!("writer {number}")])?;
                    // All writes of a transaction read the same stamp.
                    Ok(watched.watch.stamp())
                };
                write(&shared, work).await.unwrap().unwrap()
            });
        }
        let transactions: std::collections::HashSet<u64> = writers.join_all().await.into_iter().collect();
        assert!(transactions.len() < 32, "{} transactions", transactions.len());
    }

    #[tokio::test]
    async fn deferred_write_is_not_synced() {
        let folder = tempfile::tempdir().unwrap();
        for (durability, expected) in [(Durability::Full, [2, 1, 2]), (Durability::Process, [1, 1, 1])] {
            let options = SqliteOptions { durability, ..SqliteOptions::default() };
            // There is no background thread here, because it locks the writer's connection periodically, and a write that is queued in
            // the meantime would be synced as part of a group.
            let shared = Shared::open(&folder.path().join(format!("{durability:?}.db")), options).unwrap();
            let mut settings = Vec::new();
            for sync_policy in [SyncPolicy::Now, SyncPolicy::Deferred, SyncPolicy::Now] {
                settings.push(write_with(&shared, sync_policy, WriteKind::Anything, synchronous).await.unwrap());
            }
            assert_eq!(settings, expected);
        }
    }
}
