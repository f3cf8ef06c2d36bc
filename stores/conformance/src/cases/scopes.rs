//! For every method, data outside the scope is indistinguishable from data that does not exist.

use threadkeep_core::{
    Batch, Content, Kind, MessageQuery, MessageRef, NewMessage, OpenThread, Owner, RecordName, RecordOwner,
    RecordQuery, RecordWrite, Replacement, Role, Scope, StoreError, ThreadId, ThreadOrder, ThreadPatch, ThreadQuery,
    ThreadRead, ThreadRef,
};

use super::search::query_for;
use crate::client::Client;
use crate::conversation::Conversation;
use crate::fixtures::{
    acme, ana, app, appending, assert_error, at, batch, ben, json, message_id, note_write, put, record_name, thread_id,
    thread_key, user, user_id, user_message,
};
use crate::run::TestEnv;

/// Creates a thread for the user Ana of acme: number 1, with the key `key`, messages, a record and an external id.
async fn anas_thread(client: &Client) -> Conversation {
    let open = OpenThread::new(&ana(), thread_id(1)).with_key(thread_key("key"));
    fill_thread(client, &ana(), open).await
}

/// Creates a thread that the users of acme share: number 2, with the same data.
async fn shared_thread(client: &Client) -> Conversation {
    let open = OpenThread::new(&acme(), thread_id(2)).with_key(thread_key("key"));
    fill_thread(client, &acme(), open).await
}

async fn fill_thread(client: &Client, scope: &Scope, open: OpenThread) -> Conversation {
    let conversation = Conversation::open_as(client, scope, &open, at(0)).await;
    let first = Batch {
        append: vec![
            user_message(1, "a walrus"),
            NewMessage { external_id: Some("x2".to_owned()), ..user_message(2, "a zebra") },
        ],
        put: vec![put(app("notes"), "k", "1")],
        ..batch("first")
    };
    conversation.commit(&first, at(1)).await;
    conversation
}

/// Returns scopes without access to Ana's thread.
fn strangers() -> [Scope; 4] {
    [ben(), user("globex", "ana"), Scope::Tenant(crate::fixtures::tenant("globex")), user("globex", "ben")]
}

/// Returns the results of all methods that take a thread id.
async fn results_for(client: &Client, scope: &Scope, id: ThreadId) -> Vec<String> {
    let now = at(5);
    let erase = Batch { erase: vec![message_id(1)], ..batch("erase") };
    let replayed = Batch { append: vec![user_message(1, "a walrus")], ..batch("first") };
    let other = Batch { append: vec![user_message(3, "a yak")], ..batch("other") };
    let names = [MessageRef::Seq(1), MessageRef::Id(message_id(1)), MessageRef::External("x2".to_owned())];
    let owner = RecordOwner::Thread(id);
    let records = RecordQuery::of(owner.clone());
    let whole = ThreadRead {
        records: vec![record_name(app("notes"), "k")],
        lists: vec![records.clone()],
        ..ThreadRead::page(MessageQuery::newest(5))
    };
    let query = threadkeep_core::SearchQuery { thread: Some(id), ..query_for("walrus zebra") };
    vec![
        format!("{:?}", client.commit(scope, id, &erase, now).await),
        format!("{:?}", client.commit(scope, id, &replayed, now).await),
        format!("{:?}", client.commit(scope, id, &other, now).await),
        format!("{:?}", client.commit(scope, id, &batch("empty"), now).await),
        format!("{:?}", client.find_thread(scope, &ThreadRef::Id(id), now).await),
        format!("{:?}", client.delete_thread(scope, id, now).await),
        format!("{:?}", client.list_messages(scope, id, &MessageQuery::newest(5), now).await),
        format!("{:?}", client.read_thread(scope, &ThreadRef::Id(id), &whole, now).await),
        format!("{:?}", client.find_messages(scope, id, &names, now).await),
        format!("{:?}", client.list_changes(scope, id, 0, 5, now).await),
        format!("{:?}", client.list_changes(scope, id, 99, 5, now).await),
        format!("{:?}", client.list_changes_with_messages(scope, id, 0, 5, now).await),
        format!("{:?}", client.find_record(scope, &owner, &app("notes"), "k", now).await),
        format!("{:?}", client.list_records(scope, &records, now).await),
        format!("{:?}", client.search(scope, &query, now).await),
    ]
}

