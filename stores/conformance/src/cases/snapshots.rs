use threadkeep_core::{
    Batch, ChunkSize, Content, Dump, DumpEntry, Kind, ListedThread, OpenThread, OwnedRecord, Record, RecordOwner,
    Replacement, Role, Snapshot, StoreError, TenantId, ThreadId,
};

use crate::client::{Client, with_retries};
use crate::conversation::Conversation;
use crate::fixtures::{
    acme, ana, app, appending, assert_error, at, batch, ben, message_id, note_write, put, system, tenant, thread_id,
    user, user_id, user_message,
};
use crate::run::TestEnv;

/// A chunk size that is large enough for a whole store.
const LARGE: ChunkSize = ChunkSize { entries: 1_000, bytes: 1_000_000 };

/// The complete content of a snapshot.
#[derive(Clone, Debug, PartialEq)]
struct Everything {
    threads: Vec<(TenantId, threadkeep_core::Thread)>,
    dumps: Vec<Vec<Dump>>,
    records: Vec<(TenantId, RecordOwner, Record)>,
}

async fn read(snapshot: &dyn Snapshot, page_size: usize, size: ChunkSize) -> Everything {
    let listed = list_threads(snapshot, page_size).await;
    let numbers: Vec<u64> = listed.iter().map(|listed| listed.number).collect();
    assert!(numbers.is_sorted_by(|one, other| one < other), "threads are listed in the order of their creation");
    let totals = with_retries(|| snapshot.totals()).await.expect("counting works");
    let messages = listed.iter().map(|listed| listed.thread.message_count).sum();
    assert_eq!((totals.threads, totals.messages), (listed.len() as u64, messages));
    let threads = listed.into_iter().map(|listed| (listed.tenant, listed.thread)).collect();
    let mut records = list_records(snapshot, page_size).await;
    records.sort_by_key(|owned| (owned.tenant.clone(), owned.owner.clone(), owned.record.key.clone()));
    let records = records.into_iter().map(|owned| (owned.tenant, owned.owner, owned.record)).collect();
    Everything { threads, dumps: dump(snapshot, &numbers, size).await, records }
}

async fn list_threads(snapshot: &dyn Snapshot, page_size: usize) -> Vec<ListedThread> {
    let mut listed: Vec<ListedThread> = Vec::new();
    loop {
        let after = listed.last().map(|listed| listed.number);
        let found = with_retries(|| snapshot.list_threads(after, page_size)).await.expect("listing works");
        assert!(found.len() <= page_size);
        if found.is_empty() {
            return listed;
        }
        listed.extend(found);
    }
}

async fn list_records(snapshot: &dyn Snapshot, page_size: usize) -> Vec<OwnedRecord> {
    let mut listed: Vec<OwnedRecord> = Vec::new();
    loop {
        let after = listed.last();
        let found = with_retries(|| snapshot.list_records(after, page_size)).await.expect("listing works");
        assert!(found.len() <= page_size);
        if found.is_empty() {
            return listed;
        }
        listed.extend(found);
    }
}

/// Dumps all threads. Returns the chunks of each.
async fn dump(snapshot: &dyn Snapshot, numbers: &[u64], size: ChunkSize) -> Vec<Vec<Dump>> {
    let (mut dumps, mut rest, mut after): (Vec<Vec<Dump>>, _, _) = (Vec::new(), numbers, None);
    while !rest.is_empty() {
        let chunks = with_retries(|| snapshot.dump_threads(rest, after, size)).await.expect("dumping works");
        assert!((1..=rest.len()).contains(&chunks.len()));
        assert!(chunks.iter().map(|chunk| chunk.entries.len()).sum::<usize>() <= size.entries);
        assert!(
            chunks[..chunks.len() - 1].iter().all(|chunk| chunk.next.is_none()),
            "only the last chunk may be incomplete"
        );
        assert_eq!(chunks[0].thread.is_none(), after.is_some(), "only the first chunk of a thread contains its row");
        let (answered, next) = (chunks.len(), chunks.last().and_then(|chunk| chunk.next));
        let mut chunks = chunks.into_iter();
        if after.is_some() {
            dumps.last_mut().expect("the thread has a first chunk").extend(chunks.next());
        }
        dumps.extend(chunks.map(|chunk| vec![chunk]));
        rest = &rest[answered - usize::from(next.is_some())..];
        after = next;
    }
    dumps
}

