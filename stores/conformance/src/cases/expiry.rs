use threadkeep_core::{
    Batch, ChangePage, Kind, MessageQuery, OpenThread, Owner, PutRecord, RecordCondition, RecordOwner, RecordQuery,
    RecordState, RecordWrite, StoreError, ThreadOrder, ThreadPatch, ThreadQuery, ThreadRead, ThreadRef, Timestamp,
};

use crate::client::Client;
use crate::conversation::Conversation;
use crate::fixtures::{
    acme, ana, app, appending, assert_error, at, batch, note_write, put, record_name, system, thread_id, thread_key,
    user_id, user_message,
};
use crate::run::TestEnv;

/// Creates a thread with a key, a message and a record that expires at second 10.
async fn open_expiring(client: &Client) -> Conversation {
    let open = OpenThread { expires_at: Some(at(10)), ..OpenThread::new(&ana(), thread_id(1)) };
    let conversation = Conversation::open_as(client, &ana(), &open.with_key(thread_key("key")), at(0)).await;
    let first = Batch { put: vec![put(app("notes"), "k", "1")], ..appending(vec![user_message(1, "walrus")]) };
    conversation.commit(&first, at(1)).await;
    conversation
}

fn just_before(instant: Timestamp) -> Timestamp {
    Timestamp::from_micros(instant.as_micros() - 1).expect("a valid timestamp")
}

async fn assert_absent(conversation: &Conversation, now: Timestamp) {
    let Conversation { client, scope, id } = conversation;
    assert!(!conversation.exists(now).await);
    let key = ThreadRef::Key(Owner::User(user_id("ana")), thread_key("key"));
    assert!(client.find_thread(scope, &key, now).await.expect("reading works").is_none());
    for order in [ThreadOrder::Created, ThreadOrder::Recent] {
        for scope in [ana(), acme()] {
            let page = client.list_threads(&scope, &ThreadQuery::new(order, 10), now).await;
            assert_eq!(page.expect("reading works").threads, []);
        }
    }
    let append = appending(vec![user_message(2, "two")]);
    assert_error!(client.commit(scope, *id, &append, now).await, StoreError::NotFound(Kind::Thread));
    let repeated = Batch { put: vec![put(app("notes"), "k", "1")], ..appending(vec![user_message(1, "walrus")]) };
    assert_error!(client.commit(scope, *id, &repeated, now).await, StoreError::NotFound(Kind::Thread));
    let page = client.list_messages(scope, *id, &MessageQuery::newest(5), now).await;
    assert_error!(page, StoreError::NotFound(Kind::Thread));
    let read =
        ThreadRead { records: vec![record_name(app("notes"), "k")], ..ThreadRead::page(MessageQuery::newest(5)) };
    for reference in [ThreadRef::Id(*id), key] {
        let view = client.read_thread(scope, &reference, &read, now).await;
        assert_eq!(view.expect("reading works"), None);
    }
    assert_error!(client.find_messages(scope, *id, &[], now).await, StoreError::NotFound(Kind::Thread));
    assert_error!(client.list_changes(scope, *id, 0, 5, now).await, StoreError::NotFound(Kind::Thread));
    let followed = client.list_changes_with_messages(scope, *id, 0, 5, now).await;
    assert_error!(followed, StoreError::NotFound(Kind::Thread));
    assert_error!(client.delete_thread(scope, *id, now).await, StoreError::NotFound(Kind::Thread));
    let owner = RecordOwner::Thread(*id);
    let record = client.find_record(scope, &owner, &app("notes"), "k", now).await;
    assert_eq!(record.expect("reading works"), None);
    let records = client.list_records(scope, &RecordQuery::of(owner), now).await;
    assert_eq!(records.expect("reading works"), []);
}

