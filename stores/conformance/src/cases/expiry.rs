use threadkeep_core::{
    Batch, ChangePage, Kind, MessageQuery, OpenThread, Owner, PutRecord, RecordCondition, RecordOwner, RecordQuery,
    RecordState, RecordWrite, StoreError, ThreadName, ThreadOrder, ThreadPatch, ThreadQuery, ThreadRead, Timestamp,
};

use crate::client::Client;
use crate::conversation::Conversation;
use crate::given::{
    acme, adds, ana, app, assert_error, at, batch, named, note, put, says, system, thread_id, thread_key, user_id,
};
use crate::run::Stage;

/// A thread with everything in it that is over from the tenth second on.
async fn expiring(client: &Client) -> Conversation {
    let open = OpenThread { expires_at: Some(at(10)), ..OpenThread::new(&ana(), thread_id(1)) };
    let conversation = Conversation::open_as(client, &ana(), &open.with_key(thread_key("key")), at(0)).await;
    let first = Batch { put: vec![put(app("notes"), "k", "1")], ..adds(vec![says(1, "walrus")]) };
    conversation.commit(&first, at(1)).await;
    conversation
}

fn just_before(instant: Timestamp) -> Timestamp {
    Timestamp::from_micros(instant.as_micros() - 1).expect("in the range of years")
}

