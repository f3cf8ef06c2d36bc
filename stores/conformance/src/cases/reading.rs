use threadkeep_core::{
    Batch, MessageQuery, Namespace, OpenThread, Owner, PutRecord, Record, RecordOwner, RecordQuery, StoreError,
    ThreadRead, ThreadRef, limits,
};

use crate::conversation::Conversation;
use crate::fixtures::{
    acme, ana, app, appending, assert_error, at, batch, ben, note_write, put, record_name, system, thread_id,
    thread_key, user_id, user_message,
};
use crate::run::TestEnv;
use crate::tasks::yield_now;

/// Creates a thread for Ana with a key, three messages and records. Also writes records for Ana, Ben and the tenant.
async fn open_prepared(env: &TestEnv<'_>) -> (crate::run::TestStore, Conversation) {
    let store = env.open().await;
    let open = OpenThread::new(&ana(), thread_id(1)).with_key(thread_key("slack:T1:C1"));
    let conversation = Conversation::open_as(&store.client, &ana(), &open, at(0)).await;
    conversation.append(1..=3, at(1)).await;
    let expiring = PutRecord { expires_at: Some(at(5)), ..put(app("notes"), "soon", "2") };
    let puts = vec![put(app("notes"), "k", r#"{"a":  1}"#), put(system("run"), "k", "3"), expiring];
    conversation.commit(&Batch { put: puts, ..batch("put") }, at(2)).await;
    for (scope, owner) in [(ana(), user_records("ana")), (ben(), user_records("ben")), (acme(), RecordOwner::Tenant)] {
        for key in ["k", "only"] {
            store
                .client
                .write_record(&scope, &note_write(owner.clone(), key, "4"), at(2))
                .await
                .expect("writing works");
        }
    }
    (store, conversation)
}

fn user_records(user: &str) -> RecordOwner {
    RecordOwner::User(user_id(user))
}

pub(super) async fn a_combined_read_equals_separate_reads(env: &TestEnv<'_>) {
    let (store, conversation) = open_prepared(env).await;
    let (client, id) = (&store.client, conversation.id);
    let owner = RecordOwner::Thread(id);
    let wanted: [(Namespace, &str); 7] = [
        (app("notes"), "only"),
        (app("notes"), "k"),
        (app("notes"), "soon"),
        (app("notes"), "k\0"),
        (app("notes"), "k"),
        (system("run"), "k"),
        (system("run"), ""),
    ];
    let lists: Vec<RecordQuery> = [owner.clone(), user_records("ana"), user_records("ben"), RecordOwner::Tenant]
        .into_iter()
        .flat_map(|owner| {
            let all = RecordQuery::of(owner);
            [RecordQuery { namespace: Some(app("notes")), limit: 1, ..all.clone() }, all]
        })
        .collect();
    let mut found = 0;
    for scope in [ana(), acme()] {
        let anas_conversation = Conversation { scope: scope.clone(), ..conversation.clone() };
        for reference in [ThreadRef::Id(id), ThreadRef::Key(Owner::User(user_id("ana")), thread_key("slack:T1:C1"))] {
            for query in [MessageQuery::newest(2), MessageQuery::following(1, 1), MessageQuery::following(3, 5)] {
                for now in [at(3), at(5)] {
                    let records = wanted.iter().map(|(namespace, key)| record_name(namespace.clone(), key)).collect();
                    let read = ThreadRead { messages: Some(query.clone()), records, lists: lists.clone() };
                    let view = client.read_thread(&scope, &reference, &read, now).await.expect("reading works");
                    let view = view.expect("the thread exists");
                    assert_eq!(
                        (view.thread, view.page),
                        (anas_conversation.thread(now).await, Some(anas_conversation.page(&query, now).await))
                    );
                    assert_eq!((view.records.len(), view.lists.len()), (wanted.len(), lists.len()));
                    for (record, (namespace, key)) in view.records.iter().zip(&wanted) {
                        let alone = client.find_record(&scope, &owner, namespace, key, now).await;
                        assert_eq!(*record, alone.expect("reading works"), "{key:?}");
                        found += usize::from(record.is_some());
                    }
                    for (list, query) in view.lists.iter().zip(&lists) {
                        let alone = client.list_records(&scope, query, now).await;
                        assert_eq!(*list, alone.expect("reading works"), "{query:?}");
                    }
                }
            }
        }
    }
    assert_eq!(found, 2 * 2 * 3 * 7);
    // By default, only the thread itself is read.
    let reference = ThreadRef::Id(id);
    let row = client.read_thread(&ana(), &reference, &ThreadRead::default(), at(3)).await.expect("reading works");
    let row = row.expect("the thread exists");
    assert_eq!((row.page, row.records, row.lists), (None, Vec::new(), Vec::new()));
    // A thread outside the scope is not found.
    let whole = ThreadRead { lists, ..ThreadRead::page(MessageQuery::newest(1)) };
    assert_eq!(client.read_thread(&ben(), &reference, &whole, at(3)).await.expect("reading works"), None);
}

/// A writer changes the messages, the thread's row and a record in each commit. Each read must see all three or none of
/// these changes.
pub(super) async fn a_combined_read_is_a_snapshot(env: &TestEnv<'_>) {
    const COMMITS: u64 = 60;
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let writer = {
        let conversation = conversation.clone();
        env.spawn(async move {
            for number in 1..=COMMITS {
                let counted = put(app("notes"), "count", &number.to_string());
                let append = appending(vec![user_message(u128::from(number), "hello")]);
                conversation.commit(&Batch { put: vec![counted], ..append }, at(1)).await;
            }
        })
    };
    let readers = (0..3).map(|_| {
        let conversation = conversation.clone();
        env.spawn(async move {
            let count =
                |record: Option<&Record>| record.map_or(0, |record| record.value.read::<u64>().expect("a number"));
            let read = ThreadRead {
                records: vec![record_name(app("notes"), "count")],
                lists: vec![RecordQuery::of(RecordOwner::Thread(conversation.id))],
                ..ThreadRead::page(MessageQuery::newest(1))
            };
            let (reference, mut previous) = (ThreadRef::Id(conversation.id), 0);
            while previous < COMMITS {
                let view = conversation.client.read_thread(&conversation.scope, &reference, &read, at(2)).await;
                let view = view.expect("reading works").expect("the thread exists");
                let page = view.page.expect("a page was requested");
                assert_eq!(page.positions, view.thread.positions, "the row and the page are from different states");
                let last = page.messages.last().map_or(0, |message| message.seq);
                let counts = (count(view.records[0].as_ref()), count(view.lists[0].first()));
                assert_eq!((counts, view.thread.message_count), ((last, last), last), "a commit is partially visible");
                assert!(last >= previous, "a later read returned an earlier state");
                previous = last;
                yield_now().await;
            }
        })
    });
    for reader in futures::future::join_all(readers).await {
        reader.expect("the reader does not panic");
    }
    writer.await.expect("the writer does not panic");
}

pub(super) async fn a_combined_read_has_limits(env: &TestEnv<'_>) {
    let (store, conversation) = open_prepared(env).await;
    let reference = ThreadRef::Id(conversation.id);
    let read = |count| ThreadRead {
        records: vec![record_name(app("notes"), "k"); count - 10],
        lists: vec![RecordQuery { limit: 1, ..RecordQuery::of(user_records("ana")) }; 10],
        ..ThreadRead::default()
    };
    let over = read(limits::READ_RECORDS + 1);
    let over = store.client.read_thread(&ana(), &reference, &over, at(3)).await;
    assert_error!(over, StoreError::LimitExceeded { max, .. } if max == limits::READ_RECORDS as u64);
    let most = store.client.read_thread(&ana(), &reference, &read(limits::READ_RECORDS), at(3)).await;
    let most = most.expect("a value at the limit is accepted").expect("the thread exists");
    let found = most.records.iter().flatten().count() + most.lists.iter().map(Vec::len).sum::<usize>();
    assert_eq!(found, limits::READ_RECORDS);
}