pub(super) async fn an_expired_thread_is_invisible(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = open_expiring(&store.client).await;
    let before = just_before(at(10));
    assert_eq!(conversation.texts(before).await, ["walrus"]);
    let cursor = store.client.list_changed_threads(&ana(), None, 5, before).await.expect("reading works").cursor;
    assert_eq!(conversation.append(2..=2, before).await.first_seq, 2);
    assert_absent(&conversation, at(10)).await;
    let changed = store.client.list_changed_threads(&ana(), Some(&cursor), 5, at(10)).await;
    assert_eq!(changed.expect("reading works").threads, []);
    // The caller passes the time. For a caller whose clock is behind, the thread is visible until a sweep.
    assert_eq!(conversation.texts(before).await.len(), 2);
    assert_eq!(conversation.entries().await.len(), 2, "a dump includes expired threads until a sweep");

    assert_eq!(store.client.sweep(before).await.expect("sweeping works").expired_threads, 0);
    assert_eq!(conversation.texts(before).await.len(), 2);
    assert_eq!(store.client.sweep(at(10)).await.expect("sweeping works").expired_threads, 1);
    assert_absent(&conversation, at(10)).await;
    assert!(!conversation.exists(before).await);
    let dump = store.client.dump_thread(acme().tenant_id(), conversation.id, None, 10).await;
    assert_error!(dump, StoreError::NotFound(Kind::Thread));
}

pub(super) async fn opening_replaces_an_expired_thread(env: &TestEnv<'_>) {
    for sweep in [false, true] {
        for by_key in [false, true] {
            let store = env.open().await;
            let old = open_expiring(&store.client).await;
            if sweep {
                store.client.sweep(at(10)).await.expect("sweeping works");
            }
            // The thread is opened by its key with another id, or by its id.
            let open = if by_key {
                OpenThread::new(&ana(), thread_id(2)).with_key(thread_key("key"))
            } else {
                OpenThread::new(&ana(), old.id)
            };
            let reopened = Conversation::open_as(&store.client, &ana(), &open, at(10)).await;
            assert_eq!(reopened.thread(at(11)).await.created_at, at(10));
            assert_eq!(reopened.messages(at(11)).await, []);
            let records = RecordQuery::of(RecordOwner::Thread(reopened.id));
            assert_eq!(store.client.list_records(&ana(), &records, at(11)).await.expect("reading works"), []);
            // The old thread's idempotency records do not apply to the new one.
            let first = Batch { put: vec![put(app("notes"), "k", "1")], ..appending(vec![user_message(1, "walrus")]) };
            let outcome = reopened.commit(&first, at(12)).await;
            assert!(!outcome.replayed || env.has_faults());
            store.client.sweep(at(13)).await.expect("sweeping works");
            assert_eq!(reopened.texts(at(14)).await, ["walrus"], "a sweep removed the new thread");
            let query = ThreadQuery::new(ThreadOrder::Created, 10);
            let page = store.client.list_threads(&ana(), &query, at(14)).await.expect("reading works");
            assert_eq!(page.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [reopened.id]);
        }
    }
}

pub(super) async fn an_expiry_can_be_changed(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = open_expiring(&store.client).await;
    let expires = |at| ThreadPatch { expires_at: Some(at), ..ThreadPatch::default() };
    conversation.commit(&Batch { patch: expires(Some(at(20))), ..batch("later") }, at(9)).await;
    assert_eq!(conversation.texts(at(19)).await, ["walrus"]);
    assert!(!conversation.exists(at(20)).await);
    conversation.commit(&Batch { patch: expires(None), ..batch("never") }, at(19)).await;
    assert_eq!(conversation.texts(at(1_000_000)).await, ["walrus"]);
    // The retry of a commit that expired the thread does not find the thread.
    let ended = conversation.try_commit(&Batch { patch: expires(Some(at(5))), ..batch("past") }, at(20)).await;
    assert!(ended.is_ok() || env.has_faults() && matches!(ended, Err(StoreError::NotFound(Kind::Thread))), "{ended:?}");
    assert!(!conversation.exists(at(20)).await);
}