/// Creates threads for two tenants (one of the threads is empty), and records.
async fn fill(client: &Client) -> Conversation {
    let conversation = super::thread_with_history(client).await;
    Conversation::open(client, &ben(), 2, at(1)).await;
    let shared = Conversation::open(client, &acme(), 3, at(1)).await;
    shared.append(31..=36, at(2)).await;
    let other = Conversation::open(client, &user("globex", "ana"), 1, at(2)).await;
    other.append(41..=43, at(2)).await;
    other.commit(&Batch { put: vec![put(system("run"), "journal", "[1]")], ..batch("put") }, at(3)).await;
    for (scope, owner, key) in [
        (ana(), RecordOwner::User(user_id("ana")), "line"),
        (acme(), RecordOwner::Tenant, "limits"),
        (acme(), RecordOwner::User(user_id("ben")), "line"),
        (user("globex", "ana"), RecordOwner::User(user_id("ana")), "line"),
    ] {
        client.write_record(&scope, &note_write(owner, key, "17"), at(3)).await.expect("writing works");
    }
    conversation
}

/// Changes the conversation, threads and records in every way.
async fn change_everything(client: &Client, conversation: &Conversation) {
    conversation.append(100..=103, at(10)).await;
    let replace = vec![Replacement { id: message_id(8), content: Content::text(Role::User, "replaced later") }];
    conversation.commit(&Batch { replace, ..batch("later replace") }, at(10)).await;
    conversation.commit(&Batch { erase: vec![message_id(9)], ..batch("later erase") }, at(10)).await;
    conversation.commit(&Batch { trim_below: Some(5), ..batch("later trim") }, at(10)).await;
    conversation.commit(&Batch { put: vec![put(app("notes"), "k", "2")], ..batch("later put") }, at(10)).await;
    client.delete_thread(&acme(), thread_id(3), at(11)).await.expect("deleting works");
    let new = Conversation::open(client, &ana(), 9, at(11)).await;
    new.append(91..=92, at(11)).await;
    let owner = RecordOwner::User(user_id("ana"));
    client.write_record(&ana(), &note_write(owner.clone(), "line", "18"), at(11)).await.expect("writing works");
    client.write_record(&ana(), &note_write(owner, "new", "19"), at(11)).await.expect("writing works");
    let mut removed = note_write(RecordOwner::Tenant, "limits", "0");
    removed.value = None;
    client.write_record(&acme(), &removed, at(11)).await.expect("writing works");
}

pub(super) async fn a_snapshot_ignores_later_writes(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = fill(client).await;
    let snapshot = client.snapshot(at(9)).await.expect("taking a snapshot works");
    assert_eq!(snapshot.consistency(), env.capabilities().snapshots);
    // The snapshot has the state at its creation, even if the first read from it follows later writes.
    let whole = conversation.dump(1_000).await;
    change_everything(client, &conversation).await;
    let before = read(&*snapshot, 1_000, LARGE).await;
    assert_eq!(before.dumps[0], whole);
    let ids: Vec<ThreadId> = before.threads.iter().map(|(_, thread)| thread.id).collect();
    assert_eq!(ids, [thread_id(1), thread_id(2), thread_id(3), thread_id(1)]);
    assert_eq!((before.records.len(), before.dumps[1][0].entries.len()), (4, 0));
    conversation.append(110..=112, at(12)).await;
    assert_eq!(read(&*snapshot, 1_000, LARGE).await, before);
    drop(snapshot);
    client.sweep(at(12)).await.expect("sweeping works");
    let after = client.snapshot(at(12)).await.expect("taking a snapshot works");
    let after = read(&*after, 1_000, LARGE).await;
    let ids: Vec<ThreadId> = after.threads.iter().map(|(_, thread)| thread.id).collect();
    assert_eq!(ids, [thread_id(1), thread_id(2), thread_id(1), thread_id(9)]);
    assert_eq!(after.dumps[0], conversation.dump(1_000).await);
}

