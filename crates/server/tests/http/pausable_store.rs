//! A store that can pause before it returns a result, so that a test can interleave other requests.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use threadkeep::core::{
    Backend, Batch, ChangePage, ChangedThreads, ChangesWithMessages, CommitOutcome, DerivedWrite, MessagePage,
    OpenOutcome, OpenThread, RecordQuery, RecordWrite, Result, Store, TaggedNumber, ThreadPage, ThreadQuery,
    ThreadRead, ThreadRef, ThreadView, UserCursor, WakeUps, WriteOutcome,
};
use threadkeep::{Message, MessageQuery, MessageRef, Namespace, Record, RecordOwner, Scope, ThreadId, Timestamp};
use tokio::sync::oneshot;

/// A call whose result can be delayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PausePoint {
    /// A read of a thread without its messages and records.
    Thread,
    /// Any commit.
    Commit,
    /// A search for a record in this system namespace.
    Record(&'static str),
}

#[derive(Debug)]
struct PausableStore {
    inner: Arc<dyn Store>,
    pause: Arc<Mutex<Option<Pause>>>,
    calls: Arc<Mutex<Vec<&'static str>>>,
}

#[derive(Debug)]
struct Pause {
    point: PausePoint,
    /// Notified when a call reaches the point.
    reached: oneshot::Sender<()>,
    /// Completes when the call may return.
    resume: oneshot::Receiver<()>,
}

/// Controls the pauses of a store, and records its calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreControl {
    pause: Arc<Mutex<Option<Pause>>>,
    calls: Arc<Mutex<Vec<&'static str>>>,
}

impl StoreControl {
    /// Wraps the store of a backend in a store that this value controls.
    pub(crate) fn wrap(&self, backend: Backend) -> Backend {
        let store =
            PausableStore { inner: backend.store.clone(), pause: self.pause.clone(), calls: self.calls.clone() };
        Backend { store: Arc::new(store), ..backend }
    }

    /// Pauses the next call that reaches `point`. The returned receiver completes when the call is paused; the sender resumes it.
    pub(crate) fn pause_at(&self, point: PausePoint) -> (oneshot::Receiver<()>, oneshot::Sender<()>) {
        let ((reached, reached_receiver), (resume_sender, resume)) = (oneshot::channel(), oneshot::channel());
        *self.pause.lock().unwrap() = Some(Pause { point, reached, resume });
        (reached_receiver, resume_sender)
    }

    /// Returns the names of the store calls since the last `take_calls`, oldest first.
    pub(crate) fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

impl PausableStore {
    async fn pause_if_at(&self, point: &PausePoint) {
        let pause = self.pause.lock().unwrap().take_if(|pause| pause.point == *point);
        if let Some(Pause { reached, resume, .. }) = pause {
            reached.send(()).unwrap();
            resume.await.unwrap();
        }
    }
}

#[async_trait]
impl Store for PausableStore {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        self.calls.lock().unwrap().push("commit");
        let committed = self.inner.commit(scope, thread, batch, now).await;
        self.pause_if_at(&PausePoint::Commit).await;
        committed
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        self.calls.lock().unwrap().push("open_thread");
        self.inner.open_thread(scope, open, now).await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        self.calls.lock().unwrap().push("read_thread");
        let found = self.inner.read_thread(scope, thread, read, now).await;
        if *read == ThreadRead::default() {
            self.pause_if_at(&PausePoint::Thread).await;
        }
        found
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        self.calls.lock().unwrap().push("list_threads");
        self.inner.list_threads(scope, query, now).await
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        self.calls.lock().unwrap().push("list_changed_threads");
        self.inner.list_changed_threads(scope, after, limit, now).await
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        self.calls.lock().unwrap().push("delete_thread");
        self.inner.delete_thread(scope, thread, now).await
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        self.calls.lock().unwrap().push("list_messages");
        self.inner.list_messages(scope, thread, query, now).await
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        self.calls.lock().unwrap().push("find_messages");
        self.inner.find_messages(scope, thread, messages, now).await
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        self.calls.lock().unwrap().push("list_changes");
        self.inner.list_changes(scope, thread, after, limit, now).await
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        self.calls.lock().unwrap().push("list_changes_with_messages");
        self.inner.list_changes_with_messages(scope, thread, after, limit, now).await
    }

    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        self.calls.lock().unwrap().push("find_record");
        let found = self.inner.find_record(scope, owner, namespace, key, now).await;
        let point = self.pause.lock().unwrap().as_ref().map(|pause| pause.point.clone());
        if let (Some(PausePoint::Record(name)), Namespace::System(system_name)) = (point, namespace)
            && name == system_name
        {
            self.pause_if_at(&PausePoint::Record(name)).await;
        }
        found
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        self.calls.lock().unwrap().push("list_records");
        self.inner.list_records(scope, query, now).await
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        self.calls.lock().unwrap().push("write_record");
        self.inner.write_record(scope, write, now).await
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        self.calls.lock().unwrap().push("write_derived");
        self.inner.write_derived(scope, thread, write, now).await
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        self.calls.lock().unwrap().push("wake_ups");
        self.inner.wake_ups().await
    }

    fn stamp(&self) -> Option<u64> {
        self.inner.stamp()
    }

    fn records_stamp(&self) -> Option<u64> {
        self.inner.records_stamp()
    }
}
