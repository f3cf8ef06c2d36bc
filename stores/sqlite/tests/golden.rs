//! Tests that files with any released schema stay readable.
//!
//! Each file in `golden` was written by this test, with `THREADKEEP_WRITE_GOLDEN` set, when the schema of the file was the newest one.
//! A new schema adds a file; existing files are never rewritten.

#![expect(clippy::unwrap_used, reason = "a panic in a test names the failing line")]

use std::path::{Path, PathBuf};

use threadkeep_core::{
    Backend, Batch, ChangeTag, Collection, Content, Embedding, EntryHit, Fingerprint, IdempotencyKey, IndexEntry,
    JsonText, Map, MessageId, MessageQuery, MetadataFilter, MetadataValue, Namespace, NewMessage, OpenThread, Part,
    PutRecord, RecordName, RecordOwner, Replacement, Role, Scope, SearchQuery, StoreExt, ThreadId, ThreadKey,
    ThreadOrder, ThreadQuery, ThreadRef, Timestamp, text,
};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

const TEXTS: [&str; 4] = ["¿Dónde está la estación?", "At the corner 🚇", "erased words", "said differently"];

fn golden_file(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/v{version}.db"))
}

fn now() -> Timestamp {
    "2026-11-21T09:00:00Z".parse().unwrap()
}

fn scope() -> Scope {
    Scope::user("acme", "ana").unwrap()
}

fn thread() -> ThreadId {
    ThreadId::from_name(b"golden")
}

fn id(text: &str) -> MessageId {
    MessageId::from_name(text.as_bytes())
}

fn batch(key: &str) -> Batch {
    Batch::new(IdempotencyKey::FromCaller(key.to_owned()), Fingerprint::of(key.as_bytes()))
}

fn notes() -> (Namespace, &'static str) {
    (Namespace::app("notes").unwrap(), "k")
}

