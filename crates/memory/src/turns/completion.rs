//! Completions: turns that are a single model call. They lock their thread, and are stored as a whole at the end or not at all.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use threadkeep_core::{Map, RecordState, Scope, StoreError, TaggedNumber, ThreadId};
use tokio::sync::Mutex;

use super::lock::{self, LegacyLock};
use super::record::{self, RunRecord, TurnKind};
use super::{ContextSize, Driver, LEASE_RENEWAL_INTERVAL, ThreadAccess, Versioned, lease_until, wait_for_stop_request};
use crate::{Appended, BatchBuilder, Memory, MemoryError, Result};

/// Maximum number of attempts to lock a thread while others lock and release it.
const ATTEMPTS: usize = 16;

/// A model call that holds the lock of its thread. Cheap to clone; all clones share the lock.
///
/// A completion ends with [`Completion::finish`] or [`Completion::abandon`]. If it is dropped or its process ends, only the lock
/// remains. Others can take over the lock: immediately on the same machine, after [`super::LEASE`] on another one.
#[derive(Clone, Debug)]
pub struct Completion {
    memory: Memory,
    writer: Scope,
    thread: ThreadId,
    turn: String,
    /// The change number of the commit that acquired the lock.
    acquired_at: TaggedNumber,
    /// The lock's record as last written, and its version, which the next commit requires.
    lock: Arc<Mutex<Versioned<RunRecord>>>,
    /// Registered until the last clone is dropped, so that others on this machine can find out that the driver has ended.
    _driver: Arc<Driver>,
}

/// The result of acquiring the lock of a thread.
#[derive(Debug)]
pub enum LockResult {
    /// The lock was acquired.
    Acquired(Completion),
    /// Another turn holds the lock.
    Busy,
    /// An interrupted run of an assistant holds the lock. That run has to be resumed or closed first.
    Interrupted(Box<Versioned<RunRecord>>),
}

/// Why [`Completion::run`] interrupted the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// A stop was requested.
    Stopped,
    /// The lease ended and another turn took over the lock, so nothing can be stored any more.
    LockLost,
}

impl Completion {
    /// Tries to lock a thread for the turn with the id `turn`, which calls `model`. Does not wait for another turn to end.
    ///
    /// # Errors
    /// `NotFound` if the scope cannot read the thread; errors from the store.
    pub async fn acquire(
        memory: &Memory,
        scope: &Scope,
        thread: ThreadId,
        turn: &str,
        model: &str,
    ) -> Result<LockResult> {
        let driver = Driver::begin(memory);
        let record = new_record(memory, scope, turn, model, &driver);
        let (mut writer, mut legacy, mut abandoned) = (scope.clone(), LegacyLock::default(), None);
        for _ in 0..ATTEMPTS {
            let batch = match abandoned.take() {
                None => lock::acquire(memory.batch(), &record, &legacy)?,
                Some(version) => {
                    lock::renew(memory.batch().require(record::active_name(), RecordState::Version(version)), &record)?
                }
            };
            let error = match batch.commit(&writer, thread).await {
                Ok(committed) => {
                    let acquired_at = committed.tagged();
                    let lock = Arc::new(Mutex::new(Versioned { value: record, version: acquired_at }));
                    let (memory, turn, driver) = (memory.clone(), turn.to_owned(), Arc::new(driver));
                    return Ok(LockResult::Acquired(Self {
                        memory,
                        writer,
                        thread,
                        turn,
                        acquired_at,
                        lock,
                        _driver: driver,
                    }));
                }
                Err(error) => error,
            };
            let is_denied = matches!(error, MemoryError::Store(StoreError::Denied(_)));
            if is_denied && matches!(writer, Scope::User(..)) {
                // A user may append messages to a shared thread, but only the tenant may write its records.
                writer = Scope::Tenant(scope.tenant_id().clone());
                continue;
            }
            if !legacy.is_conflict(&error) && !record::is_run_conflict(&error) {
                return Err(error);
            }
            let access = ThreadAccess { scope: scope.clone(), writer: writer.clone(), thread, author: None };
            match access.runs(memory).await?.active {
                None if legacy.is_free(memory, &access).await? => {}
                None => return Ok(LockResult::Busy),
                Some(active) if active.value.is_alive(memory) => return Ok(LockResult::Busy),
                Some(active) if active.value.kind == TurnKind::Completion => abandoned = Some(active.version),
                Some(active) => return Ok(LockResult::Interrupted(Box::new(active))),
            }
        }
        Err(MemoryError::Contended { what: "the thread", attempts: ATTEMPTS })
    }

