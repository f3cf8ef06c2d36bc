//! Batches commits that arrive faster than they can be executed: a batch is one transaction, with one flush to disk and one
//! round trip.
//!
//! Commits are distributed over queues by thread, so that commits to the same thread wait in a queue instead of for a
//! lock in the database. A commit that finds its queue idle is executed immediately; commits that arrive in the meantime
//! form the next batch. A batch does not wait for threads that another instance has locked: such a commit, and every
//! commit of a batch that the server rejected, is repeated individually.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use threadkeep_core::{Reason, Result, StoreError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_postgres::Row;

use crate::commit::{CommitCall, execute_alone, execute_batch, is_locked};
use crate::error::PostgresError;
use crate::pool::Shared;

/// The maximum number of queues, each of which executes one transaction at a time: enough to keep the server busy while
/// transactions wait for the disk.
const MAX_QUEUES: usize = 8;
/// The maximum number of commits in a batch.
const MAX_BATCH_CALLS: usize = 64;
/// The number of messages in a batch at which no further commit is added.
const MAX_BATCH_MESSAGES: usize = 1_000;

/// The queues of one instance.
pub(crate) struct CommitBatcher(Vec<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    /// Whether a [`QueueLease`] exists.
    is_leased: bool,
    waiting: VecDeque<QueuedCall>,
}

struct QueuedCall {
    call: Arc<CommitCall>,
    sender: oneshot::Sender<Result<CallResult>>,
}

enum CallResult {
    Row(Row),
    /// The batch was rejected and rolled back; the call must be repeated individually.
    Retry,
}

impl CommitBatcher {
    /// Creates queues for a pool. They use at most half of its connections, to leave the rest for reads.
    pub(crate) fn new(pool_size: usize) -> Self {
        Self((0..(pool_size / 2).clamp(1, MAX_QUEUES)).map(|_| Mutex::default()).collect())
    }

    /// Returns the queue for a call's thread.
    fn queue_index(&self, call: &CommitCall) -> usize {
        (call.thread.0.as_u128() % self.0.len() as u128) as usize
    }

    fn queue(&self, index: usize) -> MutexGuard<'_, Queue> {
        self.0[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Executes a call, alone or in a batch, and returns the function's row.
pub(crate) async fn call(shared: &Arc<Shared>, call: &Arc<CommitCall>) -> Result<Row> {
    shared.note_activity();
    let result = match enter(shared, call) {
        Entry::Immediate(_lease) => execute_alone(shared, call, false).await.map(CallResult::Row)?,
        // The sender is dropped only if the runtime is shut down.
        Entry::Queued(receiver) => receiver.await.unwrap_or(Err(StoreError::unavailable(Reason::Closed)))?,
    };
    match result {
        CallResult::Row(row) if !is_locked(&row) => Ok(row),
        _ => execute_alone(shared, call, true).await,
    }
}

enum Entry {
    /// The queue was idle; the caller executes the call while it holds the lease.
    Immediate(QueueLease),
    Queued(oneshot::Receiver<Result<CallResult>>),
}

fn enter(shared: &Arc<Shared>, call: &Arc<CommitCall>) -> Entry {
    let index = shared.commit_batcher.queue_index(call);
    let mut queue = shared.commit_batcher.queue(index);
    if queue.is_leased {
        let (sender, receiver) = oneshot::channel();
        queue.waiting.push_back(QueuedCall { call: Arc::clone(call), sender });
        return Entry::Queued(receiver);
    }
    queue.is_leased = true;
    Entry::Immediate(QueueLease { shared: Arc::clone(shared), index, is_active: true })
}

/// The exclusive right to execute calls of a queue. When it is dropped, because the call completed or was cancelled, a task
/// takes over the waiting calls.
struct QueueLease {
    shared: Arc<Shared>,
    index: usize,
    /// `false` until the task that takes over has started. If it never starts, the runtime is shutting down.
    is_active: bool,
}

impl QueueLease {
    /// Takes the next batch from the queue. Skips calls whose callers were cancelled.
    fn take_batch(&self) -> Vec<QueuedCall> {
        let mut queue = self.shared.commit_batcher.queue(self.index);
        let (mut batch, mut messages) = (Vec::new(), 0);
        while batch.len() < MAX_BATCH_CALLS && messages < MAX_BATCH_MESSAGES {
            let Some(next) = queue.waiting.pop_front() else { break };
            if !next.sender.is_closed() {
                messages += next.call.message_count();
                batch.push(next);
            }
        }
        batch
    }
}

impl Drop for QueueLease {
    fn drop(&mut self) {
        let runtime = Handle::try_current().ok().filter(|_| self.is_active);
        let mut queue = self.shared.commit_batcher.queue(self.index);
        match runtime {
            Some(runtime) if !queue.waiting.is_empty() => {
                drop(queue);
                let next = Self { shared: Arc::clone(&self.shared), index: self.index, is_active: false };
                runtime.spawn(drain(next));
            }
            _ => {
                queue.is_leased = false;
                queue.waiting.clear();
            }
        }
    }
}

/// Executes the calls of a queue in batches until it is empty.
async fn drain(mut lease: QueueLease) {
    lease.is_active = true;
    loop {
        let batch = lease.take_batch();
        if batch.is_empty() {
            return;
        }
        let calls: Vec<_> = batch.iter().map(|queued| Arc::clone(&queued.call)).collect();
        let results = execute(&lease.shared, &calls).await;
        for (queued, result) in batch.into_iter().zip(results) {
            // Fails if the caller was cancelled.
            drop(queued.sender.send(result));
        }
    }
}

async fn execute(shared: &Shared, calls: &[Arc<CommitCall>]) -> Vec<Result<CallResult>> {
    if let [call] = calls {
        return vec![execute_alone(shared, call, false).await.map(CallResult::Row)];
    }
    match execute_batch(shared, calls).await {
        Ok(rows) => rows.into_iter().map(|row| Ok(CallResult::Row(row))).collect(),
        Err(error) => {
            let is_rejected = matches!(&error, PostgresError::Server(error) if error.as_db_error().is_some());
            let error = error.into_write_error();
            let one = || match &error {
                StoreError::Unavailable { reason, maybe_applied, .. } if *maybe_applied || !is_rejected => {
                    Err(StoreError::Unavailable { reason: *reason, maybe_applied: *maybe_applied, source: None })
                }
                _ => Ok(CallResult::Retry),
            };
            calls.iter().map(|_| one()).collect()
        }
    }
}
