use std::collections::BTreeSet;

use threadkeep_core::{OpenThread, Owner, ThreadName};

use crate::conversation::Conversation;
use crate::given::{acme, ana, at, ben, thread_id, thread_key, user, user_id};
use crate::run::Stage;

// S4.05
pub(super) async fn one_of_many_openers_claims_a_key(stage: &Stage<'_>) {
    let subject = stage.open().await;
    for round in 0..5 {
        let key = thread_key(&format!("slack:T1:C1:{round}"));
        let openers = (0..32).map(|opener| {
            let client = subject.client.clone();
            let open = OpenThread::new(&ana(), thread_id(1000 * round + opener)).with_key(key.clone());
            tokio::spawn(async move { client.open_thread(&ana(), &open, at(1)).await.expect("the thread opens") })
        });
        let opened = futures::future::join_all(openers).await;
        let opened: Vec<_> = opened.into_iter().map(|opened| opened.expect("the opener ends")).collect();
        assert_eq!(opened.iter().filter(|opened| opened.created).count(), 1, "one makes the thread");
        let ids: BTreeSet<_> = opened.iter().map(|opened| opened.thread.id).collect();
        assert_eq!(ids.len(), 1, "all get the same");
        let name = ThreadName::Key(Owner::User(user_id("ana")), key);
        let found = subject.client.find_thread(&ana(), &name, at(2)).await.expect("reading works");
        assert_eq!(found.map(|thread| thread.id), ids.first().copied());
    }
}

pub(super) async fn one_of_many_openers_makes_an_id(stage: &Stage<'_>) {
    let subject = stage.open().await;
    for number in 0..5 {
        let openers = (0..32).map(|_| {
            let client = subject.client.clone();
            let open = OpenThread::new(&ana(), thread_id(number));
            tokio::spawn(async move { client.open_thread(&ana(), &open, at(1)).await.expect("the thread opens") })
        });
        let opened = futures::future::join_all(openers).await;
        let created = opened.into_iter().filter(|opened| opened.as_ref().expect("the opener ends").created);
        assert_eq!(created.count(), 1, "one makes the thread");
    }
}

pub(super) async fn each_owner_has_its_own_keys(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let owners = [ana(), ben(), acme(), user("globex", "ana")];
    for (number, scope) in (1..).zip(&owners) {
        let open = OpenThread::new(scope, thread_id(number)).with_key(thread_key("the key"));
        Conversation::open_as(&subject.client, scope, &open, at(1)).await;
    }
    for (number, scope) in (1..).zip(&owners) {
        let name = ThreadName::Key(scope.default_owner(), thread_key("the key"));
        let found = subject.client.find_thread(scope, &name, at(2)).await.expect("reading works");
        assert_eq!(found.map(|thread| thread.id), Some(thread_id(number)));
    }
}

pub(super) async fn keys_are_compared_byte_by_byte(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let keys = ["a", "A", "a ", "å", "a\u{30a}", "%", "_", "a'b", "🚇", "slack:T1:C1", "slack:T1:C10"];
    for (number, key) in (1..).zip(keys) {
        let open = OpenThread::new(&ana(), thread_id(number)).with_key(thread_key(key));
        Conversation::open_as(&subject.client, &ana(), &open, at(1)).await;
    }
    for (number, key) in (1..).zip(keys) {
        let name = ThreadName::Key(Owner::User(user_id("ana")), thread_key(key));
        let found = subject.client.find_thread(&ana(), &name, at(2)).await.expect("reading works");
        assert_eq!(found.map(|thread| thread.id), Some(thread_id(number)), "{key}");
    }
}