async fn assert_absent(conversation: &Conversation, now: Timestamp) {
    let Conversation { client, scope, id } = conversation;
    assert!(!conversation.is_there(now).await);
    let key = ThreadName::Key(Owner::User(user_id("ana")), thread_key("key"));
    assert!(client.find_thread(scope, &key, now).await.expect("reading works").is_none());
    for order in [ThreadOrder::Created, ThreadOrder::Recent] {
        for scope in [ana(), acme()] {
            let page = client.list_threads(&scope, &ThreadQuery::new(order, 10), now).await;
            assert_eq!(page.expect("reading works").threads, []);
        }
    }
    let said = adds(vec![says(2, "two")]);
    assert_error!(client.commit(scope, *id, &said, now).await, StoreError::NotFound(Kind::Thread));
    let repeated = Batch { put: vec![put(app("notes"), "k", "1")], ..adds(vec![says(1, "walrus")]) };
    assert_error!(client.commit(scope, *id, &repeated, now).await, StoreError::NotFound(Kind::Thread));
    let page = client.list_messages(scope, *id, &MessageQuery::newest(5), now).await;
    assert_error!(page, StoreError::NotFound(Kind::Thread));
    let read = ThreadRead { records: vec![named(app("notes"), "k")], ..ThreadRead::page(MessageQuery::newest(5)) };
    for name in [ThreadName::Id(*id), key] {
        let view = client.read_thread(scope, &name, &read, now).await;
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

pub(super) async fn an_expired_thread_was_never_there(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = expiring(&subject.client).await;
    let before = just_before(at(10));
    assert_eq!(conversation.texts(before).await, ["walrus"]);
    let cursor = subject.client.list_changed_threads(&ana(), None, 5, before).await.expect("reading works").cursor;
    assert_eq!(conversation.say(2..=2, before).await.first_seq, 2);
    assert_absent(&conversation, at(10)).await;
    let changed = subject.client.list_changed_threads(&ana(), Some(&cursor), 5, at(10)).await;
    assert_eq!(changed.expect("reading works").threads, []);
    // Time is what the caller says: for an earlier one it is there as long as nobody swept.
    assert_eq!(conversation.texts(before).await.len(), 2);
    assert_eq!(conversation.entries().await.len(), 2, "administration sees it until it is swept");

    assert_eq!(subject.client.sweep(before).await.expect("sweeping works").expired_threads, 0);
    assert_eq!(conversation.texts(before).await.len(), 2);
    assert_eq!(subject.client.sweep(at(10)).await.expect("sweeping works").expired_threads, 1);
    assert_absent(&conversation, at(10)).await;
    assert!(!conversation.is_there(before).await);
    let dump = subject.client.dump_thread(acme().tenant_id(), conversation.id, None, 10).await;
    assert_error!(dump, StoreError::NotFound(Kind::Thread));
}

pub(super) async fn opening_replaces_an_expired_thread(stage: &Stage<'_>) {
    for sweep in [false, true] {
        for by_key in [false, true] {
            let subject = stage.open().await;
            let old = expiring(&subject.client).await;
            if sweep {
                subject.client.sweep(at(10)).await.expect("sweeping works");
            }
            // By key under another id, or by id alone.
            let open = if by_key {
                OpenThread::new(&ana(), thread_id(2)).with_key(thread_key("key"))
            } else {
                OpenThread::new(&ana(), old.id)
            };
            let anew = Conversation::open_as(&subject.client, &ana(), &open, at(10)).await;
            assert_eq!(anew.thread(at(11)).await.created_at, at(10));
            assert_eq!(anew.messages(at(11)).await, []);
            let records = RecordQuery::of(RecordOwner::Thread(anew.id));
            assert_eq!(subject.client.list_records(&ana(), &records, at(11)).await.expect("reading works"), []);
            // The old thread's idempotency record does not answer for the new one.
            let first = Batch { put: vec![put(app("notes"), "k", "1")], ..adds(vec![says(1, "walrus")]) };
            let outcome = anew.commit(&first, at(12)).await;
            assert!(!outcome.replayed || stage.is_weak());
            subject.client.sweep(at(13)).await.expect("sweeping works");
            assert_eq!(anew.texts(at(14)).await, ["walrus"], "a sweep took the new thread for the old one");
            let query = ThreadQuery::new(ThreadOrder::Created, 10);
            let page = subject.client.list_threads(&ana(), &query, at(14)).await.expect("reading works");
            assert_eq!(page.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [anew.id]);
        }
    }
}

pub(super) async fn an_expiry_can_be_moved(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = expiring(&subject.client).await;
    let expires = |at| ThreadPatch { expires_at: Some(at), ..ThreadPatch::default() };
    conversation.commit(&Batch { patch: expires(Some(at(20))), ..batch("later") }, at(9)).await;
    assert_eq!(conversation.texts(at(19)).await, ["walrus"]);
    assert!(!conversation.is_there(at(20)).await);
    conversation.commit(&Batch { patch: expires(None), ..batch("never") }, at(19)).await;
    assert_eq!(conversation.texts(at(1_000_000)).await, ["walrus"]);
    // A repetition of what ended the thread finds no thread to look its record up in.
    let ended = conversation.try_commit(&Batch { patch: expires(Some(at(5))), ..batch("past") }, at(20)).await;
    assert!(ended.is_ok() || stage.is_weak() && matches!(ended, Err(StoreError::NotFound(Kind::Thread))), "{ended:?}");
    assert!(!conversation.is_there(at(20)).await);
}

pub(super) async fn expired_threads_do_not_shorten_pages(stage: &Stage<'_>) {
    let subject = stage.open().await;
    for number in 1..=9 {
        let expires_at = (number % 3 != 0).then(|| at(10));
        let open = OpenThread { expires_at, ..OpenThread::new(&ana(), thread_id(number)) };
        let second = i64::try_from(number).expect("a small number");
        Conversation::open_as(&subject.client, &ana(), &open, at(second)).await;
    }
    let query = ThreadQuery::new(ThreadOrder::Created, 2);
    let page = subject.client.list_threads(&ana(), &query, at(10)).await.expect("reading works");
    assert_eq!(page.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [3, 6].map(thread_id));
    let query = ThreadQuery { after: page.next, ..query };
    let page = subject.client.list_threads(&ana(), &query, at(10)).await.expect("reading works");
    assert_eq!(page.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [9].map(thread_id));
    assert_eq!(page.next, None);
}

pub(super) async fn an_expired_record_was_never_there(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    let owner = RecordOwner::User(user_id("ana"));
    let write = RecordWrite { expires_at: Some(at(10)), ..note(owner.clone(), "k", "1") };
    let first = client.write_record(&ana(), &write, at(1)).await.expect("writing works").version;
    client.write_record(&ana(), &note(owner.clone(), "kept", "1"), at(1)).await.expect("writing works");
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
    // It counts as absent for compare-and-set, and its version does not come back.
    let anew = RecordWrite { expected: Some(0), ..write.clone() };
    let second = client.write_record(&ana(), &anew, at(10)).await.expect("writing works").version;
    assert!(second > first);
    assert_eq!(client.sweep(at(10)).await.expect("sweeping works").expired_records, 1);
    assert_eq!(find(at(9)).await, None);
    let third = client.write_record(&ana(), &note(owner.clone(), "k", "1"), at(11)).await.expect("writing works");
    assert!(third.version > second);
    assert!(find(at(1_000_000)).await.is_some());
}

pub(super) async fn a_threads_records_expire_alone(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let name = named(system("run"), "lease");
    let lease = PutRecord { expires_at: Some(at(10)), ..put(system("run"), "lease", "1") };
    conversation.commit(&Batch { put: vec![lease.clone()], ..batch("take") }, at(1)).await;
    let require = vec![RecordCondition { name: name.clone(), state: RecordState::Absent }];
    let take = |key: &str| Batch { require: require.clone(), put: vec![lease.clone()], ..batch(key) };
    assert!(conversation.try_commit(&take("early"), just_before(at(10))).await.is_err());
    let delete = Batch { delete: vec![name], ..batch("delete") };
    conversation.commit(&delete, at(10)).await;
    let ChangePage::Changes { changes, .. } = conversation.changes(1, at(10)).await else { panic!("a reset") };
    assert_eq!(changes[0].effects, [], "what had expired was not deleted");
    assert_eq!(conversation.commit(&take("late"), at(10)).await.change, 3);
    assert_eq!(subject.client.sweep(at(11)).await.expect("sweeping works").expired_records, 1);
    assert_eq!(conversation.thread(at(12)).await.positions.change, 3, "a sweep is no change of the thread");
    let found =
        subject.client.find_record(&ana(), &RecordOwner::Thread(conversation.id), &system("run"), "lease", at(5)).await;
    assert_eq!(found.expect("reading works"), None);
}
