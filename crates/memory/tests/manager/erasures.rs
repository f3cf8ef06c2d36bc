use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use threadkeep_core::{
    Backend, JsonText, MessageId, Namespace, OpenThread, Owner, Reason, RecordOwner, RecordQuery, RecordWrite,
    Result as StoreResult, Role, Scope, StoreError, TenantId, ThreadId, Timestamp, UserId,
};
use threadkeep_memory::migrate::Migration;
use threadkeep_memory::{
    AppendOptions, AppliedErasures, Draft, EraseOptions, ErasedItem, ErasedUser, Erasure, ErasureBound, ErasureEntries,
    ErasureLog, ErasureReceipt, Memory, MemoryError, NewLibraryDocument, Passage, Retention, SharedMessages,
};
use threadkeep_store_memory::MemoryStore;

use super::test_env::{TestEnv, acme, ana, ben, on_all_stores, on_memory_stores, user_id};

/// An erasure log in memory.
#[derive(Debug, Default)]
struct InMemoryLog {
    entries: Mutex<Vec<(String, Erasure, Timestamp)>>,
    fails: AtomicBool,
}

#[async_trait]
impl ErasureLog for InMemoryLog {
    async fn record(&self, erasures: Vec<Erasure>, at: Timestamp) -> StoreResult<ErasureReceipt> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(StoreError::unavailable(Reason::Full));
        }
        let mut entries = self.entries.lock().unwrap();
        let id = entries.len().to_string();
        entries.extend(erasures.into_iter().map(|erasure| (id.clone(), erasure, at)));
        Ok(ErasureReceipt(id))
    }

    async fn withdraw(&self, receipt: ErasureReceipt) -> StoreResult<()> {
        self.entries.lock().unwrap().retain(|(id, ..)| *id != receipt.0);
        Ok(())
    }
}

impl InMemoryLog {
    /// Returns the logged items, oldest first.
    fn items(&self) -> Vec<ErasedItem> {
        self.entries.lock().unwrap().iter().map(|(_, erasure, _)| erasure.item.clone()).collect()
    }

    /// Returns the current entries, as read from a log when a backup is restored.
    fn erasure_entries(&self) -> InMemoryErasureEntries {
        InMemoryErasureEntries(
            self.entries.lock().unwrap().iter().map(|(_, erasure, at)| (erasure.clone(), *at)).collect(),
        )
    }
}

/// The entries of an [`InMemoryLog`], with the times at which they were recorded.
struct InMemoryErasureEntries(Vec<(Erasure, Timestamp)>);

impl InMemoryErasureEntries {
    /// Returns the latest time and the highest number among the items for which `number` returns a number.
    fn latest_bound(&self, tenant: &TenantId, number: impl Fn(&ErasedItem) -> Option<u64>) -> Option<ErasureBound> {
        let found = self.0.iter().filter(|(erasure, _)| erasure.tenant == *tenant);
        let found = found.filter_map(|(erasure, at)| Some(ErasureBound { at: *at, up_to: number(&erasure.item)? }));
        found.reduce(|a, b| ErasureBound { at: a.at.max(b.at), up_to: a.up_to.max(b.up_to) })
    }
}

impl ErasureEntries for InMemoryErasureEntries {
    fn note_thread(&mut self, _: &TenantId, _: ThreadId) {}

    fn user(&self, tenant: &TenantId, expected: &UserId) -> Option<ErasedUser> {
        let bound = self.latest_bound(tenant, |item| match item {
            ErasedItem::User { user, record_version, .. } if user == expected => Some(*record_version),
            _ => None,
        })?;
        let shared = self.latest_bound(tenant, |item| match item {
            ErasedItem::User { user, shared_messages: true, .. } if user == expected => Some(0),
            _ => None,
        });
        Some(ErasedUser { bound, shared_messages_at: shared.map(|shared| shared.at) })
    }

    fn thread(&self, tenant: &TenantId, expected: ThreadId) -> Option<ErasureBound> {
        self.latest_bound(tenant, |item| (*item == ErasedItem::Thread(expected)).then_some(0))
    }