pub(super) async fn expired_threads_do_not_shorten_pages(env: &TestEnv<'_>) {
    let store = env.open().await;
    for number in 1..=9 {
        let expires_at = (number % 3 != 0).then(|| at(10));
        let open = OpenThread { expires_at, ..OpenThread::new(&ana(), thread_id(number)) };
        let second = i64::try_from(number).expect("a small number");
        Conversation::open_as(&store.client, &ana(), &open, at(second)).await;
    }
    let query = ThreadQuery::new(ThreadOrder::Created, 2);
    let page = store.client.list_threads(&ana(), &query, at(10)).await.expect("reading works");
    assert_eq!(page.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [3, 6].map(thread_id));
    let query = ThreadQuery { after: page.next, ..query };
    let page = store.client.list_threads(&ana(), &query, at(10)).await.expect("reading works");
    assert_eq!(page.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [9].map(thread_id));
    assert_eq!(page.next, None);
}

pub(super) async fn an_expired_record_is_invisible(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let owner = RecordOwner::User(user_id("ana"));
    let write = RecordWrite { expires_at: Some(at(10)), ..note_write(owner.clone(), "k", "1") };
    let first = client.write_record(&ana(), &write, at(1)).await.expect("writing works").version;
    client.write_record(&ana(), &note_write(owner.clone(), "kept", "1"), at(1)).await.expect("writing works");
    let find = async |now| {
        let found = client.find_record(&ana(), &owner, &app("notes"), "k", now).await.expect("reading works");
        let listed = client.list_records(&ana(), &RecordQuery::of(owner.clone()), now).await;
        assert_eq!(listed.expect("reading works").len(), 1 + usize::from(found.is_some()));
        found
    };
    assert!(find(just_before(at(10))).await.is_some());
    assert_eq!(find(at(10)).await, None);
    let report = client.sweep(at(9)).await.expect("sweeping works");
    assert_eq!(report.expired_records, 0);
    assert!(find(at(9)).await.is_some());
    // For compare-and-set the expired record is absent, and its version is not reused.
    let absent = RecordWrite { expected: Some(0), ..write.clone() };
    let second = client.write_record(&ana(), &absent, at(10)).await.expect("writing works").version;
    assert!(second > first);
    assert_eq!(client.sweep(at(10)).await.expect("sweeping works").expired_records, 1);
    assert_eq!(find(at(9)).await, None);
    let third = client.write_record(&ana(), &note_write(owner.clone(), "k", "1"), at(11)).await.expect("writing works");
    assert!(third.version > second);
    assert!(find(at(1_000_000)).await.is_some());
}

pub(super) async fn thread_records_expire_independently(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let name = record_name(system("run"), "lease");
    let lease = PutRecord { expires_at: Some(at(10)), ..put(system("run"), "lease", "1") };
    conversation.commit(&Batch { put: vec![lease.clone()], ..batch("take") }, at(1)).await;
    let require = vec![RecordCondition { name: name.clone(), state: RecordState::Absent }];
    let take = |key: &str| Batch { require: require.clone(), put: vec![lease.clone()], ..batch(key) };
    assert!(conversation.try_commit(&take("early"), just_before(at(10))).await.is_err());
    let delete = Batch { delete: vec![name], ..batch("delete") };
    conversation.commit(&delete, at(10)).await;
    let ChangePage::Changes { changes, .. } = conversation.changes(1, at(10)).await else { panic!("unexpected reset") };
    assert_eq!(changes[0].effects, [], "deleting an expired record is not an effect");
    assert_eq!(conversation.commit(&take("late"), at(10)).await.change, 3);
    assert_eq!(store.client.sweep(at(11)).await.expect("sweeping works").expired_records, 1);
    assert_eq!(conversation.thread(at(12)).await.positions.change, 3, "a sweep changed the thread");
    let found =
        store.client.find_record(&ana(), &RecordOwner::Thread(conversation.id), &system("run"), "lease", at(5)).await;
    assert_eq!(found.expect("reading works"), None);
}