// S0.14
pub(super) async fn threads_of_others_look_like_unknown_threads(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = anas_thread(client).await;
    client.catch_up_fully().await;
    let before = conversation.dump(10).await;
    for stranger in strangers() {
        let foreign = results_for(client, &stranger, conversation.id).await;
        assert_eq!(foreign, results_for(client, &stranger, thread_id(77)).await, "{stranger:?}");
    }
    let shared = shared_thread(client).await;
    for stranger in [user("globex", "ana"), user("globex", "globex")] {
        let foreign = results_for(client, &stranger, shared.id).await;
        assert_eq!(foreign, results_for(client, &stranger, thread_id(77)).await, "{stranger:?}");
    }
    assert_eq!(conversation.dump(10).await, before, "a foreign scope changed the thread");
}

pub(super) async fn threads_of_others_cannot_be_opened(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = anas_thread(client).await;
    let before = conversation.dump(10).await;
    for open in [
        OpenThread::new(&ben(), conversation.id),
        OpenThread::new(&ben(), conversation.id).with_key(thread_key("key")),
        OpenThread::new(&ben(), conversation.id).with_key(thread_key("other")),
        OpenThread { owner: Owner::Tenant, ..OpenThread::new(&ben(), conversation.id) },
    ] {
        assert_error!(client.open_thread(&ben(), &open, at(5)).await, StoreError::NotFound(Kind::Thread));
    }
    // A thread of another user cannot be opened, whether or not the key exists.
    for key in ["key", "unknown"] {
        let open = OpenThread::new(&ana(), thread_id(8)).with_key(thread_key(key));
        for stranger in [ben(), user("globex", "ben")] {
            assert_error!(client.open_thread(&stranger, &open, at(5)).await, StoreError::NotFound(Kind::Thread));
            let reference = ThreadRef::Key(Owner::User(user_id("ana")), thread_key(key));
            assert!(client.find_thread(&stranger, &reference, at(5)).await.expect("reading works").is_none());
        }
    }
    assert_eq!(conversation.dump(10).await, before, "a foreign scope changed the thread");
    assert_eq!(list_ids(client, &acme(), None).await, [conversation.id], "a foreign scope created a thread");
}

pub(super) async fn tenants_may_use_the_same_ids(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let ours = anas_thread(client).await;
    let theirs_open = OpenThread::new(&user("globex", "ana"), ours.id).with_key(thread_key("key"));
    let theirs = Conversation::open_as(client, &user("globex", "ana"), &theirs_open, at(2)).await;
    theirs.append(1..=1, at(3)).await;
    assert_eq!(theirs.texts(at(4)).await, ["message 1"]);
    assert_eq!(ours.texts(at(4)).await, ["a walrus", "a zebra"]);
    client.delete_thread(&theirs.scope, theirs.id, at(5)).await.expect("the thread exists");
    assert_eq!(ours.texts(at(6)).await, ["a walrus", "a zebra"]);
    assert!(!theirs.exists(at(6)).await);
    let write = note_write(RecordOwner::User(user_id("ana")), "k", "1");
    client.write_record(&ana(), &write, at(7)).await.expect("writing works");
    let found = client.find_record(&user("globex", "ana"), &write.owner, &write.namespace, "k", at(8)).await;
    assert_eq!(found.expect("reading works"), None);
}

