//! One connection writes. Whoever finds it free writes on the own thread; whoever does not is put in a queue, and a
//! thread of its own carries out what waits there as one transaction, so that many commits share one sync.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use rusqlite::Connection;
use threadkeep_core::{Reason, StoreError, Urgency};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::Durability;
use crate::connection::{self, Shared, lock};
use crate::error::{GroupFailure, Result, SqliteError};
use crate::watch::Writes;

/// The most writes that share a transaction: bounds what a crash undoes and how long the first one waits.
const GROUP: usize = 256;
/// How long the thread waits for writers that wrote with the last group.
const GATHER: Duration = Duration::from_micros(80);
/// How long several writers count as being about after they were answered: what each does before it comes again takes longer
/// than gathering, and one that wrote alone would keep a sync to itself, on a thread that others need.
const ABOUT: Duration = Duration::from_millis(2);
/// How long the thread stays when nothing comes.
const LINGER: Duration = Duration::from_secs(2);

type Finish = Box<dyn FnOnce(Option<GroupFailure>) + Send>;
/// Given no connection, it does nothing and waits to be told of the group's failure.
type Work = Box<dyn FnOnce(Option<&Connection>) -> (Option<GroupFailure>, Finish) + Send>;

struct Job {
    work: Work,
    writes: Writes,
}

/// Writes that wait for the connection.
#[derive(Default)]
pub(crate) struct Queue {
    jobs: Mutex<Waiting>,
    arrived: Condvar,
    /// How many wait; read without the lock on the way past.
    length: AtomicUsize,
    /// Whether several writers are about: then the next ones wait for each other too, instead of each taking a sync of
    /// its own.
    is_shared: AtomicBool,
    /// How many are about to write.
    coming: AtomicUsize,
}

/// One who is about to write, counted until it is dropped: callers may go while they wait.
struct Coming<'a>(&'a AtomicUsize);

impl<'a> Coming<'a> {
    fn count(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// How many must wait before the serving thread is woken.
    wanted: usize,
    is_served: bool,
    is_closed: bool,
}

impl Waiting {
    fn is_idle(&self) -> bool {
        self.jobs.is_empty() && !self.is_closed
    }
}

impl Queue {
    /// Whether nobody else writes or is about to. On a single thread nobody else comes that far while it writes and syncs, so
    /// those who are ready are let come first; several threads come by themselves, and giving way costs a lone writer more there.
    async fn is_for_one(&self) -> bool {
        let _coming = Coming::count(&self.coming);
        if Handle::try_current().is_ok_and(|runtime| runtime.metrics().num_workers() == 1) {
            tokio::task::yield_now().await;
        }
        self.coming.load(Ordering::Relaxed) == 1 && self.length.load(Ordering::Acquire) == 0
    }

    /// Lets the thread that serves it end.
    pub(crate) fn close(&self) {
        lock(&self.jobs).is_closed = true;
        self.arrived.notify_all();
    }

    /// Waits until something is to be done, and a moment longer for as many as are expected: those who were answered
    /// just now come again, and a sync costs far more than that moment. `false` when it is time to end.
    fn wait_for(&self, expected: usize) -> bool {
        let mut waiting = self.wait(lock(&self.jobs), expected, GATHER);
        if waiting.is_idle() && expected > 1 {
            waiting = self.wait(waiting, 1, ABOUT);
            if !waiting.is_idle() {
                waiting = self.wait(waiting, expected, GATHER);
            }
        }
        if waiting.is_idle() {
            self.is_shared.store(false, Ordering::Relaxed);
            waiting = self.wait(waiting, 1, LINGER);
        }
        waiting.is_served = !waiting.jobs.is_empty();
        waiting.is_served
    }

