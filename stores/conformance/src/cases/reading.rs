use threadkeep_core::{
    Batch, MessageQuery, Namespace, OpenThread, Owner, PutRecord, Record, RecordOwner, RecordQuery, StoreError,
    ThreadName, ThreadRead, limits,
};

use crate::conversation::Conversation;
use crate::given::{
    acme, adds, ana, app, assert_error, at, batch, ben, named, note, put, says, system, thread_id, thread_key, user_id,
};
use crate::run::Stage;

/// A thread of Ana's with a key, three messages and records, beside records of Ana's, Ben's and the tenant's.
async fn prepared(stage: &Stage<'_>) -> (crate::run::Subject, Conversation) {
    let subject = stage.open().await;
    let open = OpenThread::new(&ana(), thread_id(1)).with_key(thread_key("slack:T1:C1"));
    let conversation = Conversation::open_as(&subject.client, &ana(), &open, at(0)).await;
    conversation.say(1..=3, at(1)).await;
    let expiring = PutRecord { expires_at: Some(at(5)), ..put(app("notes"), "soon", "2") };
    let puts = vec![put(app("notes"), "k", r#"{"a":  1}"#), put(system("run"), "k", "3"), expiring];
    conversation.commit(&Batch { put: puts, ..batch("put") }, at(2)).await;
    for (scope, owner) in [(ana(), of("ana")), (ben(), of("ben")), (acme(), RecordOwner::Tenant)] {
        for key in ["k", "only"] {
            subject.client.write_record(&scope, &note(owner.clone(), key, "4"), at(2)).await.expect("it is written");
        }
    }
    (subject, conversation)
}

fn of(user: &str) -> RecordOwner {
    RecordOwner::User(user_id(user))
}

pub(super) async fn one_read_gives_what_many_give(stage: &Stage<'_>) {
    let (subject, conversation) = prepared(stage).await;
    let (client, id) = (&subject.client, conversation.id);
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
    let lists: Vec<RecordQuery> = [owner.clone(), of("ana"), of("ben"), RecordOwner::Tenant]
        .into_iter()
        .flat_map(|owner| {
            let all = RecordQuery::of(owner);
            [RecordQuery { namespace: Some(app("notes")), limit: 1, ..all.clone() }, all]
        })
        .collect();
    let mut found = 0;
    for scope in [ana(), acme()] {
        let of_ana = Conversation { scope: scope.clone(), ..conversation.clone() };
        for name in [ThreadName::Id(id), ThreadName::Key(Owner::User(user_id("ana")), thread_key("slack:T1:C1"))] {
            for query in [MessageQuery::newest(2), MessageQuery::following(1, 1), MessageQuery::following(3, 5)] {
                for now in [at(3), at(5)] {
                    let records = wanted.iter().map(|(namespace, key)| named(namespace.clone(), key)).collect();
                    let read = ThreadRead { messages: Some(query.clone()), records, lists: lists.clone() };
                    let view = client.read_thread(&scope, &name, &read, now).await.expect("reading works");
                    let view = view.expect("the thread is there");
                    assert_eq!(
                        (view.thread, view.page),
                        (of_ana.thread(now).await, Some(of_ana.page(&query, now).await))
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
    // Without anything beside the row, and of a thread that the scope does not reach.
    let name = ThreadName::Id(id);
    let row = client.read_thread(&ana(), &name, &ThreadRead::default(), at(3)).await.expect("reading works");
    let row = row.expect("the thread is there");
    assert_eq!((row.page, row.records, row.lists), (None, Vec::new(), Vec::new()));
    let whole = ThreadRead { lists, ..ThreadRead::page(MessageQuery::newest(1)) };
    assert_eq!(client.read_thread(&ben(), &name, &whole, at(3)).await.expect("reading works"), None);
}

/// The writer's commits change the messages, the row and a record together.
pub(super) async fn one_read_is_of_one_instant(stage: &Stage<'_>) {
    const COMMITS: u64 = 60;
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let writer = {
        let conversation = conversation.clone();
        tokio::spawn(async move {
            for number in 1..=COMMITS {
                let counted = put(app("notes"), "count", &number.to_string());
                let said = adds(vec![says(u128::from(number), "hello")]);
                conversation.commit(&Batch { put: vec![counted], ..said }, at(1)).await;
            }
        })
    };
    let readers = (0..3).map(|_| {
        let conversation = conversation.clone();
        tokio::spawn(async move {
            let count =
                |record: Option<&Record>| record.map_or(0, |record| record.value.read::<u64>().expect("a number"));
            let read = ThreadRead {
                records: vec![named(app("notes"), "count")],
                lists: vec![RecordQuery::of(RecordOwner::Thread(conversation.id))],
                ..ThreadRead::page(MessageQuery::newest(1))
            };
            let (name, mut seen) = (ThreadName::Id(conversation.id), 0);
            while seen < COMMITS {
                let view = conversation.client.read_thread(&conversation.scope, &name, &read, at(2)).await;
                let view = view.expect("reading works").expect("the thread is there");
                let page = view.page.expect("a page was asked for");
                assert_eq!(page.positions, view.thread.positions, "the row and the page are of two instants");
                let last = page.messages.last().map_or(0, |message| message.seq);
                let counts = (count(view.records[0].as_ref()), count(view.lists[0].first()));
                assert_eq!((counts, view.thread.message_count), ((last, last), last), "a part of a commit is seen");
                assert!(last >= seen, "time ran backwards");
                seen = last;
                tokio::task::yield_now().await;
            }
        })
    });
    for reader in futures::future::join_all(readers).await {
        reader.expect("the reader ends");
    }
    writer.await.expect("the writer ends");
}

pub(super) async fn only_so_much_is_read_at_once(stage: &Stage<'_>) {
    let (subject, conversation) = prepared(stage).await;
    let name = ThreadName::Id(conversation.id);
    let read = |count| ThreadRead {
        records: vec![named(app("notes"), "k"); count - 10],
        lists: vec![RecordQuery { limit: 1, ..RecordQuery::of(of("ana")) }; 10],
        ..ThreadRead::default()
    };
    let over = read(limits::READ_RECORDS + 1);
    let over = subject.client.read_thread(&ana(), &name, &over, at(3)).await;
    assert_error!(over, StoreError::LimitExceeded { max, .. } if max == limits::READ_RECORDS as u64);
    let most = subject.client.read_thread(&ana(), &name, &read(limits::READ_RECORDS), at(3)).await;
    let most = most.expect("what is just at a limit passes").expect("the thread is there");
    let found = most.records.iter().flatten().count() + most.lists.iter().map(Vec::len).sum::<usize>();
    assert_eq!(found, limits::READ_RECORDS);
}
