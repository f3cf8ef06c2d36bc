use threadkeep_core::*;
use threadkeep_store_sqlite::*;

#[tokio::test(flavor = "multi_thread")]
async fn smoke() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("a/b.db"), SqliteOptions::default()).unwrap();
    let backend = store.backend();
    let scope = Scope::user("t", "u").unwrap();
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let id = ThreadId::from_name(b"x");
    let opened = backend.store.open_thread(&scope, OpenThread::new(&scope, id), now).await.unwrap();
    assert!(opened.created);
    let n = 20000u64;
    let t = std::time::Instant::now();
    for i in 0..n / 2 {
        let mut batch = Batch::new(IdempotencyKey::Given(format!("k{i}")), Fingerprint::of(b"x"));
        for j in 0..2 {
            batch.append.push(NewMessage {
                id: MessageId::v7(
                    now,
                    (i * 2 + j).to_be_bytes().iter().copied().chain([0, 0]).collect::<Vec<_>>().try_into().unwrap(),
                ),
                external_id: None,
                created_at: now,
                content: Content::text(Role::User, format!("hello number {i} {}", "word ".repeat(36))),
            });
        }
        backend.store.commit(&scope, id, batch, now).await.unwrap();
    }
    eprintln!("append {:?}/turn", t.elapsed() / (n as u32 / 2));
    let t = std::time::Instant::now();
    for _ in 0..1000 {
        let page = backend.store.list_messages(&scope, id, &MessageQuery::newest(16), now).await.unwrap();
        assert_eq!(page.messages.len(), 16);
    }
    eprintln!("load {:?}", t.elapsed() / 1000);
    let t = std::time::Instant::now();
    backend.search.catch_up(usize::MAX).await.unwrap();
    eprintln!("index {:?}/msg", t.elapsed() / n as u32);
    let query = SearchQuery {
        collection: Collection::Messages,
        terms: text::terms("number 7777"),
        vector: None,
        thread: None,
        limit: 10,
    };
    let answer = backend.search.search(&scope, &query, now).await.unwrap();
    eprintln!("{answer:?}");
    let t = std::time::Instant::now();
    for _ in 0..100 {
        backend.search.search(&scope, &query, now).await.unwrap();
    }
    eprintln!("search {:?}", t.elapsed() / 100);
    let report = backend.maintenance.verify().await.unwrap();
    assert_eq!(report.findings, []);
    let bytes: u64 = store.files().iter().map(|f| f.metadata().unwrap().len()).sum();
    eprintln!(
        "bytes {:?} {}",
        store.files().iter().map(|f| f.metadata().unwrap().len()).collect::<Vec<_>>(),
        bytes / n
    );
    let t = std::time::Instant::now();
    backend.store.delete_thread(&scope, id, now).await.unwrap();
    eprintln!("delete {:?}", t.elapsed());
    let t = std::time::Instant::now();
    eprintln!("{:?}", backend.maintenance.sweep(now).await.unwrap());
    eprintln!("sweep {:?}", t.elapsed());
}
