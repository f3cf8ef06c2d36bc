//! How often a turn calls the store before its model is asked.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use threadkeep_agent::Agent;
use threadkeep_core::{
    Backend, Batch, ChangePage, ChangedThreads, ChangesWithMessages, ChatAnswer, ChatModel, ChatRequest, CommitOutcome,
    DeltaSink, DerivedWrite, Document, DocumentOwner, DocumentQuery, DocumentWrite, Finish, Message, MessageName,
    MessagePage, MessageQuery, ModelError, Namespace, OpenThread, Opened, Part, Result, Scope, Store, ThreadId,
    ThreadName, ThreadPage, ThreadQuery, ThreadRead, ThreadView, Timestamp, UserCursor, WakeUps, Written,
};
use threadkeep_memory::{Memory, MemoryOptions};

use crate::world::{World, assistant};

type Calls = Arc<Mutex<Vec<&'static str>>>;

/// A store that notes which of its methods are called.
#[derive(Debug)]
struct Counting {
    inner: Backend,
    calls: Calls,
}

impl Counting {
    fn count(&self, call: &'static str) {
        self.calls.lock().unwrap().push(call);
    }
}

/// A model that notes what was called before it was asked.
#[derive(Debug)]
struct Asked {
    calls: Calls,
    before: Calls,
}

#[async_trait]
impl ChatModel for Asked {
    fn name(&self) -> &str {
        "asked"
    }

    async fn answer(&self, _: &ChatRequest, _: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        *self.before.lock().unwrap() = std::mem::take(&mut *self.calls.lock().unwrap());
        let parts = vec![Part::Text("In 3 minutes.".to_owned())];
        Ok(ChatAnswer { parts, finish: Finish::Stop, model: "asked".to_owned(), usage: None })
    }
}

#[tokio::test]
async fn a_turn_reads_its_thread_once_before_the_model_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = threadkeep_store_sqlite::SqliteStore::open(folder.path().join("t.db"), Default::default()).unwrap();
    for inner in [threadkeep_store_memory::MemoryStore::open(), sqlite.backend()] {
        let (calls, before) = (Calls::default(), Calls::default());
        let counting = Arc::new(Counting { inner: inner.clone(), calls: Arc::clone(&calls) });
        let backend = Backend { store: counting, ..inner };
        let world = World::over(backend.clone()).await;
        let model = || Asked { calls: Arc::clone(&calls), before: Arc::clone(&before) };
        let ask = async |memory: &Memory| {
            calls.lock().unwrap().clear();
            let turn = Agent::new(memory.clone(), assistant(model())).chat(&world.scope, world.thread, "When?").await;
            assert_eq!(turn.unwrap().reply, "In 3 minutes.");
            std::mem::take(&mut *before.lock().unwrap())
        };
        // The thread's first message, which makes its title.
        let first = ask(&world.memory).await;
        // Another instance, which has seen nothing of the thread yet, and then again.
        let memory = Memory::with_clock(backend, world.clock.clone());
        let memory = memory.with_options(MemoryOptions { tail_bytes: 1 << 20, ..MemoryOptions::default() }).unwrap();
        let (cold, warm) = (ask(&memory).await, ask(&memory).await);

        assert_eq!(first, ["read_thread", "read_thread", "commit"]);
        assert_eq!(cold, ["read_thread", "commit"]);
        assert_eq!(warm, ["read_thread", "commit"]);
    }
}

#[async_trait]
impl Store for Counting {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        self.count("commit");
        self.inner.store.commit(scope, thread, batch, now).await
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<Opened> {
        self.count("open_thread");
        self.inner.store.open_thread(scope, open, now).await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        name: &ThreadName,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        self.count("read_thread");
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
        self.inner.store.delete_thread(scope, thread, now).await
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<Written> {
        self.count("write_derived");
        self.inner.store.write_derived(scope, thread, write, now).await
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
        after: u64,
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
        after: u64,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        self.count("list_changes_with_messages");
        self.inner.store.list_changes_with_messages(scope, thread, after, limit, now).await
    }

    async fn find_document(
        &self,
        scope: &Scope,
        owner: &DocumentOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Document>> {
        self.count("find_document");
        self.inner.store.find_document(scope, owner, namespace, key, now).await
    }

    async fn list_documents(&self, scope: &Scope, query: &DocumentQuery, now: Timestamp) -> Result<Vec<Document>> {
        self.count("list_documents");
        self.inner.store.list_documents(scope, query, now).await
    }

    async fn write_document(&self, scope: &Scope, write: DocumentWrite, now: Timestamp) -> Result<Written> {
        self.count("write_document");
        self.inner.store.write_document(scope, write, now).await
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        self.count("wake_ups");
        self.inner.store.wake_ups().await
    }

    fn stamp(&self) -> Option<u64> {
        self.inner.store.stamp()
    }

    fn documents_stamp(&self) -> Option<u64> {
        self.inner.store.documents_stamp()
    }
}