    fn wait<'a>(
        &self,
        mut waiting: MutexGuard<'a, Waiting>,
        wanted: usize,
        patience: Duration,
    ) -> MutexGuard<'a, Waiting> {
        waiting.wanted = wanted.clamp(1, GROUP);
        let is_too_few = |waiting: &mut Waiting| waiting.jobs.len() < waiting.wanted && !waiting.is_closed;
        let waited = self.arrived.wait_timeout_while(waiting, patience, is_too_few);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Runs a write in a transaction of its own or of a group.
///
/// `work` must do all its checks before its first write: an error of its own undoes nothing of the group. An error from
/// SQLite after that fails the whole group.
pub(crate) async fn write<T: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    write_by(shared, Urgency::Now, Writes::Anything, work).await
}

/// As [`write`], where it is known what is written. What is deferred gets no sync of its own; in a group it shares that of
/// the others.
pub(crate) async fn write_by<T: Send + 'static>(
    shared: &Arc<Shared>,
    urgency: Urgency,
    writes: Writes,
    work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    shared.check_writable()?;
    shared.activity.fetch_add(1, Ordering::Relaxed);
    if !shared.queue.is_shared.load(Ordering::Relaxed) && shared.queue.is_for_one().await {
        match shared.writer.try_lock() {
            Ok(connection) => return write_alone(shared, &connection, urgency, writes, work),
            Err(TryLockError::Poisoned(poisoned)) => {
                return write_alone(shared, &poisoned.into_inner(), urgency, writes, work);
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
            let answer = match (result, failure) {
                (Some(Err(error)), _) => Err(error.into()),
                (_, Some(failure)) => Err(failure.into_error()),
                (Some(Ok(value)), None) => Ok(value),
                (None, None) => Err(StoreError::unavailable(Reason::Closed)),
            };
            // The caller may have gone; what was written stays written.
            drop(sender.send(answer));
        });
        (failure, finish)
    });
    enqueue(shared, Job { work, writes });
    match receiver.await {
        Ok(answer) => answer,
        Err(_) => Err(StoreError::Unavailable { reason: Reason::Closed, maybe_applied: true, source: None }),
    }
}

