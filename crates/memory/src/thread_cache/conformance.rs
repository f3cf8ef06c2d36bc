//! Runs the conformance suite against a store whose calls go through [`Memory`] with a thread cache.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tempfile::TempDir;
use threadkeep_core::{
    Backend, Batch, ChangePage, ChangedThreads, ChangesWithMessages, Clock, CommitOutcome, DerivedWrite, Fingerprint,
    IdempotencyKey, Kind, Message, MessagePage, MessageQuery, MessageRef, Namespace, OpenOutcome, OpenThread, Record,
    RecordOwner, RecordQuery, RecordWrite, Result, Scope, Store, StoreError, TaggedNumber, ThreadId, ThreadPage,
    ThreadQuery, ThreadRead, ThreadRef, ThreadView, Timestamp, UserCursor, WakeUps, WriteOutcome,
};
use threadkeep_store_conformance::{Capabilities, Factory, Instance};
use threadkeep_store_memory::MemoryStore;
use threadkeep_store_sqlite::{Durability, SqliteOptions, SqliteStore};

use super::{ExtraRequest, is_newest_page};
use crate::config::config_name;
use crate::{AppendOptions, Draft, Memory, MemoryError, MemoryOptions, SystemClock};

tokio::task_local! {
    /// The time that a test case passes with its call.
    static NOW: Timestamp;
}

/// The clock of a `Memory`: returns the time that the test case passes with its call.
#[derive(Debug)]
struct CallerClock;

impl Clock for CallerClock {
    fn now(&self) -> Timestamp {
        NOW.get()
    }

    fn random(&self) -> [u8; 10] {
        SystemClock.random()
    }
}

/// A store that passes its calls in turn to several `Memory` values with the same data. Each must see the others' writes.
#[derive(Debug)]
struct CachingStore {
    memories: Vec<Memory>,
    calls: AtomicUsize,
}

impl CachingStore {
    /// Creates a `Memory` for each handle of a store.
    fn wrap(handles: Vec<Backend>) -> Backend {
        let options = MemoryOptions { thread_cache_bytes: 1 << 20, ..MemoryOptions::default() };
        let memory = |handle| Memory::with_clock(handle, Arc::new(CallerClock)).with_options(options.clone());
        let first = handles[0].clone();
        let memories = handles.into_iter().map(|handle| memory(handle).expect("valid options")).collect();
        Backend { store: Arc::new(Self { memories, calls: AtomicUsize::new(0) }), ..first }
    }

    fn next(&self) -> &Memory {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        &self.memories[call % self.memories.len()]
    }

    /// The store that provides stamps and wake-ups, which are specific to a handle.
    fn first(&self) -> &dyn Store {
        self.memories[0].store()
    }
}

fn store_error(error: MemoryError) -> StoreError {
    match error {
        MemoryError::Store(error) => error,
        other => panic!("not a store error: {other}"),
    }
}

#[async_trait]
impl Store for CachingStore {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        self.next().commit_through_cache(scope, thread, &batch, now).await.result
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        NOW.scope(now, self.next().delete_thread(scope, thread)).await.map_err(store_error)
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        let memory = self.next();
        if is_newest_page(query)
            && let Some(cached) = NOW.sync_scope(now, || memory.cached_messages(scope, thread, query.limit))
        {
            return Ok(cached.to_page());
        }
        memory.read_page(scope, thread, query, now).await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        let (memory, ThreadRead { messages, records, lists }) = (self.next(), read);
        let (&ThreadRef::Id(thread), Some(query)) = (thread, messages) else {
            return memory.store().read_thread(scope, thread, read, now).await;
        };
        // At least one record is requested, because otherwise the page is read without the thread's row.
        let wanted = if records.is_empty() { &vec![config_name()] } else { records };
        let extra = ExtraRequest { records: wanted.clone(), lists: lists.clone(), reads_even_if_cached: true };
        let (page, view) = match memory.read_page_with(scope, thread, query, &extra, now).await {
            Ok((page, Some(view))) => (page.into_page(), view),
            Err(StoreError::NotFound(Kind::Thread)) => return Ok(None),
            Ok((_, None)) => panic!("the records were not read"),
            Err(error) => return Err(error),
        };
        let found = if records.is_empty() { Vec::new() } else { view.records.expect("records were requested") };
        Ok(Some(ThreadView { thread: view.thread, page: Some(page), records: found, lists: view.lists }))
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        self.next().store().open_thread(scope, open, now).await
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        self.next().store().list_threads(scope, query, now).await
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        self.next().store().list_changed_threads(scope, after, limit, now).await
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        self.next().store().find_messages(scope, thread, messages, now).await
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        self.next().store().list_changes(scope, thread, after, limit, now).await
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        self.next().store().list_changes_with_messages(scope, thread, after, limit, now).await
    }

    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        self.next().store().find_record(scope, owner, namespace, key, now).await
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        self.next().store().list_records(scope, query, now).await
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        self.next().store().write_record(scope, write, now).await
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        self.next().store().write_derived(scope, thread, write, now).await
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        self.first().wake_ups().await
    }

    fn stamp(&self) -> Option<u64> {
        self.first().stamp()
    }

    fn records_stamp(&self) -> Option<u64> {
        self.first().records_stamp()
    }
}

