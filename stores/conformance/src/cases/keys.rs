use std::collections::BTreeSet;

use threadkeep_core::{OpenThread, Owner, ThreadRef};

use crate::conversation::Conversation;
use crate::fixtures::{acme, ana, at, ben, thread_id, thread_key, user, user_id};
use crate::run::TestEnv;

pub(super) async fn concurrent_opens_of_a_key_create_one_thread(env: &TestEnv<'_>) {
    let store = env.open().await;
    for round in 0..5 {
        let key = thread_key(&format!("slack:T1:C1:{round}"));
        let openers = (0..32).map(|opener| {
            let client = store.client.clone();
            let open = OpenThread::new(&ana(), thread_id(1000 * round + opener)).with_key(key.clone());
            env.spawn(async move { client.open_thread(&ana(), &open, at(1)).await.expect("the thread opens") })
        });
        let opened = futures::future::join_all(openers).await;
        let opened: Vec<_> = opened.into_iter().map(|opened| opened.expect("the opener does not panic")).collect();
        assert_eq!(opened.iter().filter(|opened| opened.created).count(), 1, "exactly one call creates the thread");
        let ids: BTreeSet<_> = opened.iter().map(|opened| opened.thread.id).collect();
        assert_eq!(ids.len(), 1, "all calls return the same thread");
        let reference = ThreadRef::Key(Owner::User(user_id("ana")), key);
        let found = store.client.find_thread(&ana(), &reference, at(2)).await.expect("reading works");
        assert_eq!(found.map(|thread| thread.id), ids.first().copied());
    }
}

pub(super) async fn concurrent_opens_of_an_id_create_one_thread(env: &TestEnv<'_>) {
    let store = env.open().await;
    for number in 0..5 {
        let openers = (0..32).map(|_| {
            let client = store.client.clone();
            let open = OpenThread::new(&ana(), thread_id(number));
            env.spawn(async move { client.open_thread(&ana(), &open, at(1)).await.expect("the thread opens") })
        });
        let opened = futures::future::join_all(openers).await;
        let created = opened.into_iter().filter(|opened| opened.as_ref().expect("the opener does not panic").created);
        assert_eq!(created.count(), 1, "exactly one call creates the thread");
    }
}

pub(super) async fn each_owner_has_its_own_keys(env: &TestEnv<'_>) {
    let store = env.open().await;
    let owners = [ana(), ben(), acme(), user("globex", "ana")];
    for (number, scope) in (1..).zip(&owners) {
        let open = OpenThread::new(scope, thread_id(number)).with_key(thread_key("the key"));
        Conversation::open_as(&store.client, scope, &open, at(1)).await;
    }
    for (number, scope) in (1..).zip(&owners) {
        let reference = ThreadRef::Key(scope.default_owner(), thread_key("the key"));
        let found = store.client.find_thread(scope, &reference, at(2)).await.expect("reading works");
        assert_eq!(found.map(|thread| thread.id), Some(thread_id(number)));
    }
}

pub(super) async fn keys_are_compared_byte_by_byte(env: &TestEnv<'_>) {
    let store = env.open().await;
    let keys = ["a", "A", "a ", "å", "a\u{30a}", "%", "_", "a'b", "🚇", "slack:T1:C1", "slack:T1:C10"];
    for (number, key) in (1..).zip(keys) {
        let open = OpenThread::new(&ana(), thread_id(number)).with_key(thread_key(key));
        Conversation::open_as(&store.client, &ana(), &open, at(1)).await;
    }
    for (number, key) in (1..).zip(keys) {
        let reference = ThreadRef::Key(Owner::User(user_id("ana")), thread_key(key));
        let found = store.client.find_thread(&ana(), &reference, at(2)).await.expect("reading works");
        assert_eq!(found.map(|thread| thread.id), Some(thread_id(number)), "{key}");
    }
}
