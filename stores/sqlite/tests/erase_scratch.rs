use threadkeep_core::*;
use threadkeep_store_sqlite::*;
#[tokio::test(flavor = "multi_thread")]
async fn erased() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("b.db"), SqliteOptions::default()).unwrap();
    let backend = store.backend();
    let scope = Scope::user("t", "u").unwrap();
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut ids = vec![];
    for t in 0..20u32 {
        let id = ThreadId::from_name(&t.to_be_bytes());
        ids.push(id);
        backend.store.open_thread(&scope, OpenThread::new(&scope, id), now).await.unwrap();
    }
    let mut state = 12345u64;
    let mut rnd = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut all = vec![];
    for i in 0..4000u64 {
        let id = ids[(rnd() % 20) as usize];
        let mid = MessageId::from_name(&i.to_be_bytes());
        let secret = format!("zq{i}x{:x}", rnd());
        let mut b = Batch::new(IdempotencyKey::Given(format!("k{i}")), Fingerprint::of(b"x"));
        b.append.push(NewMessage {
            id: mid,
            external_id: None,
            created_at: now,
            content: Content::text(
                Role::User,
                format!("{secret} hello {}", "lorem ipsum ".repeat((rnd() % 60) as usize)),
            ),
        });
        backend.store.commit(&scope, id, b, now).await.unwrap();
        all.push((id, mid, secret));
    }
    backend.search.catch_up(usize::MAX).await.unwrap();
    let mut gone = vec![];
    for (i, (id, mid, secret)) in all.iter().enumerate() {
        if i % 7 == 3 {
            let mut b = Batch::new(IdempotencyKey::Given(format!("e{i}")), Fingerprint::of(b"x"));
            b.erase.push(*mid);
            backend.store.commit(&scope, *id, b, now).await.unwrap();
            gone.push(secret.clone());
        }
    }
    backend.store.delete_thread(&scope, ids[3], now).await.unwrap();
    for (id, _, secret) in &all {
        if *id == ids[3] {
            gone.push(secret.clone());
        }
    }
    backend.maintenance.sweep(now).await.unwrap();
    let mut bytes = vec![];
    for f in store.files() {
        bytes.extend(std::fs::read(f).unwrap());
    }
    let text = bytes;
    let mut found = 0;
    let mut pre = 0;
    for s in &gone {
        if memchr(&text, s.as_bytes()) {
            found += 1;
            eprintln!("found {s}");
        }
        if memchr(&text, &s.as_bytes()[..s.len() - 3]) {
            pre += 1;
        }
    }
    eprintln!("gone {} found {found} prefix {pre}", gone.len());
    assert_eq!(found, 0);
}
fn memchr(hay: &[u8], needle: &[u8]) -> bool {
    hay.windows(needle.len()).any(|w| w == needle)
}
