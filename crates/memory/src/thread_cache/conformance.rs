//! The conformance suite over a store that answers through managers with thread caches.

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
use threadkeep_store_conformance::{Abilities, Factory, Instance};
use threadkeep_store_memory::MemoryStore;
use threadkeep_store_sqlite::{Durability, SqliteOptions, SqliteStore};

use super::{ExtraReads, is_newest_page};
use crate::config::config_name;
use crate::{AppendOptions, Draft, Memory, MemoryError, MemoryOptions, SystemClock};

tokio::task_local! {
    /// The instant that a test case passes with its call.
    static NOW: Timestamp;
}

/// The clock of a manager that a test case calls.
#[derive(Debug)]
struct CallersClock;

impl Clock for CallersClock {
    fn now(&self) -> Timestamp {
        NOW.get()
    }

    fn random(&self) -> [u8; 10] {
        SystemClock.random()
    }
}

/// Managers over the same data, called in turn: each has to see what the others wrote.
#[derive(Debug)]
struct Managers {
    managers: Vec<Memory>,
    calls: AtomicUsize,
}

impl Managers {
    /// One manager over each handle.
    fn over(handles: Vec<Backend>) -> Backend {
        let options = MemoryOptions { thread_cache_bytes: 1 << 20, ..MemoryOptions::default() };
        let manager = |handle| Memory::with_clock(handle, Arc::new(CallersClock)).with_options(options.clone());
        let first = handles[0].clone();
        let managers = handles.into_iter().map(|handle| manager(handle).expect("valid options")).collect();
        Backend { store: Arc::new(Self { managers, calls: AtomicUsize::new(0) }), ..first }
    }

    fn next(&self) -> &Memory {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        &self.managers[call % self.managers.len()]
    }

    /// The manager that answers what is specific to a handle: stamps and wake-ups.
    fn first(&self) -> &dyn Store {
        self.managers[0].store()
    }
}

fn store_error(error: MemoryError) -> StoreError {
    match error {
        MemoryError::Store(error) => error,
        other => panic!("not an error of the store: {other}"),
    }
}

#[async_trait]
impl Store for Managers {
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
        name: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        let (memory, ThreadRead { messages, records, lists }) = (self.next(), read);
        let (&ThreadRef::Id(thread), Some(query)) = (name, messages) else {
            return memory.store().read_thread(scope, name, read, now).await;
        };
        // Without records, the page is read without the thread's row.
        let wanted = if records.is_empty() { &vec![config_name()] } else { records };
        let extra = ExtraReads { records: wanted.clone(), lists: lists.clone(), is_always_read: true };
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
        names: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        self.next().store().find_messages(scope, thread, names, now).await
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

/// Managers over an in-memory store, which has no stamp.
struct InMemory {
    managers: usize,
}

#[async_trait]
impl Factory for InMemory {
    async fn create(&self) -> Box<dyn Instance> {
        let store = MemoryStore::open();
        Box::new(OpenInMemory(Managers::over(vec![store; self.managers])))
    }

    fn abilities(&self) -> Abilities {
        Abilities { durable: false, named_collections: true, compaction: false }
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

/// Two managers that have each opened the same file, as two processes do. This store has a stamp.
struct InFile;

fn open_file(folder: TempDir) -> Box<dyn Instance> {
    let options = || SqliteOptions { durability: Durability::Process, ..SqliteOptions::default() };
    let open = || SqliteStore::open(folder.path().join("store.db"), options()).expect("the store opens");
    let stores = vec![open(), open()];
    let backend = Managers::over(stores.iter().map(SqliteStore::backend).collect());
    Box::new(OpenInFile { backend, stores, folder })
}

#[async_trait]
impl Factory for InFile {
    async fn create(&self) -> Box<dyn Instance> {
        open_file(tempfile::tempdir().expect("a temporary folder"))
    }

    fn abilities(&self) -> Abilities {
        Abilities { durable: true, named_collections: true, compaction: true }
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

mod one_manager {
    use super::*;

    const FACTORY: InMemory = InMemory { managers: 1 };

    async fn factory() -> Option<InMemory> {
        Some(FACTORY)
    }

    threadkeep_store_conformance::conformance_tests!(crate::thread_cache::conformance::one_manager::factory);

    #[tokio::test(flavor = "multi_thread")]
    async fn behaves_like_the_model() {
        threadkeep_store_conformance::property_test(&FACTORY, 64).await;
    }
}

mod two_managers {
    use super::*;

    const FACTORY: InMemory = InMemory { managers: 2 };

    async fn factory() -> Option<InMemory> {
        Some(FACTORY)
    }

    threadkeep_store_conformance::conformance_tests!(crate::thread_cache::conformance::two_managers::factory);

    #[tokio::test(flavor = "multi_thread")]
    async fn behaves_like_the_model() {
        threadkeep_store_conformance::property_test(&FACTORY, 64).await;
    }
}

mod two_managers_over_a_file {
    use super::*;

    async fn factory() -> Option<InFile> {
        Some(InFile)
    }

    threadkeep_store_conformance::conformance_tests!(
        crate::thread_cache::conformance::two_managers_over_a_file::factory
    );

    #[tokio::test(flavor = "multi_thread")]
    async fn behaves_like_the_model() {
        threadkeep_store_conformance::property_test(&InFile, 64).await;
    }
}

/// A commit of another instance under the same key may have removed content, although the repeated batch does not.
#[tokio::test]
async fn a_replayed_commit_is_not_treated_as_this_managers_own() {
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
