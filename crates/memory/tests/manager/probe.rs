//! A store over another that counts calls, and fails commits as it is told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt;
use threadkeep_core::{
    Backend, Batch, ChangePage, ChangedThreads, ChangesWithMessages, CommitOutcome, DerivedWrite, Message, MessageName,
    MessagePage, MessageQuery, Namespace, OpenThread, Opened, Reason, Record, RecordOwner, RecordQuery, RecordWrite,
    Result, Scope, Store, StoreError, Tagged, ThreadId, ThreadName, ThreadPage, ThreadQuery, ThreadRead, ThreadView,
    Timestamp, UserCursor, WakeUps, WriteOutcome,
};

use tokio::sync::oneshot;

use super::world::World;

/// What becomes of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// It is not carried out, and the caller learns so.
    Refused,
    /// It is not carried out, and the caller does not learn it.
    LostRequest,
    /// It is carried out, and the caller does not learn it.
    LostReply,
    /// It fails for good.
    DiskFull,
    /// It is carried out, and the caller learns it.
    Done,
}

#[derive(Debug)]
pub(crate) struct Probe {
    inner: Backend,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    fates: Mutex<VecDeque<Fate>>,
    held: Mutex<Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>>,
    gives_wake_ups: bool,
}

impl Probe {
    pub(crate) fn world() -> (Arc<Self>, World) {
        Self::world_over(threadkeep_store_memory::MemoryStore::open())
    }

    /// A world in which no wake-up ever comes.
    pub(crate) fn silent_world() -> (Arc<Self>, World) {
        Self::world_with(threadkeep_store_memory::MemoryStore::open(), false)
    }

    pub(crate) fn world_over(inner: Backend) -> (Arc<Self>, World) {
        Self::world_with(inner, true)
    }

    fn world_with(inner: Backend, gives_wake_ups: bool) -> (Arc<Self>, World) {
        let (calls, fates, held) = Default::default();
        let probe = Arc::new(Self { inner: inner.clone(), calls, fates, held, gives_wake_ups });
        let seen = Backend { store: probe.clone(), ..inner.clone() };
        (probe, World::over(inner, seen))
    }

    /// The next writes end so, one after the other; opening can only lose its reply.
    pub(crate) fn will_end(&self, fates: impl IntoIterator<Item = Fate>) {
        self.fates.lock().unwrap().extend(fates);
    }

    /// Holds the next derived write back: the first end says that it is there, the second one lets it go.
    pub(crate) fn hold_derived(&self) -> (oneshot::Receiver<()>, oneshot::Sender<()>) {
        let ((reached, is_reached), (release, go_on)) = (oneshot::channel(), oneshot::channel());
        *self.held.lock().unwrap() = Some((reached, go_on));
        (is_reached, release)
    }

    /// The calls since the last look.
    pub(crate) fn take_calls(&self) -> Vec<(&'static str, usize)> {
        std::mem::take(&mut *self.calls.lock().unwrap()).into_iter().collect()
    }

    fn count(&self, call: &'static str) {
        *self.calls.lock().unwrap().entry(call).or_default() += 1;
    }
}

fn lost() -> StoreError {
    StoreError::Unavailable { reason: Reason::Disconnected, maybe_applied: true, source: None }
}

#[async_trait]
impl Store for Probe {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        self.count("commit");
        let fate = self.fates.lock().unwrap().pop_front();
        match fate {
            Some(Fate::Refused) => return Err(StoreError::unavailable(Reason::Busy)),
            Some(Fate::LostRequest) => return Err(lost()),
            Some(Fate::DiskFull) => return Err(StoreError::unavailable(Reason::Full)),
            Some(Fate::LostReply | Fate::Done) | None => {}
        }
        let outcome = self.inner.store.commit(scope, thread, batch, now).await?;
        if matches!(fate, Some(Fate::LostReply)) { Err(lost()) } else { Ok(outcome) }
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<Opened> {
        self.count("open_thread");
        let fate = self.fates.lock().unwrap().pop_front_if(|fate| matches!(fate, Fate::LostReply));
        let opened = self.inner.store.open_thread(scope, open, now).await?;
        if fate.is_some() { Err(lost()) } else { Ok(opened) }
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        name: &ThreadName,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        self.count(if read.records.is_empty() { "read_thread" } else { "read_thread_with_documents" });
        self.inner.store.read_thread(scope, name, read, now).await
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
        let fate = self.fates.lock().unwrap().pop_front();
        self.inner.store.delete_thread(scope, thread, now).await?;
        if fate.is_some() { Err(lost()) } else { Ok(()) }
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
        names: &[MessageName],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        self.count("find_messages");
        self.inner.store.find_messages(scope, thread, names, now).await
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: Tagged,
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
        after: Tagged,
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
        self.count("find_document");
        self.inner.store.find_record(scope, owner, namespace, key, now).await
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        self.count("list_documents");
        self.inner.store.list_records(scope, query, now).await
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        self.count("write_document");
        let fate = self.fates.lock().unwrap().pop_front();
        let written = self.inner.store.write_record(scope, write, now).await?;
        if fate.is_some() { Err(lost()) } else { Ok(written) }
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        self.count("write_derived");
        let held = self.held.lock().unwrap().take();
        if let Some((reached, go_on)) = held {
            reached.send(()).unwrap();
            go_on.await.unwrap();
        }
        let fate = self.fates.lock().unwrap().pop_front_if(|fate| matches!(fate, Fate::LostReply));
        let written = self.inner.store.write_derived(scope, thread, write, now).await?;
        if fate.is_some() { Err(lost()) } else { Ok(written) }
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        self.count("wake_ups");
        let wake_ups = self.inner.store.wake_ups().await?;
        if self.gives_wake_ups { Ok(wake_ups) } else { Ok(futures::stream::pending().boxed()) }
    }

    fn stamp(&self) -> Option<u64> {
        self.inner.store.stamp()
    }

    fn records_stamp(&self) -> Option<u64> {
        self.inner.store.records_stamp()
    }
}
