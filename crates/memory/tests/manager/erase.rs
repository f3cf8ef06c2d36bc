use async_trait::async_trait;
use threadkeep_core::{
    Collection, Content, Embedder, EmbedderError, Embedding, JsonText, MetadataFilter, Namespace, OpenThread, Owner,
    RecordOwner, RecordQuery, RecordWrite, Role, Scope, SearchQuery, StoreError, ThreadOrder, ThreadQuery,
};
use threadkeep_memory::{
    AppendOptions, Draft, EraseOptions, EraseReport, Memory, MemoryError, NewLibraryDocument, Passage, PassageOptions,
    SharedMessages,
};

use super::test_env::{TestEnv, acme, ana, ben, on_all_stores, user_id};

async fn write_record(env: &TestEnv, scope: &Scope, owner: RecordOwner, namespace: Namespace, key: &str) {
    let value = Some(JsonText::new("1").unwrap());
    let write = RecordWrite { owner, namespace, key: key.to_owned(), expected: None, value, expires_at: None };
    env.backend.store.write_record(scope, write, env.memory.now()).await.unwrap();
}

fn draft_from(author: &str, text: &str) -> Draft {
    Draft::new(Content { author: Some(author.to_owned()), ..Content::text(Role::User, text) })
}

#[tokio::test(start_paused = true)]
async fn erasing_a_user_removes_only_their_data() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let other_tenant = Scope::user("other", "ana").unwrap();
        for scope in [ana(), ben(), other_tenant.clone()] {
            for _ in 0..2 {
                let thread = memory.open(&scope).await.unwrap().thread.id;
                memory.append(&scope, thread, Draft::user("hello")).await.unwrap();
            }
            memory.set_preference(&scope, "line", "Northern").await.unwrap();
        }
        write_record(&env, &ana(), RecordOwner::User(user_id("ana")), Namespace::system("summary").unwrap(), "s").await;
        let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&acme(), memory.generate_thread_id()) };
        let shared = memory.open_thread(&acme(), open).await.unwrap().thread.id;
        for draft in [draft_from("ana", "my secret"), draft_from("ben", "hi"), draft_from("ana", "bye")] {
            memory.append(&acme(), shared, draft).await.unwrap();
        }

        let report = memory.erase_user(&acme(), &user_id("ana"), EraseOptions::default()).await.unwrap();
        assert_eq!(report, EraseReport { threads: 2, messages: 2, records: 2, ..EraseReport::default() });
        assert_eq!(memory.newest(&acme(), shared, 10).await.unwrap().len(), 3);
        let options = EraseOptions { shared_messages: SharedMessages::Erase };
        let report = memory.erase_user(&acme(), &user_id("ana"), options).await.unwrap();
        assert_eq!(report, EraseReport { shared_messages: 2, ..EraseReport::default() });
        let remaining = memory.newest(&acme(), shared, 10).await.unwrap();
        assert_eq!(remaining.iter().map(|message| message.plain_text()).collect::<Vec<_>>(), ["hi"]);
        assert_eq!(memory.get_thread(&acme(), shared).await.unwrap().title.as_deref(), Some("hi"));

        let query = ThreadQuery::new(ThreadOrder::Created, 10);
        assert!(memory.list_threads(&ana(), &query).await.unwrap().threads.is_empty());
        let records = RecordQuery::of(RecordOwner::User(user_id("ana")));
        let remaining = env.backend.store.list_records(&ana(), &records, memory.now()).await.unwrap();
        assert_eq!(remaining, []);
        for scope in [ben(), other_tenant] {
            assert_eq!(memory.list_threads(&scope, &query).await.unwrap().threads.len(), 2);
            assert_eq!(memory.list_preferences(&scope).await.unwrap().len(), 1);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn erasing_a_user_includes_all_pages_of_data() {
    let env = TestEnv::plain();
    let memory = &env.memory;
    for number in 0..1_100 {
        memory.open(&ana()).await.unwrap();
        memory.set_preference(&ana(), &number.to_string(), &number).await.unwrap();
    }
    let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&acme(), memory.generate_thread_id()) };
    let shared = memory.open_thread(&acme(), open).await.unwrap().thread.id;
    for _ in 0..3 {
        let drafts = (0..400).flat_map(|_| [draft_from("ana", "mine"), draft_from("ben", "his")]);
        memory.append_all(&acme(), shared, drafts.collect(), &AppendOptions::default()).await.unwrap();
    }
    let options = EraseOptions { shared_messages: SharedMessages::Erase };
    let report = memory.erase_user(&acme(), &user_id("ana"), options).await.unwrap();
    assert_eq!(
        report,
        EraseReport { threads: 1_100, records: 1_100, shared_messages: 1_200, ..EraseReport::default() }
    );
    assert_eq!(memory.get_thread(&acme(), shared).await.unwrap().message_count, 1_200);
    let repeated = memory.erase_user(&acme(), &user_id("ana"), options).await.unwrap();
    assert_eq!(repeated, EraseReport::default());
}

