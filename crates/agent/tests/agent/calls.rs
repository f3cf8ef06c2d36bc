//! The number of store calls that a turn makes before it calls the model.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use threadkeep_agent::Agent;
use threadkeep_core::{
    Backend, Batch, ChangePage, ChangedThreads, ChangesWithMessages, ChatAnswer, ChatModel, ChatRequest, CommitOutcome,
    DeltaSink, DerivedWrite, Finish, Message, MessagePage, MessageQuery, MessageRef, ModelError, Namespace,
    OpenOutcome, OpenThread, Part, Record, RecordOwner, RecordQuery, RecordWrite, Result, Scope, Store, TaggedNumber,
    ThreadId, ThreadPage, ThreadQuery, ThreadRead, ThreadRef, ThreadView, Timestamp, UserCursor, WakeUps, WriteOutcome,
};
use threadkeep_memory::{Memory, MemoryOptions};

use crate::env::{TestEnv, assistant};

type Calls = Arc<Mutex<Vec<&'static str>>>;

/// A store that records which of its methods are called.
#[derive(Debug)]
struct RecordingStore {
    inner: Backend,
    calls: Calls,
}

impl RecordingStore {
    fn record(&self, call: &'static str) {
        self.calls.lock().unwrap().push(call);
    }
}

/// A model that moves the store calls made before its own call to `before`.
#[derive(Debug)]
struct ObservingModel {
    calls: Calls,
    before: Calls,
}

#[async_trait]
impl ChatModel for ObservingModel {
    fn name(&self) -> &str {
        "observing"
    }

    async fn answer(&self, _: &ChatRequest, _: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        *self.before.lock().unwrap() = std::mem::take(&mut *self.calls.lock().unwrap());
        let parts = vec![Part::Text("In 3 minutes.".to_owned())];
        Ok(ChatAnswer { parts, finish: Finish::Stop, model: "observing".to_owned(), usage: None })
    }
}

#[tokio::test]
async fn a_turn_reads_its_thread_once_before_calling_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = threadkeep_store_sqlite::SqliteStore::open(folder.path().join("t.db"), Default::default()).unwrap();
    for inner in [threadkeep_store_memory::MemoryStore::open(), sqlite.backend()] {
        let (calls, before) = (Calls::default(), Calls::default());
        let store = Arc::new(RecordingStore { inner: inner.clone(), calls: Arc::clone(&calls) });
        let backend = Backend { store, ..inner };
        let env = TestEnv::with_backend(backend.clone()).await;
        let model = || ObservingModel { calls: Arc::clone(&calls), before: Arc::clone(&before) };
        let calls_of_turn = async |memory: &Memory| {
            calls.lock().unwrap().clear();
            let turn = Agent::new(memory.clone(), assistant(model())).chat(&env.scope, env.thread, "When?").await;
            assert_eq!(turn.unwrap().reply, "In 3 minutes.");
            std::mem::take(&mut *before.lock().unwrap())
        };
        // The thread's first message also sets its title.
        let first = calls_of_turn(&env.memory).await;
        // In another instance, the thread is not cached in the first turn, but in the second.
        let memory = Memory::with_clock(backend, env.clock.clone());
        let memory =
            memory.with_options(MemoryOptions { thread_cache_bytes: 1 << 20, ..MemoryOptions::default() }).unwrap();
        let (uncached, cached) = (calls_of_turn(&memory).await, calls_of_turn(&memory).await);

        assert_eq!(first, ["read_thread", "read_thread", "commit"]);
        assert_eq!(uncached, ["read_thread", "commit"]);
        assert_eq!(cached, ["read_thread", "commit"]);
    }
}

#[async_trait]
impl Store for RecordingStore {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        self.record("commit");
        self.inner.store.commit(scope, thread, batch, now).await
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        self.record("open_thread");
        self.inner.store.open_thread(scope, open, now).await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        self.record("read_thread");
        self.inner.store.read_thread(scope, thread, read, now).await
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        self.record("list_threads");
        self.inner.store.list_threads(scope, query, now).await
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        self.record("list_changed_threads");
        self.inner.store.list_changed_threads(scope, after, limit, now).await
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        self.record("delete_thread");
        self.inner.store.delete_thread(scope, thread, now).await
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        self.record("write_derived");
        self.inner.store.write_derived(scope, thread, write, now).await
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        self.record("list_messages");
        self.inner.store.list_messages(scope, thread, query, now).await
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        self.record("find_messages");
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
        self.record("list_changes");
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
        self.record("list_changes_with_messages");
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
        self.record("find_record");
        self.inner.store.find_record(scope, owner, namespace, key, now).await
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        self.record("list_records");
        self.inner.store.list_records(scope, query, now).await
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        self.record("write_record");
        self.inner.store.write_record(scope, write, now).await
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        self.record("wake_ups");
        self.inner.store.wake_ups().await
    }

    fn stamp(&self) -> Option<u64> {
        self.inner.store.stamp()
    }

    fn records_stamp(&self) -> Option<u64> {
        self.inner.store.records_stamp()
    }
}
