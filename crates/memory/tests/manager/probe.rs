//! A store wrapper that counts calls, and makes writes fail as a test specifies.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt;
use threadkeep_core::{
    Backend, Batch, ChangePage, ChangedThreads, ChangesWithMessages, CommitOutcome, DerivedWrite, Message, MessagePage,
    MessageQuery, MessageRef, Namespace, OpenOutcome, OpenThread, Reason, Record, RecordOwner, RecordQuery,
    RecordWrite, Result, Scope, Store, StoreError, TaggedNumber, ThreadId, ThreadPage, ThreadQuery, ThreadRead,
    ThreadRef, ThreadView, Timestamp, UserCursor, WakeUps, WriteOutcome,
};

use tokio::sync::oneshot;

use super::test_env::TestEnv;

/// The outcome of a write, as specified by the test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// The write is not executed, and fails with a retryable error.
    Rejected,
    /// The write is not executed, but the error does not show whether it was.
    LostRequest,
    /// The write is executed, but the error does not show whether it was.
    LostResponse,
    /// The write is not executed, and fails with an error that is not retryable.
    DiskFull,
    /// The write is executed.
    Success,
}

#[derive(Debug)]
pub(crate) struct Probe {
    inner: Backend,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    outcomes: Mutex<VecDeque<Outcome>>,
    /// Blocks the next derived write: the sender reports that the write was called, and the receiver waits for its release.
    blocked: Mutex<Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>>,
    has_wake_ups: bool,
}

impl Probe {
    /// Creates a test environment on an in-memory store.
    pub(crate) fn new_env() -> (Arc<Self>, TestEnv) {
        Self::new_env_on(threadkeep_store_memory::MemoryStore::open())
    }

    /// Creates a test environment whose store never sends wake-ups.
    pub(crate) fn new_env_without_wake_ups() -> (Arc<Self>, TestEnv) {
        Self::new_env_with(threadkeep_store_memory::MemoryStore::open(), false)
    }

    /// Creates a test environment on the given store.
    pub(crate) fn new_env_on(inner: Backend) -> (Arc<Self>, TestEnv) {
        Self::new_env_with(inner, true)
    }

    fn new_env_with(inner: Backend, has_wake_ups: bool) -> (Arc<Self>, TestEnv) {
        let (calls, outcomes, blocked) = Default::default();
        let probe = Arc::new(Self { inner: inner.clone(), calls, outcomes, blocked, has_wake_ups });
        let wrapped = Backend { store: probe.clone(), ..inner.clone() };
        (probe, TestEnv::with_backends(inner, wrapped))
    }

    /// Sets the outcomes of the next writes, in order. For `open_thread` and `write_derived`, only lost responses are applied.
    pub(crate) fn script(&self, outcomes: impl IntoIterator<Item = Outcome>) {
        self.outcomes.lock().unwrap().extend(outcomes);
    }

    /// Blocks the next derived write. The returned receiver completes when the write is called; the sender releases the write.
    pub(crate) fn block_derived_write(&self) -> (oneshot::Receiver<()>, oneshot::Sender<()>) {
        let ((reached_sender, reached), (release, released)) = (oneshot::channel(), oneshot::channel());
        *self.blocked.lock().unwrap() = Some((reached_sender, released));
        (reached, release)
    }

    /// Returns how often each method was called since the last `take_calls`.
    pub(crate) fn take_calls(&self) -> Vec<(&'static str, usize)> {
        std::mem::take(&mut *self.calls.lock().unwrap()).into_iter().collect()
    }

    fn count(&self, call: &'static str) {
        *self.calls.lock().unwrap().entry(call).or_default() += 1;
    }
}

fn lost_response_error() -> StoreError {
    StoreError::Unavailable { reason: Reason::Disconnected, maybe_applied: true, source: None }
}

#[async_trait]
impl Store for Probe {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        self.count("commit");
        let scripted = self.outcomes.lock().unwrap().pop_front();
        match scripted {
            Some(Outcome::Rejected) => return Err(StoreError::unavailable(Reason::Busy)),
            Some(Outcome::LostRequest) => return Err(lost_response_error()),
            Some(Outcome::DiskFull) => return Err(StoreError::unavailable(Reason::Full)),
            Some(Outcome::LostResponse | Outcome::Success) | None => {}
        }
        let outcome = self.inner.store.commit(scope, thread, batch, now).await?;
        if matches!(scripted, Some(Outcome::LostResponse)) { Err(lost_response_error()) } else { Ok(outcome) }
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        self.count("open_thread");
        let scripted = self.outcomes.lock().unwrap().pop_front_if(|outcome| matches!(outcome, Outcome::LostResponse));
        let opened = self.inner.store.open_thread(scope, open, now).await?;
        if scripted.is_some() { Err(lost_response_error()) } else { Ok(opened) }
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        self.count(if read.records.is_empty() { "read_thread" } else { "read_thread_with_records" });
        self.inner.store.read_thread(scope, thread, read, now).await
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        self.count("list_threads");
        self.inner.store.list_threads(scope, query, now).await
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        self.count("list_changed_threads");
        self.inner.store.list_changed_threads(scope, after, limit, now).await
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        self.count("delete_thread");
        let scripted = self.outcomes.lock().unwrap().pop_front();
        self.inner.store.delete_thread(scope, thread, now).await?;
        if scripted.is_some() { Err(lost_response_error()) } else { Ok(()) }
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        self.count("list_messages");
        self.inner.store.list_messages(scope, thread, query, now).await
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        self.count("find_messages");
        self.inner.store.find_messages(scope, thread, messages, now).await
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        self.count("list_changes");
        self.inner.store.list_changes(scope, thread, after, limit, now).await
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        self.count("list_changes_with_messages");
        self.inner.store.list_changes_with_messages(scope, thread, after, limit, now).await
    }

    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        self.count("find_record");
        self.inner.store.find_record(scope, owner, namespace, key, now).await
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        self.count("list_records");
        self.inner.store.list_records(scope, query, now).await
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        self.count("write_record");
        let scripted = self.outcomes.lock().unwrap().pop_front();
        let written = self.inner.store.write_record(scope, write, now).await?;
        if scripted.is_some() { Err(lost_response_error()) } else { Ok(written) }
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        self.count("write_derived");
        let blocked = self.blocked.lock().unwrap().take();
        if let Some((reached_sender, released)) = blocked {
            reached_sender.send(()).unwrap();
            released.await.unwrap();
        }
        let scripted = self.outcomes.lock().unwrap().pop_front_if(|outcome| matches!(outcome, Outcome::LostResponse));
        let written = self.inner.store.write_derived(scope, thread, write, now).await?;
        if scripted.is_some() { Err(lost_response_error()) } else { Ok(written) }
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        self.count("wake_ups");
        let wake_ups = self.inner.store.wake_ups().await?;
        if self.has_wake_ups { Ok(wake_ups) } else { Ok(futures::stream::pending().boxed()) }
    }

    fn stamp(&self) -> Option<u64> {
        self.inner.store.stamp()
    }

    fn records_stamp(&self) -> Option<u64> {
        self.inner.store.records_stamp()
    }
}