    /// The locked thread.
    #[must_use]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// The change number of the commit that acquired the lock. Data that was read at the previous change number is still valid
    /// ([`crate::Prefetched::after`]).
    #[must_use]
    pub fn acquired_at(&self) -> TaggedNumber {
        self.acquired_at
    }

    /// Runs `work` until it is done, a stop is requested, or the lock is lost. Renews the lease every
    /// [`LEASE_RENEWAL_INTERVAL`].
    ///
    /// # Errors
    /// The reason why the work was interrupted.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        let mut work = pin!(work);
        let mut stop_request = pin!(wait_for_stop_request(&self.memory, &self.writer, self.thread, &self.turn));
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = &mut stop_request => return Err(Interrupted::Stopped),
                () = self.memory.runtime().sleep(LEASE_RENEWAL_INTERVAL) => {}
            }
            if !self.renew().await {
                return Err(Interrupted::LockLost);
            }
        }
    }

    /// Commits a batch, which also releases the lock.
    ///
    /// # Errors
    /// A conflict that [`Completion::is_lock_lost`] recognises if another turn took over the lock; errors from the store.
    pub async fn finish(&self, batch: BatchBuilder) -> Result<Appended> {
        let lock = self.lock.lock().await;
        let batch = batch.require(record::active_name(), RecordState::Version(lock.version));
        lock::release(batch).commit(&self.writer, self.thread).await
    }

    /// Whether a commit failed because another turn took over the lock.
    #[must_use]
    pub fn is_lock_lost(error: &MemoryError) -> bool {
        record::is_run_conflict(error)
    }

    /// Releases the lock without storing anything.
    pub async fn abandon(self) {
        // If the lock cannot be released, it becomes free at the end of its lease.
        drop(self.finish(self.memory.batch()).await);
    }

    /// Renews the lease. Returns `false` if the lock was lost.
    async fn renew(&self) -> bool {
        let mut lock = self.lock.lock().await;
        let record = RunRecord { lease_until: lease_until(&self.memory), ..lock.value.clone() };
        let batch = self.memory.batch().deferred().require(record::active_name(), RecordState::Version(lock.version));
        let Ok(batch) = lock::renew(batch, &record) else { return true };
        match batch.commit(&self.writer, self.thread).await {
            Ok(committed) => {
                *lock = Versioned { value: record, version: committed.tagged() };
                true
            }
            // Other errors may be temporary, so the next renewal tries again.
            Err(error) => !record::is_run_conflict(&error),
        }
    }
}

fn new_record(memory: &Memory, scope: &Scope, turn: &str, model: &str, driver: &Driver) -> RunRecord {
    RunRecord {
        turn: turn.to_owned(),
        kind: TurnKind::Completion,
        assistant: String::new(),
        graph: String::new(),
        version: 0,
        requester: Some(scope.default_owner()),
        driver: driver.name().to_owned(),
        lease_until: lease_until(memory),
        taken_over: 0,
        extra_input: Map::new(),
        skips_trimming: false,
        is_ephemeral: false,
        is_prepared: true,
        model: model.to_owned(),
        started_at: memory.now(),
        entries: 0,
        started_once: Vec::new(),
        run_messages: 0,
        messages: 0,
        context: ContextSize::default(),
        active_ms: 0,
        embedding_calls: 0,
        pending_question: None,
    }
}
