//! A store that holds an answer back once, so that something else happens before it is acted upon.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use threadkeep::core::{
    Backend, Batch, ChangePage, ChangedThreads, ChangesWithMessages, CommitOutcome, DerivedWrite, MessagePage,
    OpenThread, Opened, RecordQuery, RecordWrite, Result, Store, Tagged, ThreadName, ThreadPage, ThreadQuery,
    ThreadRead, ThreadView, UserCursor, WakeUps, WriteOutcome,
};
use threadkeep::{Message, MessageName, MessageQuery, Namespace, Record, RecordOwner, Scope, ThreadId, Timestamp};
use tokio::sync::oneshot;

/// Which answer is held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Where a thread stands.
    Thread,
    /// What a commit did.
    Commit,
    /// A record of this system namespace.
    Record(&'static str),
}

#[derive(Debug)]
struct HeldStore {
    inner: Arc<dyn Store>,
    hold: Arc<Mutex<Option<Hold>>>,
    calls: Arc<Mutex<Vec<&'static str>>>,
}

#[derive(Debug)]
struct Hold {
    answer: Answer,
    reached: oneshot::Sender<()>,
    go_on: oneshot::Receiver<()>,
}

/// Holds answers of a store back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holder {
    hold: Arc<Mutex<Option<Hold>>>,
    calls: Arc<Mutex<Vec<&'static str>>>,
}

impl Holder {
    pub(crate) fn over(&self, backend: Backend) -> Backend {
        let store = HeldStore { inner: backend.store.clone(), hold: self.hold.clone(), calls: self.calls.clone() };
        Backend { store: Arc::new(store), ..backend }
    }

    /// Holds the next such answer back: the first end says that it is there, the second one lets it go.
    pub(crate) fn hold(&self, answer: Answer) -> (oneshot::Receiver<()>, oneshot::Sender<()>) {
        let ((reached, is_reached), (release, go_on)) = (oneshot::channel(), oneshot::channel());
        *self.hold.lock().unwrap() = Some(Hold { answer, reached, go_on });
        (is_reached, release)
    }

    /// The calls since the last look, in order.
    pub(crate) fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

impl HeldStore {
    async fn pass(&self, answer: &Answer) {
        let hold = self.hold.lock().unwrap().take_if(|hold| hold.answer == *answer);
        if let Some(Hold { reached, go_on, .. }) = hold {
            reached.send(()).unwrap();
            go_on.await.unwrap();
        }
    }
}

#[async_trait]
impl Store for HeldStore {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        self.calls.lock().unwrap().push("commit");
        let committed = self.inner.commit(scope, thread, batch, now).await;
        self.pass(&Answer::Commit).await;
        committed
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<Opened> {
        self.calls.lock().unwrap().push("open_thread");
        self.inner.open_thread(scope, open, now).await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        name: &ThreadName,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        self.calls.lock().unwrap().push("read_thread");
        let found = self.inner.read_thread(scope, name, read, now).await;
        if *read == ThreadRead::default() {
            self.pass(&Answer::Thread).await;
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
        names: &[MessageName],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        self.calls.lock().unwrap().push("find_messages");
        self.inner.find_messages(scope, thread, names, now).await
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: Tagged,
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
        after: Tagged,
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
        self.calls.lock().unwrap().push("find_document");
        let found = self.inner.find_record(scope, owner, namespace, key, now).await;
        let held = self.hold.lock().unwrap().as_ref().map(|hold| hold.answer.clone());
        if let (Some(Answer::Record(name)), Namespace::System(own)) = (held, namespace)
            && name == own
        {
            self.pass(&Answer::Record(name)).await;
        }
        found
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        self.calls.lock().unwrap().push("list_documents");
        self.inner.list_records(scope, query, now).await
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        self.calls.lock().unwrap().push("write_document");
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