    fn has_entries_in_thread(&self, tenant: &TenantId, expected: ThreadId) -> bool {
        let found = self.latest_bound(tenant, |item| match item {
            ErasedItem::Message { thread, .. } if *thread == expected => Some(0),
            ErasedItem::Record { owner, .. } if *owner == RecordOwner::Thread(expected) => Some(0),
            _ => None,
        });
        found.is_some()
    }

    fn message(&self, tenant: &TenantId, _: ThreadId, expected: MessageId) -> Option<ErasureBound> {
        self.latest_bound(tenant, |item| match item {
            ErasedItem::Message { message, change, .. } if *message == expected => Some(*change),
            _ => None,
        })
    }

    fn record(
        &self,
        tenant: &TenantId,
        expected: &RecordOwner,
        expected_namespace: &Namespace,
        expected_key: &str,
    ) -> Option<ErasureBound> {
        self.latest_bound(tenant, |item| match item {
            ErasedItem::Record { owner, namespace, key, version }
                if (owner, namespace, key.as_str()) == (expected, expected_namespace, expected_key) =>
            {
                Some(*version)
            }
            _ => None,
        })
    }

    fn has_erased_shared_messages(&self) -> bool {
        self.0.iter().any(|(erasure, _)| matches!(erasure.item, ErasedItem::User { shared_messages: true, .. }))
    }

    fn highest_version(&self) -> u64 {
        let versions = self.0.iter().map(|(erasure, _)| match &erasure.item {
            ErasedItem::User { record_version: version, .. } | ErasedItem::Record { version, .. } => *version,
            _ => 0,
        });
        versions.max().unwrap_or(0)
    }
}

/// Returns the `Memory` of an environment with an erasure log, and the log.
fn memory_with_log(env: &TestEnv) -> (Memory, Arc<InMemoryLog>) {
    let log = Arc::new(InMemoryLog::default());
    (env.memory.with_erasure_log(log.clone()), log)
}

async fn append_to_new_thread(memory: &Memory, scope: &Scope, text: &str) -> (ThreadId, MessageId) {
    let thread = memory.open(scope).await.unwrap().thread.id;
    let appended = memory.append(scope, thread, Draft::user(text)).await.unwrap();
    (thread, appended.messages[0].id)
}

fn deletion_of(owner: RecordOwner, namespace: &Namespace, key: &str) -> RecordWrite {
    let (namespace, key) = (namespace.clone(), key.to_owned());
    RecordWrite { owner, namespace, key, expected: None, value: None, expires_at: None }
}

async fn put_tenant_record(memory: &Memory, key: &str) {
    let namespace = Namespace::app("notes").unwrap();
    let value = Some(JsonText::new("1").unwrap());
    let write = RecordWrite { value, ..deletion_of(RecordOwner::Tenant, &namespace, key) };
    let written = memory.backend().store.write_record(&acme(), write, memory.now()).await;
    // A store with faults may have executed the write and lost the response.
    drop(written);
}

fn library_document() -> NewLibraryDocument {
    let passage = Passage { place: "lines 1-2".to_owned(), text: "The gate is closed on Sundays.".to_owned() };
    let (id, title) = ("garden.md".to_owned(), "Garden".to_owned());
    NewLibraryDocument { id, title, revision: "1".to_owned(), passages: vec![passage] }
}