/// Runs a write on this thread, waiting for the connection: for work that runs on a blocking thread anyway.
pub(crate) fn write_blocking<T>(shared: &Shared, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T, StoreError> {
    shared.check_writable()?;
    write_now(shared, &lock(&shared.writer), Writes::Anything, work)
}

/// Runs a write in a transaction of its own, with the sync that its urgency asks for.
fn write_alone<T>(
    shared: &Shared,
    connection: &Connection,
    urgency: Urgency,
    writes: Writes,
    work: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T, StoreError> {
    if urgency == Urgency::Now || shared.options.durability == Durability::Process {
        return write_now(shared, connection, writes, work);
    }
    // The log is synced whole, so the next commit that syncs takes this one with it.
    connection::set_durability(connection, Durability::Process).map_err(StoreError::from)?;
    let written = write_now(shared, connection, writes, work);
    let restored = connection::set_durability(connection, Durability::Full);
    let value = written?;
    // What was written stays written, so this is no failure before the commit.
    restored.map_err(|error| GroupFailure::at_commit(&error).into_error())?;
    Ok(value)
}

/// Runs a write in a transaction of its own.
fn write_now<T>(
    shared: &Shared,
    connection: &Connection,
    writes: Writes,
    work: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T, StoreError> {
    begin(connection).map_err(StoreError::from)?;
    let begun = shared.watch.begin(connection);
    match work(connection) {
        Ok(value) => match commit(connection) {
            Ok(()) => {
                shared.watch.end(connection, &begun, writes);
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
    let mut waiting = lock(&shared.queue.jobs);
    waiting.jobs.push_back(job);
    shared.queue.length.store(waiting.jobs.len(), Ordering::Release);
    if waiting.is_served {
        // Woken once for a group, not once for each of it.
        if waiting.jobs.len() >= waiting.wanted {
            shared.queue.arrived.notify_one();
        }
        return;
    }
    waiting.is_served = true;
    let (store, queue) = (Arc::downgrade(shared), Arc::clone(&shared.queue));
    let thread = std::thread::Builder::new().name("threadkeep-sqlite-writer".to_owned());
    let spawned = thread.spawn(move || serve(&store, &queue));
    if spawned.is_err() {
        // No thread to be had: this caller carries out what waits.
        waiting.is_served = false;
        drop(waiting);
        while let Some(group) = take_group(&shared.queue) {
            write_group(shared, group);
        }
    }
}

/// Serves a queue until the store is closed or nothing comes. Between groups only the queue is held, so that a store
/// whose last handle goes is closed at once, and its file stands alone.
fn serve(shared: &Weak<Shared>, queue: &Queue) {
    let mut expected = 1;
    while queue.wait_for(expected) {
        let Some(group) = take_group(queue) else { continue };
        // The callers of these hold the store, or have gone: then there is nobody to write for.
        let Some(shared) = shared.upgrade() else { return };
        let written = write_group(&shared, group);
        expected = written + queue.length.load(Ordering::Acquire);
        queue.is_shared.store(expected > 1, Ordering::Relaxed);
    }
}

fn take_group(queue: &Queue) -> Option<Vec<Job>> {
    let mut waiting = lock(&queue.jobs);
    if waiting.jobs.is_empty() {
        return None;
    }
    let size = waiting.jobs.len().min(GROUP);
    let group = waiting.jobs.drain(..size).collect();
    queue.length.store(waiting.jobs.len(), Ordering::Release);
    Some(group)
}

/// Carries out a group, and tells how many it was.
fn write_group(shared: &Shared, mut group: Vec<Job>) -> usize {
    let connection = lock(&shared.writer);
    // While this thread waited for the connection, more may have come.
    if group.len() < GROUP
        && let Some(more) = take_group(&shared.queue)
    {
        group.extend(more);
    }
    let mut failure = begin(&connection).err().map(|error| GroupFailure::before(&error));
    let begun = shared.watch.begin(&connection);
    let threads_only = group.iter().all(|job| job.writes == Writes::Threads);
    let mut finishes = Vec::with_capacity(group.len());
    for job in group {
        let (broke, finish) = (job.work)(failure.is_none().then_some(&connection));
        failure = failure.or(broke);
        finishes.push(finish);
    }
    if failure.is_none() {
        match commit(&connection) {
            Ok(()) => {
                let writes = if threads_only { Writes::Threads } else { Writes::Anything };
                shared.watch.end(&connection, &begun, writes);
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
    // Some failures roll back by themselves; then there is nothing left to undo.
    if !connection.is_autocommit() {
        drop(connection.execute_batch("ROLLBACK"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqliteOptions, SqliteStore};

    /// What SQLite does at a commit: 1 leaves the log unsynced, 2 syncs it.
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
            let (shared, inside) = (Arc::clone(&store.shared), Arc::clone(&store.shared));
            writers.spawn(async move {
                let work = move |connection: &Connection| {
                    let sql = "INSERT INTO marks (name, value) VALUES (?1, 0)";
                    connection.execute(sql, [format!("writer {number}")])?;
                    // What was there before the transaction.
                    Ok(inside.watch.stamp())
                };
                write(&shared, work).await.unwrap().unwrap()
            });
        }
        let transactions: std::collections::HashSet<u64> = writers.join_all().await.into_iter().collect();
        assert!(transactions.len() < 32, "{} transactions", transactions.len());
    }

    #[tokio::test]
    async fn a_deferred_write_is_not_synced_and_the_next_one_is() {
        let folder = tempfile::tempdir().unwrap();
        for (durability, expected) in [(Durability::Full, [2, 1, 2]), (Durability::Process, [1, 1, 1])] {
            let options = SqliteOptions { durability, ..SqliteOptions::default() };
            // Without the keeper, which looks at the writer's connection now and then: what comes meanwhile shares a sync.
            let shared = Shared::open(&folder.path().join(format!("{durability:?}.db")), options).unwrap();
            let mut seen = Vec::new();
            for urgency in [Urgency::Now, Urgency::Deferred, Urgency::Now] {
                seen.push(write_by(&shared, urgency, Writes::Anything, synchronous).await.unwrap());
            }
            assert_eq!(seen, expected);
        }
    }
}