/// A [`CachingStore`] over an in-memory store, which has no stamp.
struct InMemory {
    memory_count: usize,
}

#[async_trait]
impl Factory for InMemory {
    async fn create(&self) -> Box<dyn Instance> {
        let store = MemoryStore::open();
        Box::new(OpenInMemory(CachingStore::wrap(vec![store; self.memory_count])))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            durable: false,
            named_collections: true,
            compaction: false,
            snapshots: threadkeep_core::Consistency::Store,
        }
    }
}

struct OpenInMemory(Backend);

#[async_trait]
impl Instance for OpenInMemory {
    fn backend(&self) -> Backend {
        self.0.clone()
    }

    async fn reopen(self: Box<Self>) -> Box<dyn Instance> {
        unreachable!("the data does not outlive the store")
    }

    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// A [`CachingStore`] over two stores that have opened the same file, as two processes do. These stores have a stamp.
struct InFile;

fn open_file(folder: TempDir) -> Box<dyn Instance> {
    let options = || SqliteOptions { durability: Durability::Process, ..SqliteOptions::default() };
    let open = || SqliteStore::open(folder.path().join("store.db"), options()).expect("the store opens");
    let stores = vec![open(), open()];
    let backend = CachingStore::wrap(stores.iter().map(SqliteStore::backend).collect());
    Box::new(OpenInFile { backend, stores, folder })
}

#[async_trait]
impl Factory for InFile {
    async fn create(&self) -> Box<dyn Instance> {
        open_file(tempfile::tempdir().expect("a temporary folder"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            durable: true,
            named_collections: true,
            compaction: true,
            snapshots: threadkeep_core::Consistency::Store,
        }
    }
}

struct OpenInFile {
    backend: Backend,
    stores: Vec<SqliteStore>,
    folder: TempDir,
}

#[async_trait]
impl Instance for OpenInFile {
    fn backend(&self) -> Backend {
        self.backend.clone()
    }

    async fn reopen(self: Box<Self>) -> Box<dyn Instance> {
        let Self { backend, stores, folder } = *self;
        drop((backend, stores));
        open_file(folder)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.stores.iter().flat_map(SqliteStore::files).collect()
    }
}

mod one_memory {
    use super::*;

    const FACTORY: InMemory = InMemory { memory_count: 1 };

    async fn factory() -> Option<InMemory> {
        Some(FACTORY)
    }

    threadkeep_store_conformance::conformance_tests!(crate::thread_cache::conformance::one_memory::factory);

    #[tokio::test(flavor = "multi_thread")]
    async fn behaves_like_the_model() {
        threadkeep_store_conformance::property_test(&FACTORY, 64).await;
    }
}

mod two_memories {
    use super::*;

    const FACTORY: InMemory = InMemory { memory_count: 2 };

    async fn factory() -> Option<InMemory> {
        Some(FACTORY)
    }

    threadkeep_store_conformance::conformance_tests!(crate::thread_cache::conformance::two_memories::factory);

    #[tokio::test(flavor = "multi_thread")]
    async fn behaves_like_the_model() {
        threadkeep_store_conformance::property_test(&FACTORY, 64).await;
    }
}

mod two_memories_over_a_file {
    use super::*;

    async fn factory() -> Option<InFile> {
        Some(InFile)
    }

    threadkeep_store_conformance::conformance_tests!(
        crate::thread_cache::conformance::two_memories_over_a_file::factory
    );

    #[tokio::test(flavor = "multi_thread")]
    async fn behaves_like_the_model() {
        threadkeep_store_conformance::property_test(&InFile, 64).await;
    }
}

/// Another instance's commit with the same key may have removed content, although the repeated batch does not.
#[tokio::test]
async fn a_replayed_commit_of_another_instance_is_not_treated_as_own() {
    let store = MemoryStore::open();
    let options = MemoryOptions { thread_cache_bytes: 1 << 20, ..MemoryOptions::default() };
    let (cached, other) =
        (Memory::new(store.clone()).with_options(options).expect("valid options"), Memory::new(store));
    let ana = Scope::user("acme", "ana").expect("a scope");
    let thread = other.open(&ana).await.expect("a thread").thread.id;
    let drafts = ["one", "two", "three"].map(Draft::user).to_vec();
    let appended =
        other.append_all(&ana, thread, drafts, &AppendOptions::default()).await.expect("messages are appended");
    cached.newest(&ana, thread, 9).await.expect("messages are cached");
    let mut batch = Batch::new(IdempotencyKey::FromCaller("once".to_owned()), Fingerprint::of(b"the same"));
    batch.append = vec![Draft::user("four").into_message(&other, other.now())];
    let erasing = Batch { erase: vec![appended.messages[1].id], ..batch.clone() };
    other.commit(&ana, thread, &erasing).await.expect("the message is erased");
    assert!(cached.commit(&ana, thread, &batch).await.expect("the commit is replayed").replayed);
    let newest = cached.newest(&ana, thread, 9).await.expect("messages are read");
    assert_eq!(newest, other.newest(&ana, thread, 9).await.expect("messages are read"));
}
