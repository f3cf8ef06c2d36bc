//! Reads changes with their messages for subscribers. Concurrent reads are combined into one call.
//!
//! A notification from another instance often names many threads, and the subscribers of all these threads then read at
//! once. A round trip for each read would cost more than the data that it returns.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use threadkeep_core::{
    ChangePage, ChangesWithMessages, Kind, MessageQuery, OnCorrupt, PageBuilder, Result, Scope, StoreError,
    TaggedNumber, ThreadId, Timestamp, limits,
};
use tokio::sync::oneshot;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::changes::change_page;
use crate::error;
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{self, get, signed};

/// The index of a message's first column.
const MESSAGE_COLUMN: usize = 13;
/// The maximum number of concurrent batches of an instance.
const MAX_BATCHES: usize = 2;
/// The maximum number of reads in a batch.
const MAX_READS: usize = 64;
/// The number of messages after which a read returns no further changes.
const MAX_MESSAGES: i64 = 500;
/// The maximum size of the text that a read returns; the caller reads the rest separately.
const MAX_BYTES: usize = limits::PAGE_BYTES / MAX_READS;

/// The queue of reads.
#[derive(Default)]
pub(crate) struct ChangeReader(Mutex<State>);

#[derive(Default)]
struct State {
    /// The number of workers that execute batches.
    workers: usize,
    waiting: VecDeque<QueuedRead>,
}

struct QueuedRead {
    read: Arc<ChangeRead>,
    /// Dropped without a result if the caller must execute the read itself.
    sender: oneshot::Sender<Result<ChangesWithMessages>>,
}

/// A read of one thread's changes.
struct ChangeRead {
    caller: Caller,
    thread: ThreadId,
    now: i64,
    after: TaggedNumber,
    limit: usize,
}

/// Reads a thread's changes after a position, with the messages that they appended.
pub(crate) async fn list(
    shared: &Arc<Shared>,
    scope: &Scope,
    thread: ThreadId,
    after: TaggedNumber,
    limit: usize,
    now: Timestamp,
) -> Result<ChangesWithMessages> {
    limits::check_page(limit)?;
    let read = Arc::new(ChangeRead { caller: Caller::of(scope), thread, now: now.as_micros(), after, limit });
    let (sender, receiver) = oneshot::channel();
    if shared.change_reader.enqueue(QueuedRead { read: Arc::clone(&read), sender }) {
        tokio::spawn(run(Worker { shared: Arc::clone(shared), has_ended: false }));
    }
    match receiver.await {
        Ok(result) => result,
        Err(_) => execute_alone(shared, &read).await,
    }
}

