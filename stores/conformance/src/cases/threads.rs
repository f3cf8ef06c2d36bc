use threadkeep_core::{
    Batch, Conflict, IDEMPOTENCY_WINDOW_MS, Kind, Map, MessageQuery, OpenThread, Owner, RecordOwner, StoreError,
    ThreadId, ThreadOrder, ThreadPatch, ThreadQuery, ThreadRead, ThreadRef,
};

use crate::client::Client;
use crate::conversation::Conversation;
use crate::fixtures::{
    acme, ana, app, appending, assert_error, at, batch, ben, conflict_of, put, record_name, thread_id, thread_key,
    user_id, user_message,
};
use crate::run::TestEnv;

fn map(json: &str) -> Map {
    serde_json::from_str(json).expect("valid JSON")
}

pub(super) async fn opening_stores_all_fields(env: &TestEnv<'_>) {
    let store = env.open().await;
    let open = OpenThread {
        key: Some(thread_key("slack:T1:C1")),
        title: Some("Títle 🚇".to_owned()),
        metadata: map(r#"{"z": 1, "a": {"b": [1150.5, null]}}"#),
        state: map(r#"{"step": "two"}"#),
        created_at: Some(at(2)),
        expires_at: Some(at(1000)),
        ..OpenThread::new(&ana(), thread_id(1))
    };
    let conversation = Conversation::open_as(&store.client, &ana(), &open, at(5)).await;
    let thread = conversation.thread(at(6)).await;
    assert_eq!((thread.id, &thread.owner, &thread.key), (open.id, &open.owner, &open.key));
    assert_eq!((&thread.title, &thread.metadata, &thread.state), (&open.title, &open.metadata, &open.state));
    assert_eq!((thread.created_at, thread.updated_at, thread.expires_at), (at(2), at(5), open.expires_at));
    assert_eq!(thread.metadata.keys().collect::<Vec<_>>(), ["z", "a"], "metadata keys are reordered");

    // If the thread exists, opening it ignores all other fields.
    let other =
        OpenThread { title: None, metadata: map(r#"{"x": 1}"#), created_at: Some(at(1)), expires_at: None, ..open };
    let opened = store.client.open_thread(&ana(), &other, at(7)).await.expect("the thread opens");
    assert_eq!((opened.created, opened.thread), (false, thread));
}

// S0.12
pub(super) async fn unknown_threads_are_not_found(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let unknown = thread_id(9);
    assert!(client.find_thread(&ana(), &ThreadRef::Id(unknown), at(1)).await.expect("reading works").is_none());
    let commit = client.commit(&ana(), unknown, &appending(vec![user_message(1, "one")]), at(1)).await;
    assert_error!(commit, StoreError::NotFound(Kind::Thread));
    let empty = client.commit(&ana(), unknown, &batch("empty"), at(1)).await;
    assert_error!(empty, StoreError::NotFound(Kind::Thread));
    assert_error!(client.delete_thread(&ana(), unknown, at(1)).await, StoreError::NotFound(Kind::Thread));
    let page = client.list_messages(&ana(), unknown, &MessageQuery::newest(1), at(1)).await;
    assert_error!(page, StoreError::NotFound(Kind::Thread));
    let read =
        ThreadRead { records: vec![record_name(app("notes"), "k")], ..ThreadRead::page(MessageQuery::newest(1)) };
    let view = client.read_thread(&ana(), &ThreadRef::Id(unknown), &read, at(1)).await;
    assert_eq!(view.expect("reading works"), None);
    assert_error!(client.find_messages(&ana(), unknown, &[], at(1)).await, StoreError::NotFound(Kind::Thread));
    assert_error!(client.list_changes(&ana(), unknown, 0, 1, at(1)).await, StoreError::NotFound(Kind::Thread));
    let followed = client.list_changes_with_messages(&ana(), unknown, 0, 1, at(1)).await;
    assert_error!(followed, StoreError::NotFound(Kind::Thread));
    let dump = client.dump_thread(acme().tenant_id(), unknown, None, 1).await;
    assert_error!(dump, StoreError::NotFound(Kind::Thread));
}

pub(super) async fn patches_change_only_named_fields(env: &TestEnv<'_>) {
    let store = env.open().await;
    let open = OpenThread {
        title: Some("before".to_owned()),
        metadata: map(r#"{"a": 1}"#),
        state: map(r#"{"b": 2}"#),
        ..OpenThread::new(&ana(), thread_id(1))
    };
    let conversation = Conversation::open_as(&store.client, &ana(), &open, at(0)).await;
    let patched = async |key: &str, patch: ThreadPatch| {
        conversation.commit(&Batch { patch, ..batch(key) }, at(1)).await;
        conversation.thread(at(2)).await
    };
    let thread = patched("1", ThreadPatch { metadata: Some(map(r#"{"c": 3}"#)), ..ThreadPatch::default() }).await;
    assert_eq!(
        (thread.title.as_deref(), thread.metadata, thread.state),
        (Some("before"), map(r#"{"c": 3}"#), map(r#"{"b": 2}"#))
    );
    let thread = patched("2", ThreadPatch { title: Some(None), ..ThreadPatch::default() }).await;
    assert_eq!((thread.title, thread.state), (None, map(r#"{"b": 2}"#)));
    let thread = patched("3", ThreadPatch { state: Some(Map::new()), ..ThreadPatch::default() }).await;
    assert_eq!((thread.state, thread.metadata), (Map::new(), map(r#"{"c": 3}"#)));
    let thread = patched("4", ThreadPatch { expires_at: Some(Some(at(50))), ..ThreadPatch::default() }).await;
    assert_eq!(thread.expires_at, Some(at(50)));
    let thread = patched("5", ThreadPatch { expires_at: Some(None), ..ThreadPatch::default() }).await;
    assert_eq!((thread.expires_at, thread.positions.change, thread.positions.seq), (None, 5, 0));
    assert_eq!((thread.created_at, thread.updated_at), (at(0), at(1)));
}

// S0.13
pub(super) async fn deleting_a_thread_deletes_its_data(env: &TestEnv<'_>) {
    let store = env.open().await;
    let open = OpenThread::new(&ana(), thread_id(1)).with_key(thread_key("k"));
    let conversation = Conversation::open_as(&store.client, &ana(), &open, at(0)).await;
    let other = Conversation::open(&store.client, &ana(), 2, at(0)).await;
    other.append(1..=3, at(1)).await;
    conversation.append(1..=3, at(1)).await;
    conversation.commit(&Batch { put: vec![put(app("notes"), "n", "1")], ..batch("put") }, at(2)).await;
    store.client.delete_thread(&ana(), conversation.id, at(3)).await.expect("the thread exists");

    let key = ThreadRef::Key(Owner::User(user_id("ana")), thread_key("k"));
    assert!(store.client.find_thread(&ana(), &key, at(4)).await.expect("reading works").is_none());
    assert!(!conversation.exists(at(4)).await);
    let owner = RecordOwner::Thread(conversation.id);
    let record = store.client.find_record(&ana(), &owner, &app("notes"), "n", at(4)).await;
    assert_eq!(record.expect("reading works"), None);
    let page = store.client.list_messages(&ana(), conversation.id, &MessageQuery::newest(1), at(4)).await;
    assert_error!(page, StoreError::NotFound(Kind::Thread));
    assert_error!(
        store.client.dump_thread(acme().tenant_id(), conversation.id, None, 1).await,
        StoreError::NotFound(Kind::Thread)
    );
    assert_eq!(all_ids(&store.client, ThreadOrder::Created, 10).await, [other.id]);
    assert_eq!(other.texts(at(4)).await, ["message 1", "message 2", "message 3"]);
    // Another thread can use the key.
    let successor = OpenThread { id: thread_id(3), ..open };
    assert!(store.client.open_thread(&ana(), &successor, at(5)).await.expect("the thread opens").created);
}

pub(super) async fn commits_after_a_deletion_fail(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let append = appending(vec![user_message(1, "one")]);
    conversation.commit(&append, at(1)).await;
    store.client.delete_thread(&ana(), conversation.id, at(2)).await.expect("the thread exists");
    // A retry of an earlier commit fails as well.
    for batch in [append, appending(vec![user_message(2, "two")]), batch("empty")] {
        assert_error!(conversation.try_commit(&batch, at(3)).await, StoreError::NotFound(Kind::Thread));
    }
    assert_error!(store.client.delete_thread(&ana(), conversation.id, at(3)).await, StoreError::NotFound(Kind::Thread));
    assert!(!conversation.exists(at(4)).await);
}

pub(super) async fn a_deleted_id_is_reserved_during_the_window(env: &TestEnv<'_>) {
    for sweep in [false, true] {
        let store = env.open().await;
        let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
        conversation.append(1..=3, at(1)).await;
        store.client.delete_thread(&ana(), conversation.id, at(2)).await.expect("the thread exists");
        let inside = at(2).plus_ms(IDEMPOTENCY_WINDOW_MS - 1);
        let beyond = at(2).plus_ms(IDEMPOTENCY_WINDOW_MS + 1);
        for now in [at(3), inside] {
            for open in [
                OpenThread::new(&ana(), conversation.id),
                OpenThread::new(&ana(), conversation.id).with_key(thread_key("k")),
            ] {
                assert_error!(store.client.open_thread(&ana(), &open, now).await, StoreError::NotFound(Kind::Thread));
            }
            if sweep {
                store.client.sweep(now).await.expect("sweeping works");
            }
        }
        if sweep {
            store.client.sweep(beyond).await.expect("sweeping works");
        }
        let reopened = Conversation::open(&store.client, &ana(), 1, beyond).await;
        assert_eq!(reopened.messages(beyond).await, []);
        assert_eq!(reopened.append(1..=3, beyond).await.change, 1);
        store.client.sweep(beyond.plus_ms(1)).await.expect("sweeping works");
        assert_eq!(reopened.texts(beyond.plus_ms(2)).await.len(), 3, "a sweep removed the new thread");
    }
}

pub(super) async fn threads_are_listed_in_creation_order(env: &TestEnv<'_>) {
    let store = env.open().await;
    // Ids and `created_at` are in the reverse order of creation.
    for (second, number) in (1..).zip((1..=7).rev()) {
        let created_at = (number < 4).then(|| at(i64::try_from(number).expect("a small number") - 100));
        let open = OpenThread { created_at, ..OpenThread::new(&ana(), thread_id(number)) };
        Conversation::open_as(&store.client, &ana(), &open, at(second)).await;
    }
    let expected: Vec<ThreadId> = (1..=7).rev().map(thread_id).collect();
    for limit in [1, 2, 3, 7, 8, 1000] {
        assert_eq!(all_ids(&store.client, ThreadOrder::Created, limit).await, expected, "in pages of {limit}");
    }
    // A thread that is created during paging comes last.
    let query = ThreadQuery::new(ThreadOrder::Created, 5);
    let page = store.client.list_threads(&ana(), &query, at(50)).await.expect("reading works");
    Conversation::open(&store.client, &ana(), 20, at(51)).await;
    Conversation::open(&store.client, &ana(), 0, at(52)).await;
    let query = ThreadQuery { after: page.next, ..query };
    let page = store.client.list_threads(&ana(), &query, at(53)).await.expect("reading works");
    let ids: Vec<_> = page.threads.iter().map(|thread| thread.id).collect();
    assert_eq!((ids, page.next), ([2, 1, 20, 0].map(thread_id).to_vec(), None));
}

pub(super) async fn threads_are_listed_by_recency(env: &TestEnv<'_>) {
    let store = env.open().await;
    let mut conversations = Vec::new();
    for number in 1..=5 {
        let second = i64::try_from(number).expect("a small number");
        conversations.push(Conversation::open(&store.client, &ana(), number, at(second)).await);
    }
    conversations[1].append(1..=1, at(10)).await;
    conversations[3].append(1..=1, at(11)).await;
    conversations[1].commit(&batch("empty"), at(12)).await;
    let expected = [4, 2, 5, 3, 1].map(thread_id);
    for limit in [1, 2, 5, 6] {
        assert_eq!(all_ids(&store.client, ThreadOrder::Recent, limit).await, expected, "in pages of {limit}");
    }
}

pub(super) async fn a_full_last_page_has_no_cursor(env: &TestEnv<'_>) {
    let store = env.open().await;
    for number in 1..=4 {
        Conversation::open(&store.client, &ana(), number, at(1)).await;
    }
    for order in [ThreadOrder::Created, ThreadOrder::Recent] {
        let page = store.client.list_threads(&ana(), &ThreadQuery::new(order, 4), at(2)).await;
        assert_eq!(page.expect("reading works").next, None);
        let query = ThreadQuery { after: Some("not a cursor".to_owned()), ..ThreadQuery::new(order, 4) };
        assert_error!(store.client.list_threads(&ana(), &query, at(2)).await, StoreError::Invalid { .. });
        let empty = store.client.list_threads(&ben(), &ThreadQuery::new(order, 4), at(2)).await;
        assert_eq!(empty.expect("reading works").threads, []);
    }
}

pub(super) async fn an_id_has_at_most_one_key(env: &TestEnv<'_>) {
    let store = env.open().await;
    let open_with_key = |number, key: &str| OpenThread::new(&ana(), thread_id(number)).with_key(thread_key(key));
    Conversation::open_as(&store.client, &ana(), &open_with_key(1, "a"), at(0)).await;
    Conversation::open(&store.client, &ana(), 2, at(0)).await;
    let open = async |open: OpenThread| store.client.open_thread(&ana(), &open, at(1)).await;
    assert_eq!(conflict_of(open(open_with_key(1, "b")).await), Conflict::Thread);
    assert_eq!(
        conflict_of(open(open_with_key(2, "b")).await),
        Conflict::Thread,
        "a thread without a key must not receive one"
    );
    // The key takes precedence over the id.
    let opened = open(open_with_key(9, "a")).await.expect("the thread opens");
    assert_eq!((opened.created, opened.thread.id), (false, thread_id(1)));
    let opened = open(open_with_key(2, "a")).await.expect("the thread opens");
    assert_eq!((opened.created, opened.thread.id), (false, thread_id(1)));
    let opened = open(OpenThread::new(&ana(), thread_id(1))).await.expect("the thread opens");
    assert_eq!((opened.created, opened.thread.key), (false, Some(thread_key("a"))));
    let refused = ThreadRef::Key(Owner::User(user_id("ana")), thread_key("b"));
    assert!(store.client.find_thread(&ana(), &refused, at(2)).await.expect("reading works").is_none());
}

/// Lists all threads of Ana page by page.
async fn all_ids(client: &Client, order: ThreadOrder, limit: usize) -> Vec<ThreadId> {
    let mut query = ThreadQuery::new(order, limit);
    let mut ids = Vec::new();
    loop {
        let page = client.list_threads(&ana(), &query, at(40)).await.expect("reading works");
        assert!(page.threads.len() <= limit && (page.threads.len() == limit || page.next.is_none()));
        assert!(page.threads.iter().all(|thread| !ids.contains(&thread.id)), "pages overlap");
        assert!(page.next.is_none() || !page.threads.is_empty(), "an empty page is not the last one");
        ids.extend(page.threads.iter().map(|thread| thread.id));
        match page.next {
            None => return ids,
            next => query.after = next,
        }
    }
}