pub(super) async fn lists_of_others_are_empty(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = anas_thread(client).await;
    Conversation::open(client, &ana(), 3, at(3)).await;
    let ana_owner = Some(Owner::User(user_id("ana")));
    let first = ThreadQuery::new(ThreadOrder::Created, 1);
    let anas_page = client.list_threads(&ana(), &first, at(5)).await.expect("reading works");
    let anas_cursor = client.list_changed_threads(&ana(), None, 5, at(5)).await.expect("reading works").cursor;
    conversation.append(3..=3, at(4)).await;
    for stranger in strangers() {
        assert_eq!(list_ids(client, &stranger, None).await, []);
        assert_eq!(list_ids(client, &stranger, ana_owner.clone()).await, []);
        assert_eq!(list_ids(client, &stranger, Some(Owner::User(user_id("unknown")))).await, []);
        // A cursor of another user does not give access to that user's threads.
        let query = ThreadQuery { after: anas_page.next.clone(), ..first.clone() };
        assert_eq!(client.list_threads(&stranger, &query, at(5)).await.expect("reading works").threads, []);
        let changed = client.list_changed_threads(&stranger, Some(&anas_cursor), 5, at(5)).await;
        assert_eq!(changed.expect("reading works").threads, []);
    }
    assert_eq!(list_ids(client, &acme(), ana_owner.clone()).await, [thread_id(1), thread_id(3)]);
    assert_eq!(list_ids(client, &ana(), ana_owner).await, [thread_id(1), thread_id(3)]);
    let changed = client.list_changed_threads(&ana(), Some(&anas_cursor), 5, at(5)).await;
    assert_eq!(changed.expect("reading works").threads.len(), 1);
}

pub(super) async fn records_of_others_are_inaccessible(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let ana_owner = RecordOwner::User(user_id("ana"));
    client.write_record(&ana(), &note_write(ana_owner.clone(), "k", "1"), at(1)).await.expect("writing works");
    client.write_record(&acme(), &note_write(RecordOwner::Tenant, "k", "1"), at(1)).await.expect("writing works");
    for (stranger, owner) in [
        (ben(), ana_owner.clone()),
        (user("globex", "ben"), ana_owner.clone()),
        (ben(), RecordOwner::User(user_id("unknown"))),
    ] {
        let found = client.find_record(&stranger, &owner, &app("notes"), "k", at(2)).await;
        assert_eq!(found.expect("reading works"), None);
        let listed = client.list_records(&stranger, &RecordQuery::of(owner.clone()), at(2)).await;
        assert_eq!(listed.expect("reading works"), []);
        for expected in [None, Some(0), Some(1)] {
            for value in [None, Some(json("2"))] {
                let write = RecordWrite { expected, value, ..note_write(owner.clone(), "k", "2") };
                let answer = client.write_record(&stranger, &write, at(2)).await;
                assert_error!(answer, StoreError::NotFound(Kind::Record));
            }
        }
    }
    // Users can read the tenant's records; only the application can write them.
    for value in [None, Some(json("2"))] {
        let write = RecordWrite { value, ..note_write(RecordOwner::Tenant, "k", "2") };
        assert_error!(client.write_record(&ana(), &write, at(2)).await, StoreError::Denied(_));
    }
    for scope in [ana(), ben(), acme()] {
        let found = client.find_record(&scope, &RecordOwner::Tenant, &app("notes"), "k", at(3)).await;
        assert_eq!(found.expect("reading works").map(|record| record.value), Some(json("1")));
    }
    for scope in [user("globex", "ana"), Scope::Tenant(crate::fixtures::tenant("globex"))] {
        for owner in [RecordOwner::Tenant, ana_owner.clone()] {
            let found = client.find_record(&scope, &owner, &app("notes"), "k", at(3)).await;
            assert_eq!(found.expect("reading works"), None);
        }
    }
    // The application can also write a user's records.
    client.write_record(&acme(), &note_write(ana_owner.clone(), "k", "3"), at(4)).await.expect("writing works");
    let found = client.find_record(&ana(), &ana_owner, &app("notes"), "k", at(5)).await.expect("reading works");
    assert_eq!(found.map(|record| record.value), Some(json("3")));
}

