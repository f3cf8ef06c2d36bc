//! A turn that is a single call of a model: it holds its thread, and what it makes is stored whole at its end or not at all.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use threadkeep_core::{Map, RecordState, Scope, StoreError, Tagged, ThreadId};
use tokio::sync::Mutex;

use super::lock::{self, LegacyLock};
use super::record::{self, RunRecord, TurnKind};
use super::{ContextNumbers, Driver, ThreadAccess, LEASE_RENEWAL_INTERVAL, Versioned, lease_until, wait_for_stop_request};
use crate::{Appended, BatchBuilder, Memory, MemoryError, Result};

/// How often a thread is tried that others take and let go of meanwhile.
const ATTEMPTS: usize = 16;

/// A call of a model that holds its thread. Cheap to clone; all clones are the same one.
///
/// It ends with [`Completion::finish`] or [`Completion::abandon`]. One that is dropped, or whose process ends, leaves
/// nothing but its lock, which whoever comes next knows to be free: at once on the same machine, after
/// [`super::LEASE`] on another one.
#[derive(Clone, Debug)]
pub struct Completion {
    memory: Memory,
    writer: Scope,
    thread: ThreadId,
    turn: String,
    /// The change of the commit that took the thread.
    acquired_at: Tagged,
    /// What was written last, with the version that fences this driver.
    held: Arc<Mutex<Versioned<RunRecord>>>,
    /// Others here, and on this machine, know by it that the driver is gone.
    _driving: Arc<Driver>,
}

/// What came of taking a thread.
#[derive(Debug)]
pub enum LockResult {
    /// It is the caller's.
    Acquired(Completion),
    /// Another turn holds it.
    Busy,
    /// A turn of an assistant was cut off in it, which has to be resumed or closed first.
    Interrupted(Box<Versioned<RunRecord>>),
}

/// Why work under a completion did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// Somebody asked for it to stop.
    Stopped,
    /// It was thought to be gone, and another turn took the thread: nothing of it can be stored any more.
    LockLost,
}

impl Completion {
    /// Takes a thread for a call of the model of that name, under the turn's id. It never waits.
    ///
    /// # Errors
    /// `NotFound` where the scope does not reach the thread; those of the store.
    pub async fn take(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str, model: &str) -> Result<LockResult> {
        let driving = Driver::begin(memory);
        let record = new_record(memory, scope, turn, model, &driving);
        let (mut writer, mut older, mut left) = (scope.clone(), LegacyLock::default(), None);
        for _ in 0..ATTEMPTS {
            let batch = match left.take() {
                None => lock::acquire(memory.batch(), &record, &older)?,
                Some(version) => {
                    lock::renew(memory.batch().require(record::active(), RecordState::Version(version)), &record)?
                }
            };
            let refused = match batch.commit(&writer, thread).await {
                Ok(committed) => {
                    let acquired_at = committed.tagged();
                    let held = Arc::new(Mutex::new(Versioned { value: record, version: acquired_at }));
                    let (memory, turn, driving) = (memory.clone(), turn.to_owned(), Arc::new(driving));
                    return Ok(LockResult::Acquired(Self {
                        memory,
                        writer,
                        thread,
                        turn,
                        acquired_at,
                        held,
                        _driving: driving,
                    }));
                }
                Err(error) => error,
            };
            let is_denied = matches!(refused, MemoryError::Store(StoreError::Denied(_)));
            if is_denied && matches!(writer, Scope::User(..)) {
                // A user may speak in a shared thread; who holds it is the application's to write.
                writer = Scope::Tenant(scope.tenant_id().clone());
                continue;
            }
            if !older.has_refused(&refused) && !record::is_run_conflict(&refused) {
                return Err(refused);
            }
            let access = ThreadAccess { scope: scope.clone(), writer: writer.clone(), thread, author: None };
            match access.runs(memory).await?.active {
                None if older.is_free(memory, &access).await? => {}
                None => return Ok(LockResult::Busy),
                Some(active) if active.value.is_alive(memory) => return Ok(LockResult::Busy),
                Some(active) if active.value.kind == TurnKind::Completion => left = Some(active.version),
                Some(active) => return Ok(LockResult::Interrupted(Box::new(active))),
            }
        }
        Err(MemoryError::Contended { what: "the thread", attempts: ATTEMPTS })
    }

    /// The thread that it holds.
    #[must_use]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// The change that the thread stood at when it was taken: what was read before can still be used where that is the next one
    /// ([`crate::Prefetched::after`]).
    #[must_use]
    pub fn acquired_at(&self) -> Tagged {
        self.acquired_at
    }

    /// Works while it holds the thread, with a sign of life every [`LEASE_RENEWAL_INTERVAL`], until the work is done, somebody asked
    /// for the turn to stop, or the thread is another one's.
    ///
    /// # Errors
    /// Why it did not come to its end.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        let mut work = pin!(work);
        let mut stopped = pin!(wait_for_stop_request(&self.memory, &self.writer, self.thread, &self.turn));
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = &mut stopped => return Err(Interrupted::Stopped),
                () = self.memory.runtime().sleep(LEASE_RENEWAL_INTERVAL) => {}
            }
            if !self.give_sign().await {
                return Err(Interrupted::LockLost);
            }
        }
    }

    /// Stores what a batch holds and lets go of the thread, all by one commit.
    ///
    /// # Errors
    /// [`Completion::is_lock_lost`] tells that another turn took the thread; those of the store.
    pub async fn finish(&self, batch: BatchBuilder) -> Result<Appended> {
        let held = self.held.lock().await;
        let batch = batch.require(record::active(), RecordState::Version(held.version));
        lock::release(batch).commit(&self.writer, self.thread).await
    }

    /// Whether a commit failed because the thread is another turn's.
    #[must_use]
    pub fn is_lock_lost(error: &MemoryError) -> bool {
        record::is_run_conflict(error)
    }

    /// Lets go of the thread, with nothing stored.
    pub async fn abandon(self) {
        // What cannot be let go is free by itself later.
        drop(self.finish(self.memory.batch()).await);
    }

    /// Says that it is there. Tells whether it still holds the thread, as far as is known.
    async fn give_sign(&self) -> bool {
        let mut held = self.held.lock().await;
        let record = RunRecord { lease_until: lease_until(&self.memory), ..held.value.clone() };
        let batch = self.memory.batch().deferred().require(record::active(), RecordState::Version(held.version));
        let Ok(batch) = lock::renew(batch, &record) else { return true };
        match batch.commit(&self.writer, self.thread).await {
            Ok(committed) => {
                *held = Versioned { value: record, version: committed.tagged() };
                true
            }
            // A store that cannot be asked now may be there for the next sign.
            Err(error) => !record::is_run_conflict(&error),
        }
    }
}

fn new_record(memory: &Memory, scope: &Scope, turn: &str, model: &str, driving: &Driver) -> RunRecord {
    RunRecord {
        turn: turn.to_owned(),
        kind: TurnKind::Completion,
        assistant: String::new(),
        graph: String::new(),
        version: 0,
        asker: Some(scope.default_owner()),
        driver: driving.name().to_owned(),
        lease_until: lease_until(memory),
        taken_over: 0,
        given: Map::new(),
        is_ephemeral: false,
        is_prepared: true,
        model: model.to_owned(),
        started_at: memory.now(),
        entries: 0,
        begun: Vec::new(),
        said: 0,
        messages: 0,
        context: ContextNumbers::default(),
        worked_ms: 0,
        embedding_calls: 0,
    }
}