#[tokio::test(start_paused = true)]
async fn every_erasure_is_logged() {
    on_all_stores(async |env: TestEnv| {
        let (memory, log) = memory_with_log(&env);
        let (thread, _) = append_to_new_thread(&memory, &ana(), "a thread").await;
        let (other, message) = append_to_new_thread(&memory, &ana(), "a message").await;
        memory.set_preference(&ana(), "line", "Northern").await.unwrap();
        memory.put_library_document(&ana(), "notes", library_document(), None).await.unwrap();
        assert_eq!(log.items(), []);

        memory.delete_thread(&ana(), thread).await.unwrap();
        memory.erase_messages(&ana(), other, &[message]).await.unwrap();
        memory.delete_preference(&ana(), "line").await.unwrap();
        assert!(memory.remove_library_document(&ana(), "notes", "garden.md").await.unwrap());
        // The server's API deletes records through the store, without calling a method of `Memory`.
        put_tenant_record(&memory, "rules").await;
        let notes = Namespace::app("notes").unwrap();
        loop {
            let write = deletion_of(RecordOwner::Tenant, &notes, "rules");
            match memory.backend().store.write_record(&acme(), write, memory.now()).await {
                Err(error) if error.is_retryable() || error.maybe_applied() => {}
                result => {
                    result.unwrap();
                    break;
                }
            }
        }
        let options = EraseOptions { shared_messages: SharedMessages::Erase };
        memory.erase_user(&acme(), &user_id("ben"), options).await.unwrap();

        let items = log.items();
        let assert_logged = |expected: &dyn Fn(&ErasedItem) -> bool| assert!(items.iter().any(expected), "{items:?}");
        assert_logged(&|item| *item == ErasedItem::Thread(thread));
        assert_logged(
            &|item| matches!(item, ErasedItem::Message { message: erased, change: 2, .. } if *erased == message),
        );
        for (expected_owner, expected_namespace, expected_key) in [
            (RecordOwner::User(user_id("ana")), "preferences", "line"),
            (RecordOwner::User(user_id("ana")), "library:notes", "garden.md"),
        ] {
            let expected_namespace = Namespace::app(expected_namespace).unwrap();
            assert_logged(&|item| {
                matches!(item, ErasedItem::Record { owner, namespace, key, version }
                    if *owner == expected_owner && *namespace == expected_namespace && key == expected_key && *version > 0)
            });
        }
        assert_logged(
            &|item| matches!(item, ErasedItem::User { user, shared_messages: true, .. } if *user == user_id("ben")),
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn rejected_erasures_are_not_logged() {
    // Stores that lose responses are not tested here: if the outcome of an erasure is unknown, its entry remains in the log.
    for env in [TestEnv::plain(), TestEnv::sqlite()] {
        let (memory, log) = memory_with_log(&env);
        let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&acme(), memory.generate_thread_id()) };
        let shared = memory.open_thread(&acme(), open).await.unwrap().thread.id;
        let appended = memory.append(&acme(), shared, Draft::user("for everyone")).await.unwrap();
        let message = appended.messages[0].id;
        assert!(memory.delete_thread(&ana(), shared).await.is_err());
        assert!(memory.erase_messages(&ana(), shared, &[message]).await.is_err());
        assert!(memory.delete_thread(&ben(), memory.generate_thread_id()).await.is_err());
        assert!(memory.erase_user(&ben(), &user_id("ana"), EraseOptions::default()).await.is_err());
        let unknown = [message, memory.generate_message_id()];
        assert!(memory.erase_messages(&acme(), shared, &unknown).await.is_err());
        // Trimming by a retention policy is not an erasure.
        let retention = Some(Retention { max_messages: Some(1), ttl_minutes: None });
        let options = AppendOptions { retention, ..AppendOptions::default() };
        memory.append_all(&acme(), shared, vec![Draft::user("one more")], &options).await.unwrap();
        assert_eq!(memory.newest(&acme(), shared, 10).await.unwrap().len(), 1);
        assert_eq!(log.items(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn an_erasure_that_cannot_be_logged_is_not_executed() {
    on_memory_stores(async |env: TestEnv| {
        let (memory, log) = memory_with_log(&env);
        let (thread, message) = append_to_new_thread(&memory, &ana(), "stays").await;
        memory.set_preference(&ana(), "line", "Northern").await.unwrap();
        log.fails.store(true, Ordering::Relaxed);
        let assert_full = |error: MemoryError| {
            assert!(
                matches!(error, MemoryError::Store(StoreError::Unavailable { reason: Reason::Full, .. })),
                "{error}"
            );
        };
        assert_full(memory.delete_thread(&ana(), thread).await.unwrap_err());
        assert_full(memory.erase_messages(&ana(), thread, &[message]).await.unwrap_err());
        assert_full(memory.delete_preference(&ana(), "line").await.unwrap_err());
        assert_full(memory.erase_user(&ana(), &user_id("ana"), EraseOptions::default()).await.unwrap_err());
        assert_eq!(memory.newest(&ana(), thread, 10).await.unwrap().len(), 1);
        assert_eq!(memory.list_preferences(&ana()).await.unwrap().len(), 1);
    })
    .await;
}

/// Copies the whole store, as a backup does.
async fn copy_store(memory: &Memory) -> Backend {
    let copy = MemoryStore::open();
    let migration = Migration::begin(memory.backend(), copy.clone(), memory.platform()).await.unwrap();
    assert!(migration.copy(|_| {}).await.unwrap().conflicts.is_empty());
    copy
}

#[tokio::test(start_paused = true)]
async fn later_erasures_are_applied_to_a_restored_backup() {
    let env = TestEnv::plain();
    let (memory, log) = memory_with_log(&env);
    for scope in [ana(), ben()] {
        append_to_new_thread(&memory, &scope, "before").await;
        memory.set_preference(&scope, "line", "Northern").await.unwrap();
    }
    let (kept_thread, message) = append_to_new_thread(&memory, &ben(), "kept but for this").await;
    memory.append(&ben(), kept_thread, Draft::user("and this stays")).await.unwrap();
    env.clock.advance_minutes(1);
    let backup_before_erasure = (copy_store(&memory).await, memory.now());
    env.clock.advance_minutes(10);
    memory.erase_user(&acme(), &user_id("ana"), EraseOptions::default()).await.unwrap();
    memory.erase_messages(&ben(), kept_thread, &[message]).await.unwrap();
    env.clock.advance_minutes(10);
    let (new_thread, _) = append_to_new_thread(&memory, &ana(), "after").await;
    memory.set_preference(&ana(), "line", "Central").await.unwrap();
    env.clock.advance_minutes(10);
    let backup_after_erasure = (copy_store(&memory).await, memory.now());

    for is_dated in [true, false] {
        let restore = async |(backend, made_at): &(Backend, Timestamp)| {
            let backend = copy_store(&Memory::with_clock(backend.clone(), env.clock.clone())).await;
            let restored = Memory::with_clock(backend, env.clock.clone());
            let made_at = is_dated.then_some(*made_at);
            let applied = restored.apply_erasures(&mut log.erasure_entries(), made_at).await.unwrap();
            let repeated = restored.apply_erasures(&mut log.erasure_entries(), made_at).await.unwrap();
            assert_eq!(repeated, AppliedErasures::default());
            (restored, applied)
        };
        let (restored, erased) = restore(&backup_before_erasure).await;
        assert_eq!(erased, AppliedErasures { users: 1, threads: 1, messages: 2, records: 1 });
        let records = RecordQuery::of(RecordOwner::User(user_id("ana")));
        assert_eq!(restored.list_records(&acme(), records).await.unwrap(), []);
        assert_eq!(restored.newest(&ben(), kept_thread, 10).await.unwrap().len(), 1);
        assert_eq!(restored.list_preferences(&ben()).await.unwrap().len(), 1);
        let (restored, erased) = restore(&backup_after_erasure).await;
        assert_eq!(erased, AppliedErasures::default());
        assert_eq!(restored.newest(&ana(), new_thread, 10).await.unwrap()[0].content.role, Role::User);
        assert_eq!(restored.preference::<String>(&ana(), "line").await.unwrap().as_deref(), Some("Central"));
    }
}

#[tokio::test(start_paused = true)]
async fn record_versions_continue_above_a_raised_minimum() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        memory.raise_record_versions(7_000).await.unwrap();
        put_tenant_record(memory, "rules").await;
        memory.raise_record_versions(9_000).await.unwrap();
        memory.raise_record_versions(8_000).await.unwrap();
        put_tenant_record(memory, "more").await;
        let records = memory.list_records(&acme(), RecordQuery::of(RecordOwner::Tenant)).await.unwrap();
        // Raising the versions writes a system record, and deletes it again.
        assert!(records.iter().all(|record| matches!(record.namespace, Namespace::App(_))), "{records:?}");
        let new_record = records.iter().find(|record| record.key == "more");
        assert!(new_record.is_none_or(|record| record.version > 9_000), "{records:?}");
    })
    .await;
}