/// Writes a file that contains every kind of data.
async fn write(path: &Path) {
    let store = SqliteStore::open(path, SqliteOptions { background: false, ..SqliteOptions::default() }).unwrap();
    let backend = store.backend();
    let open = OpenThread {
        title: Some("Títle".to_owned()),
        metadata: serde_json::from_str::<Map>(r#"{"z":1,"a":[1150.5]}"#).unwrap(),
        ..OpenThread::new(&scope(), thread()).with_key(ThreadKey::new("slack:T1:C1").unwrap())
    };
    backend.store.open_thread(&scope(), open, now()).await.unwrap();
    let mut first = batch("first");
    for (text, role) in TEXTS.iter().zip([Role::User, Role::Assistant, Role::User, Role::Assistant]) {
        first.append.push(NewMessage {
            id: id(text),
            external_id: (*text == TEXTS[1]).then(|| "D1:2".to_owned()),
            created_at: now(),
            content: Content::text(role, *text),
        });
    }
    backend.store.commit(&scope(), thread(), first, now()).await.unwrap();
    backend.search.catch_up(usize::MAX).await.unwrap();
    let mut second = batch("second");
    second.erase.push(id(TEXTS[2]));
    second.replace.push(Replacement { id: id(TEXTS[3]), content: raw() });
    let (namespace, key) = notes();
    let name = RecordName { namespace, key: key.to_owned() };
    second.put.push(PutRecord { name, value: JsonText::new(r#"{"odd" :  [1.50]}"#).unwrap(), expires_at: None });
    backend.store.commit(&scope(), thread(), second, now()).await.unwrap();
    backend.search.upsert(&scope(), &statutes(), vec![entry()]).await.unwrap();
}

fn statutes() -> Collection {
    Collection::Named("statutes".to_owned())
}

fn entry() -> IndexEntry {
    IndexEntry {
        id: "art. 107".to_owned(),
        text: "Las sentencias de amparo".to_owned(),
        fields: serde_json::from_str(r#"{"z":1,"a":[0.5]}"#).unwrap(),
        embedding: Some(Embedding { model: "a model".to_owned(), vector: vec![0.5, -0.25] }),
    }
}

fn raw() -> Content {
    let json = JsonText::new(r#"{"type" : "compaction","n":1e400}"#).unwrap();
    Content {
        parts: vec![Part::Raw { format: "openai.responses".to_owned(), json }],
        ..Content::empty(Role::Assistant)
    }
}

#[tokio::test]
async fn first_schema_stays_readable() {
    let folder = tempfile::tempdir().unwrap();
    let backend = open_copy(1, folder.path()).await;
    assert_reads_threads(&backend).await;
    // Collections can be used, although only a later schema added them.
    backend.search.upsert(&scope(), &statutes(), vec![entry()]).await.unwrap();
    assert_reads_collection(&backend).await;
}

#[tokio::test]
async fn later_schemas_stay_readable() {
    if std::env::var_os("THREADKEEP_WRITE_GOLDEN").is_some() {
        write(&golden_file(8)).await;
    }
    for version in [2, 3, 4, 5, 6, 7, 8] {
        let folder = tempfile::tempdir().unwrap();
        let backend = open_copy(version, folder.path()).await;
        let found = backend.store.get_thread(&scope(), thread(), now()).await.unwrap();
        assert_eq!(found.positions.tag, (version >= 7).then(|| ChangeTag::of(&batch("second").key)), "{version}");
        assert_reads_threads(&backend).await;
        assert_reads_collection(&backend).await;
    }
}

async fn open_copy(version: u32, folder: &Path) -> Backend {
    let path = folder.join("copy.db");
    std::fs::copy(golden_file(version), &path).unwrap();
    SqliteStore::open(&path, SqliteOptions::default()).unwrap().backend()
}

async fn assert_reads_collection(backend: &Backend) {
    let query = SearchQuery {
        collection: statutes(),
        terms: text::distinct_terms("amparo"),
        alternatives: Vec::new(),
        vector: entry().embedding,
        filters: Vec::new(),
        metadata: MetadataFilter::default(),
        thread: None,
        limit: 9,
        reads_messages: false,
    };
    let IndexEntry { id, text, fields, .. } = entry();
    let found = EntryHit { owner: scope().default_owner(), id, text, fields, similarity: Some(1.0) };
    assert_eq!(backend.search.search(&scope(), &query, now()).await.unwrap().entries, [found]);
}

async fn assert_reads_threads(backend: &Backend) {
    assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);

    let reference = ThreadRef::Key(scope().default_owner(), ThreadKey::new("slack:T1:C1").unwrap());
    let found = backend.store.find_thread(&scope(), &reference, now()).await.unwrap().unwrap();
    assert_eq!((found.id, found.title.as_deref(), found.message_count), (thread(), Some("Títle"), 3));
    assert_eq!(serde_json::to_string(&found.metadata).unwrap(), r#"{"z":1,"a":[1150.5]}"#);
    let metadata = MetadataFilter::default().with("z", MetadataValue::Integer(1));
    let filtered = ThreadQuery { metadata, ..ThreadQuery::new(ThreadOrder::Created, 9) };
    let filtered = backend.store.list_threads(&scope(), &filtered, now()).await.unwrap();
    assert_eq!(filtered.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [thread()]);
    let positions = found.positions;
    assert_eq!((positions.seq, positions.change, positions.first_seq), (4, 2, 1));

    let page = backend.store.list_messages(&scope(), thread(), &MessageQuery::newest(9), now()).await.unwrap();
    let read: Vec<_> = page.messages.iter().map(|message| (message.seq, message.id, &message.content)).collect();
    let plain = [Content::text(Role::User, TEXTS[0]), Content::text(Role::Assistant, TEXTS[1])];
    assert_eq!(read, [(1, id(TEXTS[0]), &plain[0]), (2, id(TEXTS[1]), &plain[1]), (4, id(TEXTS[3]), &raw())]);
    assert_eq!(page.messages[1].external_id.as_deref(), Some("D1:2"));

    let (namespace, key) = notes();
    let owner = RecordOwner::Thread(thread());
    let record = backend.store.find_record(&scope(), &owner, &namespace, key, now()).await.unwrap().unwrap();
    assert_eq!((record.value.as_str(), record.version), (r#"{"odd" :  [1.50]}"#, 2));

    // A commit that the old file contains is recognised when it is repeated, and the thread accepts new commits.
    let mut repeated = batch("first");
    repeated.append.push(NewMessage {
        id: id("other"),
        external_id: None,
        created_at: now(),
        content: Content::text(Role::User, "other"),
    });
    let outcome = backend.store.commit(&scope(), thread(), repeated.clone(), now()).await.unwrap();
    assert_eq!((outcome.replayed, outcome.first_seq, outcome.count), (true, 1, 4));
    repeated.key = IdempotencyKey::FromCaller("third".to_owned());
    assert_eq!(backend.store.commit(&scope(), thread(), repeated, now()).await.unwrap().first_seq, 5);

    backend.search.catch_up(usize::MAX).await.unwrap();
    let query = SearchQuery {
        collection: Collection::Messages,
        terms: text::distinct_terms("estacion erased corner"),
        alternatives: Vec::new(),
        vector: None,
        filters: Vec::new(),
        metadata: MetadataFilter::default(),
        thread: None,
        limit: 9,
        reads_messages: false,
    };
    let mut hits = backend.search.search(&scope(), &query, now()).await.unwrap().hits;
    hits.sort_by_key(|hit| hit.seq);
    assert_eq!(hits.iter().map(|hit| hit.seq).collect::<Vec<_>>(), [1, 2]);
}