#[tokio::test(start_paused = true)]
async fn a_user_cannot_erase_another_user() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        memory.open(&ana()).await.unwrap();
        let refused = memory.erase_user(&ben(), &user_id("ana"), EraseOptions::default()).await.unwrap_err();
        assert!(matches!(refused, MemoryError::Store(StoreError::Denied(_))), "{refused}");
        let shared = EraseOptions { shared_messages: SharedMessages::Erase };
        assert!(memory.erase_user(&ana(), &user_id("ana"), shared).await.is_err());
        let report = memory.erase_user(&ana(), &user_id("ana"), EraseOptions::default()).await.unwrap();
        assert_eq!(report.threads, 1);
    })
    .await;
}

fn library_document(passage_count: usize) -> NewLibraryDocument {
    let passages = (0..passage_count).map(|number| Passage { place: number.to_string(), text: "a walrus".to_owned() });
    let (id, title, revision) = ("animals".to_owned(), "Animals".to_owned(), "1".to_owned());
    NewLibraryDocument { id, title, revision, passages: passages.collect() }
}

/// Counts the library passages that a scope can read, including the passages of the tenant.
async fn count_passages(env: &TestEnv, scope: &Scope) -> u64 {
    let query = SearchQuery {
        collection: Collection::Named("library:handbook".to_owned()),
        terms: threadkeep_core::text::terms("walrus"),
        alternatives: Vec::new(),
        vector: None,
        filters: Vec::new(),
        metadata: MetadataFilter::default(),
        thread: None,
        limit: 10,
        reads_messages: false,
    };
    env.backend.search.search(scope, &query, env.memory.now()).await.unwrap().documents
}

#[tokio::test(start_paused = true)]
async fn erasing_a_user_removes_library_documents_and_passages() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        for scope in [acme(), ana(), ben()] {
            memory.put_library_document(&scope, "handbook", library_document(70), None).await.unwrap();
        }
        assert_eq!((count_passages(&env, &ana()).await, count_passages(&env, &ben()).await), (140, 140));
        let report = memory.erase_user(&acme(), &user_id("ana"), EraseOptions::default()).await.unwrap();
        assert_eq!(report, EraseReport { records: 1, passages: 70, ..EraseReport::default() });
        assert_eq!((count_passages(&env, &ana()).await, count_passages(&env, &ben()).await), (70, 140));
        assert_eq!(memory.list_library(&ana(), "handbook").await.unwrap(), []);
        let repeated = memory.erase_user(&ana(), &user_id("ana"), EraseOptions::default()).await.unwrap();
        assert_eq!(repeated, EraseReport::default());
    })
    .await;
}

/// An embedder that erases the user during one of its calls.
#[derive(Debug)]
struct ErasingEmbedder {
    memory: Memory,
    /// The index of the call that erases the user.
    erase_at: usize,
    call_count: std::sync::atomic::AtomicUsize,
}

#[async_trait]
impl Embedder for ErasingEmbedder {
    fn model(&self) -> &'static str {
        "erases"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedderError> {
        if self.call_count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == self.erase_at {
            let options = EraseOptions::default();
            self.memory.erase_user(&ana(), &user_id("ana"), options).await.expect("users can erase their own data");
        }
        let embedding = Embedding { model: "erases".to_owned(), vector: vec![1.0] };
        Ok(vec![embedding; texts.len()])
    }
}

#[tokio::test(start_paused = true)]
async fn an_erasure_while_a_document_is_added_leaves_no_passages() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        for call in 0..3 {
            let embedder = ErasingEmbedder { memory: memory.clone(), erase_at: call, call_count: 0.into() };
            let document = library_document(150);
            let added = memory.put_library_document(&ana(), "handbook", document, Some(&embedder)).await;
            assert!(added.is_err_and(|error| error.conflict().is_some()), "call {call}");
            assert_eq!(count_passages(&env, &ana()).await, 0, "call {call}");
            assert_eq!(memory.list_library(&ana(), "handbook").await.unwrap(), []);
        }
        memory.put_library_document(&ana(), "handbook", library_document(150), None).await.unwrap();
        let options = PassageOptions::default();
        assert_eq!(memory.find_passages(&ana(), "handbook", "walrus", &options).await.unwrap().passages.len(), 5);
    })
    .await;
}