impl ChangeReader {
    /// Queues a read. Returns whether the caller must start a worker.
    fn enqueue(&self, queued: QueuedRead) -> bool {
        let mut state = self.lock();
        state.waiting.push_back(queued);
        let needs_worker = state.workers < MAX_BATCHES;
        state.workers += usize::from(needs_worker);
        needs_worker
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker that executes batches, counted in [`State`] until it ends.
struct Worker {
    shared: Arc<Shared>,
    has_ended: bool,
}

impl Worker {
    /// Takes the next batch. Skips reads whose callers were cancelled. If the queue is empty, the worker ends.
    fn take_batch(&mut self) -> Vec<QueuedRead> {
        let mut state = self.shared.change_reader.lock();
        state.waiting.retain(|queued| !queued.sender.is_closed());
        if state.waiting.is_empty() {
            state.workers -= 1;
            self.has_ended = true;
        }
        let count = state.waiting.len().min(MAX_READS);
        state.waiting.drain(..count).collect()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        // The runtime is shutting down. Callers that still wait execute their reads themselves.
        let mut state = self.shared.change_reader.lock();
        state.workers -= 1;
        if state.workers == 0 {
            state.waiting.clear();
        }
    }
}

async fn run(mut worker: Worker) {
    loop {
        // Lets other subscribers that were woken by the same notification queue their reads.
        tokio::task::yield_now().await;
        let batch = worker.take_batch();
        if batch.is_empty() {
            return;
        }
        let reads: Vec<_> = batch.iter().map(|queued| Arc::clone(&queued.read)).collect();
        // If a batch fails, its reads are repeated individually.
        let Ok(results) = execute(&worker.shared, &reads).await else { continue };
        for (queued, result) in batch.into_iter().zip(results) {
            // Fails if the caller was cancelled.
            drop(queued.sender.send(result));
        }
    }
}

async fn execute_alone(shared: &Shared, read: &Arc<ChangeRead>) -> Result<ChangesWithMessages> {
    let results = execute(shared, std::slice::from_ref(read)).await?;
    results.into_iter().next().unwrap_or(Err(StoreError::NotFound(Kind::Thread)))
}

/// Executes several reads in one call and returns one result for each.
async fn execute(shared: &Shared, reads: &[Arc<ChangeRead>]) -> error::Result<Vec<Result<ChangesWithMessages>>> {
    let tenants: Vec<&str> = reads.iter().map(|read| read.caller.tenant.as_str()).collect();
    let callers: Vec<&str> = reads.iter().map(|read| read.caller.name.as_str()).collect();
    let threads: Vec<Uuid> = reads.iter().map(|read| read.thread.0).collect();
    let nows: Vec<i64> = reads.iter().map(|read| read.now).collect();
    let afters: Vec<i64> = reads.iter().map(|read| signed(read.after.number)).collect();
    let limits: Vec<i64> = reads.iter().map(|read| signed(read.limit as u64)).collect();
    let sql = "SELECT place, thread_seq, thread_change, thread_first_seq, thread_tag, log_from, after_tag, \
               change, at, first_seq, count, effects, tag, \
               seq, id, external_id, revision, created_at, body \
               FROM threadkeep.list_followed($1, $2, $3, $4, $5, $6, $7, $8)";
    let values: [Parameter<'_>; 8] = [
        (&tenants, Type::TEXT_ARRAY),
        (&callers, Type::TEXT_ARRAY),
        (&threads, Type::UUID_ARRAY),
        (&nows, Type::INT8_ARRAY),
        (&afters, Type::INT8_ARRAY),
        (&limits, Type::INT8_ARRAY),
        (&MAX_MESSAGES, Type::INT8),
        (&signed(MAX_BYTES as u64), Type::INT8),
    ];
    let rows = shared.call(sql, &values).await?;
    let place = |row: &Row| get::<i32>(row, 0).map_or(0, i32::unsigned_abs) as usize;
    let mut results: Vec<_> = reads.iter().map(|_| Err(StoreError::NotFound(Kind::Thread))).collect();
    for rows in rows.chunk_by(|one, next| place(one) == place(next)) {
        let index = place(&rows[0]).wrapping_sub(1);
        if let (Some(read), Some(result)) = (reads.get(index), results.get_mut(index)) {
            *result = decode(rows, read.after).map_err(StoreError::from);
        }
    }
    Ok(results)
}

/// Decodes the rows of one thread: its changes, then their messages.
fn decode(rows: &[Row], after: TaggedNumber) -> error::Result<ChangesWithMessages> {
    let is_message = |row: &&Row| get::<Option<i64>>(row, MESSAGE_COLUMN).is_ok_and(|seq| seq.is_some());
    let (changes, messages) = rows.split_at(rows.iter().position(|row| is_message(&row)).unwrap_or(rows.len()));
    let page = change_page(changes, 1, after)?;
    let ChangePage::Changes { positions, .. } = page else { return Ok(ChangesWithMessages::new(page, None)) };
    if page.appended_positions().is_none() {
        return Ok(ChangesWithMessages::new(page, None));
    }
    let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::following(0, messages.len() + 1) };
    let mut builder = PageBuilder::new(&query, positions).with_max_bytes(MAX_BYTES);
    for row in messages {
        let bytes = get::<Option<&str>>(row, MESSAGE_COLUMN + 5)?.map_or(0, str::len);
        if !builder.push(bytes, || row::message(row, MESSAGE_COLUMN))? {
            break;
        }
    }
    Ok(ChangesWithMessages::new(page, Some(builder.finish())))
}