pub(super) async fn snapshots_are_independent(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    conversation.append(1..=3, at(1)).await;
    let first = client.snapshot(at(2)).await.expect("taking a snapshot works");
    conversation.append(4..=5, at(2)).await;
    let second = client.snapshot(at(3)).await.expect("taking a snapshot works");
    conversation.append(6..=9, at(3)).await;
    for (snapshot, count) in [(&first, 3), (&second, 5), (&first, 3)] {
        let content = read(&**snapshot, 10, LARGE).await;
        assert_eq!(content.dumps[0][0].entries.len(), count);
    }
    drop(first);
    assert_eq!(read(&*second, 10, LARGE).await.dumps[0][0].entries.len(), 5);
    // Snapshots do not block writers.
    assert_eq!(conversation.append(10..=10, at(4)).await.first_seq, 10);
}

pub(super) async fn a_snapshot_is_read_in_chunks_of_any_size(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    fill(client).await;
    let snapshot = client.snapshot(at(9)).await.expect("taking a snapshot works");
    let whole = read(&*snapshot, 1_000, LARGE).await;
    let entries = |chunks: &[Dump]| chunks.iter().flat_map(|chunk| chunk.entries.clone()).collect::<Vec<DumpEntry>>();
    for (page_size, entry_count, bytes) in
        [(1, 1, 1_000_000), (2, 3, 1_000_000), (3, 1_000, 1), (4, 7, 100), (9, 8, 250)]
    {
        let size = ChunkSize { entries: entry_count, bytes };
        let seen = read(&*snapshot, page_size, size).await;
        assert_eq!((&seen.threads, &seen.records), (&whole.threads, &whole.records));
        assert_eq!(seen.dumps.len(), whole.dumps.len());
        for (seen, whole) in seen.dumps.iter().zip(&whole.dumps) {
            assert_eq!(entries(seen), entries(whole), "{size:?}");
            let texts = |chunk: &Dump| {
                let is_text = |entry: &&DumpEntry| matches!(entry, DumpEntry::Message { .. });
                chunk.entries.iter().filter(is_text).count()
            };
            assert!(bytes > 1 || seen.iter().all(|chunk| texts(chunk) <= 1), "{seen:?}");
            let rest = (&seen[0].thread, &seen[0].records, &seen[0].commits);
            assert_eq!(rest, (&whole[0].thread, &whole[0].records, &whole[0].commits));
            assert!(seen[1..].iter().all(|chunk| chunk.records.is_empty() && chunk.commits.is_empty()));
            assert!(seen[1..].iter().all(|chunk| !chunk.entries.is_empty()), "a chunk other than the first is empty");
        }
    }
    assert_error!(with_retries(|| snapshot.list_threads(None, 0)).await, StoreError::Invalid { .. });
    assert_error!(with_retries(|| snapshot.list_records(None, 1_001)).await, StoreError::LimitExceeded { .. });
    let none = ChunkSize { entries: 0, bytes: 1 };
    assert_error!(with_retries(|| snapshot.dump_threads(&[1], None, none)).await, StoreError::Invalid { .. });
    let unknown = with_retries(|| snapshot.dump_threads(&[1 << 40], None, LARGE)).await;
    assert_error!(unknown, StoreError::NotFound(Kind::Thread));
}

pub(super) async fn snapshots_exclude_expired_data(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let open = OpenThread { expires_at: Some(at(5)), ..OpenThread::new(&ana(), thread_id(1)) };
    let conversation = Conversation::open_as(client, &ana(), &open, at(0)).await;
    conversation.commit(&appending(vec![user_message(1, "expires soon")]), at(1)).await;
    let mut expiring = note_write(RecordOwner::Tenant, "expiring", "1");
    expiring.expires_at = Some(at(5));
    client.write_record(&acme(), &expiring, at(1)).await.expect("writing works");
    for (now, count) in [(4, 1), (5, 0)] {
        let snapshot = client.snapshot(at(now)).await.expect("taking a snapshot works");
        let seen = read(&*snapshot, 10, LARGE).await;
        assert_eq!((seen.threads.len(), seen.records.len()), (count, count));
        assert!(seen.threads.iter().all(|(thread_tenant, _)| *thread_tenant == tenant("acme")));
    }
}
