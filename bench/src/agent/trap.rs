//! A store, a model and effects that write down what they do, and end the process at the point they are told.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use async_trait::async_trait;
use threadkeep_core::{
    Backend, Batch, ChangePage, ChangedThreads, ChangesWithMessages, ChatAnswer, ChatModel, ChatRequest, CommitOutcome,
    DeltaSink, DerivedWrite, Document, DocumentOwner, DocumentQuery, DocumentWrite, Message, MessageName, MessagePage,
    MessageQuery, ModelError, Namespace, OpenThread, Opened, Result as StoreResult, Scope, Store, Tagged, ThreadId,
    ThreadName, ThreadPage, ThreadQuery, ThreadRead, ThreadView, Timestamp, UserCursor, WakeUps, Written,
};

/// Counts the points that a process passes, and ends it at one.
#[derive(Debug)]
pub(crate) struct Trap {
    log: Mutex<File>,
    passed: AtomicU64,
    /// The point at which the process dies; 0 for none.
    die_at: u64,
}

impl Trap {
    pub(crate) fn new(log: &Path, die_at: u64) -> Result<Arc<Self>> {
        let log = Mutex::new(OpenOptions::new().create(true).append(true).open(log)?);
        Ok(Arc::new(Self { log, passed: AtomicU64::new(0), die_at }))
    }

    /// Passes a point: what happens here is in the log, whatever comes next.
    pub(crate) fn pass(&self, what: &str) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written would show as missing effects.
        drop(log.write_all(format!("{what}\n").as_bytes()));
        if self.passed.fetch_add(1, Ordering::SeqCst) + 1 == self.die_at {
            std::process::abort();
        }
    }
}

/// A model that passes a point before and after it answers.
#[derive(Debug)]
pub(crate) struct TrappedModel<M> {
    pub(crate) trap: Arc<Trap>,
    pub(crate) inner: M,
}

#[async_trait]
impl<M: ChatModel> ChatModel for TrappedModel<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let asked = threadkeep_models::Turn::of(request).exchanges().len();
        self.trap.pass(&format!("begin model after {asked}"));
        let answer = self.inner.answer(request, deltas).await;
        self.trap.pass(&format!("end model after {asked}"));
        answer
    }
}

/// A store that passes a point before and after each commit.
#[derive(Debug)]
pub(crate) struct TrappedStore {
    trap: Arc<Trap>,
    inner: Arc<dyn Store>,
}

impl TrappedStore {
    pub(crate) fn over(backend: Backend, trap: Arc<Trap>) -> Backend {
        let Backend { store: inner, maintenance, search } = backend;
        Backend { store: Arc::new(Self { trap, inner }), maintenance, search }
    }
}

#[async_trait]
impl Store for TrappedStore {
    async fn commit(
        &self,
        scope: &Scope,
        thread: ThreadId,
        batch: Batch,
        now: Timestamp,
    ) -> StoreResult<CommitOutcome> {
        self.trap.pass("begin commit");
        let outcome = self.inner.commit(scope, thread, batch, now).await;
        self.trap.pass("end commit");
        outcome
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> StoreResult<Opened> {
        self.inner.open_thread(scope, open, now).await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        name: &ThreadName,
        read: &ThreadRead,
        now: Timestamp,
    ) -> StoreResult<Option<ThreadView>> {
        self.inner.read_thread(scope, name, read, now).await
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
        names: &[MessageName],
        now: Timestamp,
    ) -> StoreResult<Vec<Message>> {
        self.inner.find_messages(scope, thread, names, now).await
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: Tagged,
        limit: usize,
        now: Timestamp,
    ) -> StoreResult<ChangePage> {
        self.inner.list_changes(scope, thread, after, limit, now).await
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: Tagged,
        limit: usize,
        now: Timestamp,
    ) -> StoreResult<ChangesWithMessages> {
        self.inner.list_changes_with_messages(scope, thread, after, limit, now).await
    }

    async fn find_document(
        &self,
        scope: &Scope,
        owner: &DocumentOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> StoreResult<Option<Document>> {
        self.inner.find_document(scope, owner, namespace, key, now).await
    }

    async fn list_documents(&self, scope: &Scope, query: &DocumentQuery, now: Timestamp) -> StoreResult<Vec<Document>> {
        self.inner.list_documents(scope, query, now).await
    }

    async fn write_document(&self, scope: &Scope, write: DocumentWrite, now: Timestamp) -> StoreResult<Written> {
        self.inner.write_document(scope, write, now).await
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> StoreResult<Written> {
        self.inner.write_derived(scope, thread, write, now).await
    }

    async fn wake_ups(&self) -> StoreResult<WakeUps> {
        self.inner.wake_ups().await
    }

    fn stamp(&self) -> Option<u64> {
        self.inner.stamp()
    }

    fn documents_stamp(&self) -> Option<u64> {
        self.inner.documents_stamp()
    }
}
