use std::time::Duration;

use futures::StreamExt;
use threadkeep_core::{Batch, ChangePage, OpenThread, Owner, RecordOwner, RecordWrite, ThreadId, WakeUp, WakeUps};

use crate::conversation::Conversation;
use crate::fixtures::{
    acme, ana, at, batch, ben, derived_write, note_write, put, system, thread_id, user_id, user_message,
};
use crate::run::TestEnv;

/// The maximum delay of a wake-up, with a margin.
const WAKE_UP_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits for a wake-up for a thread, and asserts that its change number, if there is one, satisfies a predicate.
async fn expect_wake_up(env: &TestEnv<'_>, wake_ups: &mut WakeUps, id: ThreadId, is_expected: impl Fn(u64) -> bool) {
    let received = async {
        loop {
            match wake_ups.next().await {
                Some(WakeUp::Thread { thread, .. }) if thread != id => {}
                Some(WakeUp::Record { .. }) => {}
                Some(WakeUp::Thread { tenant, change, .. }) => {
                    assert_eq!(&tenant, acme().tenant_id());
                    return assert!(change.is_none_or(is_expected), "{change:?}");
                }
                Some(WakeUp::Unspecified) => return,
                None => panic!("the wake-ups ended while the store is open"),
            }
        }
    };
    env.timeout(WAKE_UP_TIMEOUT, received).await.expect("a change wakes listeners");
}

pub(super) async fn commits_wake_subscribers(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let mut wake_ups = client.wake_ups().await.expect("subscribing works");
    let mut others = client.wake_ups().await.expect("subscribing works");
    drop(client.wake_ups().await.expect("subscribing works"));
    let commits = [
        Batch { append: vec![user_message(1, "one")], ..batch("1") },
        Batch { put: vec![put(system("run"), "k", "1")], ..batch("2") },
        Batch { trim_below: Some(2), ..batch("3") },
    ];
    for (change, commit) in (1..).zip(&commits) {
        conversation.commit(commit, at(1)).await;
        if !env.has_faults() {
            expect_wake_up(env, &mut wake_ups, conversation.id, |number| number == change).await;
            expect_wake_up(env, &mut others, conversation.id, |number| number == change).await;
        }
        // Reading from the last position returns every change, even if the wake-up was lost.
        let ChangePage::Changes { changes, .. } = conversation.changes(change - 1, at(2)).await else {
            panic!("unexpected reset")
        };
        assert_eq!(changes.iter().map(|change| change.change).collect::<Vec<_>>(), [change]);
    }
}

pub(super) async fn user_and_tenant_records_wake_subscribers(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let mut wake_ups = client.wake_ups().await.expect("subscribing works");
    let anas = |value: &str| note_write(RecordOwner::User(user_id("ana")), "k", value);
    let writes = [
        (ana(), anas("1"), Owner::User(user_id("ana"))),
        (acme(), note_write(RecordOwner::Tenant, "k", "1"), Owner::Tenant),
        (ana(), RecordWrite { value: None, ..anas("0") }, Owner::User(user_id("ana"))),
    ];
    for (scope, write, expected_owner) in writes {
        client.write_record(&scope, &write, at(1)).await.expect("writing works");
        if env.has_faults() {
            continue;
        }
        let received = async {
            loop {
                match wake_ups.next().await {
                    Some(WakeUp::Record { tenant, owner, name }) if owner == expected_owner => {
                        let actual = (tenant, name.namespace, name.key);
                        return assert_eq!(actual, (acme().tenant_id().clone(), write.namespace, write.key));
                    }
                    Some(WakeUp::Unspecified) => return,
                    Some(_) => {}
                    None => panic!("the wake-ups ended while the store is open"),
                }
            }
        };
        env.timeout(WAKE_UP_TIMEOUT, received).await.expect("a written record wakes listeners");
    }
}

/// Caches are valid while the stamp is unchanged. If a write did not change it, they would return stale data.
pub(super) async fn every_write_changes_the_stamp(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let mut last = client.stamp();
    let mut assert_changed = |action: &str| {
        let (before, after) = (last, client.stamp());
        assert_eq!(before.is_some(), after.is_some(), "a store must return a stamp either always or never");
        assert!(after.is_none() || before != after, "{action}, but the stamp is the same");
        last = after;
    };
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    assert_changed("a thread was opened");
    conversation.commit(&Batch { append: vec![user_message(1, "one")], ..batch("1") }, at(1)).await;
    assert_changed("a message was appended");
    conversation.commit(&Batch { put: vec![put(system("run"), "k", "1")], ..batch("2") }, at(1)).await;
    assert_changed("a record of the thread was written");
    client
        .write_derived(&ana(), conversation.id, &derived_write(2, None, "1"), at(1))
        .await
        .expect("the thread is at this change");
    assert_changed("a derived record was written");
    client.delete_thread(&ana(), conversation.id, at(2)).await.expect("the thread exists");
    assert_changed("the thread was deleted");
}

/// API keys are cached while this stamp is unchanged. If a revocation did not change it, the revoked key would still be
/// accepted.
pub(super) async fn record_writes_change_the_records_stamp(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let tenants = |value: &str| note_write(RecordOwner::Tenant, "k", value);
    let anas = |value: &str| note_write(RecordOwner::User(user_id("ana")), "k", value);
    let writes = [
        (acme(), tenants("1")),
        (acme(), tenants("2")),
        (ana(), anas("1")),
        (acme(), RecordWrite { value: None, ..tenants("0") }),
        (ana(), anas("2")),
    ];
    for (number, (scope, write)) in (1..).zip(&writes) {
        let key = number.to_string();
        conversation.commit(&Batch { append: vec![user_message(number, "one")], ..batch(&key) }, at(1)).await;
        let before = client.records_stamp();
        conversation
            .commit(&Batch { append: vec![user_message(number + 10, "two")], ..batch(&format!("{key} again")) }, at(1))
            .await;
        client.write_record(scope, write, at(1)).await.expect("writing works");
        let after = client.records_stamp();
        assert_eq!(before.is_some(), after.is_some(), "a store must return a stamp either always or never");
        assert!(after.is_none() || before != after, "write {number}: the stamp is the same");
    }
}

pub(super) async fn opening_and_deleting_wake_subscribers(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let mut wake_ups = client.wake_ups().await.expect("subscribing works");
    let cursor = client.list_changed_threads(&ben(), None, 5, at(0)).await.expect("reading works").cursor;
    client.open_thread(&ben(), &OpenThread::new(&ben(), thread_id(1)), at(0)).await.expect("the thread opens");
    if !env.has_faults() {
        expect_wake_up(env, &mut wake_ups, thread_id(1), |_| false).await;
    }
    client.delete_thread(&ben(), thread_id(1), at(1)).await.expect("the thread exists");
    if !env.has_faults() {
        expect_wake_up(env, &mut wake_ups, thread_id(1), |_| false).await;
    }
    let changed = client.list_changed_threads(&ben(), Some(&cursor), 5, at(2)).await.expect("reading works");
    assert_eq!(changed.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [thread_id(1)]);
}

pub(super) async fn a_slow_subscriber_does_not_block_writers(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let mut slow = store.client.wake_ups().await.expect("subscribing works");
    for number in 1..=1500 {
        conversation.append(number..=number, at(1)).await;
    }
    assert_eq!(conversation.thread(at(2)).await.positions.seq, 1500);
    if !env.has_faults() {
        expect_wake_up(env, &mut slow, conversation.id, |number| number <= 1500).await;
    }
}