pub(super) async fn users_read_and_append_to_shared_threads(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let shared = shared_thread(client).await;
    let seen = shared.in_scope(&ben());
    assert_eq!(seen.texts(at(2)).await, ["a walrus", "a zebra"]);
    assert_eq!(seen.thread(at(2)).await, shared.thread(at(2)).await);
    assert_eq!(seen.changes(0, at(2)).await, shared.changes(0, at(2)).await);
    let record = client.find_record(&ben(), &RecordOwner::Thread(seen.id), &app("notes"), "k", at(2)).await;
    assert!(record.expect("reading works").is_some());
    let append = appending(vec![user_message(3, "a yak")]);
    assert_eq!(seen.commit(&append, at(3)).await.first_seq, 3);
    assert!(seen.commit(&append, at(3)).await.replayed);
    assert_eq!(seen.commit(&batch("empty"), at(3)).await.change, 2);

    let text = || Content::text(Role::User, "edited");
    let refused = [
        Batch { replace: vec![Replacement { id: message_id(3), content: text() }], ..batch("replace") },
        Batch { erase: vec![message_id(3)], ..batch("erase") },
        Batch { trim_below: Some(0), ..batch("trim") },
        Batch { put: vec![put(app("notes"), "n", "1")], ..batch("put") },
        Batch { delete: vec![record_name(app("notes"), "n")], ..batch("delete") },
        Batch { patch: ThreadPatch { title: Some(None), ..ThreadPatch::default() }, ..batch("patch") },
        Batch { erase: vec![message_id(99)], append: vec![user_message(4, "four")], ..batch("both") },
    ];
    for batch in refused {
        assert_error!(seen.try_commit(&batch, at(4)).await, StoreError::Denied(_));
    }
    assert_error!(client.delete_thread(&ben(), seen.id, at(4)).await, StoreError::Denied(_));
    assert_eq!(shared.thread(at(5)).await.positions.change, 2);
}

pub(super) async fn users_open_and_list_shared_threads(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let shared = shared_thread(client).await;
    let own = Conversation::open(client, &ben(), 5, at(1)).await;
    let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&ben(), thread_id(6)) };
    let opened = client.open_thread(&ben(), &open.clone().with_key(thread_key("key")), at(2)).await;
    assert_eq!(opened.expect("the thread opens").thread.id, shared.id);
    let opened = client.open_thread(&ben(), &open.with_key(thread_key("new key")), at(2)).await;
    let opened = opened.expect("the thread opens");
    assert_eq!((opened.created, &opened.thread.owner), (true, &Owner::Tenant));
    let by_id = client.open_thread(&ana(), &OpenThread::new(&ana(), thread_id(6)), at(3)).await;
    assert_eq!(by_id.expect("the thread opens").thread, opened.thread);

    let shared_ids = [shared.id, thread_id(6)];
    assert_eq!(list_ids(client, &ben(), None).await, [own.id]);
    assert_eq!(list_ids(client, &ben(), Some(Owner::Tenant)).await, shared_ids);
    assert_eq!(list_ids(client, &ana(), Some(Owner::Tenant)).await, shared_ids);
    assert_eq!(list_ids(client, &ana(), None).await, []);
    assert_eq!(list_ids(client, &acme(), Some(Owner::Tenant)).await, shared_ids);
    assert_eq!(list_ids(client, &acme(), None).await, [shared.id, own.id, thread_id(6)]);
    assert_eq!(list_ids(client, &user("globex", "ben"), Some(Owner::Tenant)).await, []);
}

pub(super) async fn the_application_acts_for_its_users(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = anas_thread(client).await;
    let seen = conversation.in_scope(&acme());
    let change = Batch {
        erase: vec![message_id(1)],
        delete: vec![RecordName { namespace: app("notes"), key: "k".to_owned() }],
        ..batch("change")
    };
    seen.commit(&change, at(2)).await;
    assert_eq!(conversation.texts(at(3)).await, ["a zebra"]);
    let for_ben = OpenThread { owner: Owner::User(user_id("ben")), ..OpenThread::new(&acme(), thread_id(9)) };
    assert!(client.open_thread(&acme(), &for_ben, at(4)).await.expect("the thread opens").created);
    assert_eq!(list_ids(client, &ben(), None).await, [thread_id(9)]);
    let reference = ThreadRef::Key(Owner::User(user_id("ana")), thread_key("key"));
    assert!(client.find_thread(&acme(), &reference, at(5)).await.expect("reading works").is_some());
    client.delete_thread(&acme(), conversation.id, at(5)).await.expect("the thread exists");
    assert!(!conversation.exists(at(6)).await);
}

async fn list_ids(client: &Client, scope: &Scope, owner: Option<Owner>) -> Vec<ThreadId> {
    let query = ThreadQuery { owner, ..ThreadQuery::new(ThreadOrder::Created, 10) };
    let page = client.list_threads(scope, &query, at(5)).await.expect("reading works");
    page.threads.iter().map(|thread| thread.id).collect()
}
