//! A store and a model with crash points, which log what they do and abort the process at a chosen point.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use async_trait::async_trait;
use threadkeep_core::{
    Backend, Batch, ChangePage, ChangedThreads, ChangesWithMessages, ChatAnswer, ChatModel, ChatRequest, CommitOutcome,
    DeltaSink, DerivedWrite, Message, MessagePage, MessageQuery, MessageRef, ModelError, Namespace, OpenOutcome,
    OpenThread, Record, RecordOwner, RecordQuery, RecordWrite, Result as StoreResult, Scope, Store, TaggedNumber,
    ThreadId, ThreadPage, ThreadQuery, ThreadRead, ThreadRef, ThreadView, Timestamp, UserCursor, WakeUps, WriteOutcome,
};

/// Counts and logs the points that a process passes, and aborts the process at a chosen point.
#[derive(Debug)]
pub(crate) struct CrashPoints {
    log: Mutex<File>,
    passed: AtomicU64,
    /// The number of the point at which the process aborts; 0 for none.
    die_at: u64,
}

impl CrashPoints {
    pub(crate) fn new(log: &Path, die_at: u64) -> Result<Arc<Self>> {
        let log = Mutex::new(OpenOptions::new().create(true).append(true).open(log)?);
        Ok(Arc::new(Self { log, passed: AtomicU64::new(0), die_at }))
    }

    /// Passes a point: logs its name, then aborts the process if it is the chosen point.
    pub(crate) fn pass(&self, name: &str) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // Errors can be ignored: if a write fails, the checks report a missing effect.
        drop(log.write_all(format!("{name}\n").as_bytes()));
        if self.passed.fetch_add(1, Ordering::SeqCst) + 1 == self.die_at {
            std::process::abort();
        }
    }
}

/// A model with a crash point before and after its answer.
#[derive(Debug)]
pub(crate) struct CrashingModel<M> {
    pub(crate) points: Arc<CrashPoints>,
    pub(crate) inner: M,
}

#[async_trait]
impl<M: ChatModel> ChatModel for CrashingModel<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let exchanges = threadkeep_models::Turn::of(request).exchanges().len();
        self.points.pass(&format!("begin model after {exchanges}"));
        let answer = self.inner.answer(request, deltas).await;
        self.points.pass(&format!("end model after {exchanges}"));
        answer
    }
}

/// A store with a crash point before and after each commit.
#[derive(Debug)]
pub(crate) struct CrashingStore {
    points: Arc<CrashPoints>,
    inner: Arc<dyn Store>,
}

impl CrashingStore {
    pub(crate) fn wrap(backend: Backend, points: Arc<CrashPoints>) -> Backend {
        let Backend { store: inner, maintenance, search } = backend;
        Backend { store: Arc::new(Self { points, inner }), maintenance, search }
    }
}

#[async_trait]
impl Store for CrashingStore {
    async fn commit(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: Batch,
        now: Timestamp,
    ) -> StoreResult<CommitOutcome> {
        self.points.pass("begin commit");
        let outcome = self.inner.commit(scope, thread, batch, now).await;
        self.points.pass("end commit");
        outcome
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> StoreResult<OpenOutcome> {
        self.inner.open_thread(scope, open, now).await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> StoreResult<Option<ThreadView>> {
        self.inner.read_thread(scope, thread, read, now).await
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> StoreResult<ThreadPage> {
        self.inner.list_threads(scope, query, now).await
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> StoreResult<ChangedThreads> {
        self.inner.list_changed_threads(scope, after, limit, now).await
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> StoreResult<()> {
        self.inner.delete_thread(scope, thread, now).await
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> StoreResult<MessagePage> {
        self.inner.list_messages(scope, thread, query, now).await
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> StoreResult<Vec<Message>> {
        self.inner.find_messages(scope, thread, messages, now).await
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> StoreResult<ChangePage> {
        self.inner.list_changes(scope, thread, after, limit, now).await
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> StoreResult<ChangesWithMessages> {
        self.inner.list_changes_with_messages(scope, thread, after, limit, now).await
    }

    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> StoreResult<Option<Record>> {
        self.inner.find_record(scope, owner, namespace, key, now).await
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> StoreResult<Vec<Record>> {
        self.inner.list_records(scope, query, now).await
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> StoreResult<WriteOutcome> {
        self.inner.write_record(scope, write, now).await
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> StoreResult<WriteOutcome> {
        self.inner.write_derived(scope, thread, write, now).await
    }

    async fn wake_ups(&self) -> StoreResult<WakeUps> {
        self.inner.wake_ups().await
    }

    fn stamp(&self) -> Option<u64> {
        self.inner.stamp()
    }

    fn records_stamp(&self) -> Option<u64> {
        self.inner.records_stamp()
    }
}
