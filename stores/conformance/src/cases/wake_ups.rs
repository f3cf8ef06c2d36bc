use std::time::Duration;

use futures::StreamExt;
use threadkeep_core::{Batch, ChangePage, OpenThread, Owner, RecordOwner, RecordWrite, ThreadId, WakeUp, WakeUps};

use crate::conversation::Conversation;
use crate::given::{acme, ana, at, batch, ben, derives, note, put, says, system, thread_id, user_id};
use crate::run::Stage;

/// As long as a hint may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits for a hint that a thread changed; what it tells of the change, if anything, is so.
async fn hears_of(wake_ups: &mut WakeUps, id: ThreadId, is_so: impl Fn(u64) -> bool) {
    let heard = async {
        loop {
            match wake_ups.next().await {
                Some(WakeUp::Thread { thread, .. }) if thread != id => {}
                Some(WakeUp::Record { .. }) => {}
                Some(WakeUp::Thread { tenant, change, .. }) => {
                    assert_eq!(&tenant, acme().tenant_id());
                    return assert!(change.is_none_or(is_so), "{change:?}");
                }
                Some(WakeUp::Anything) => return,
                None => panic!("the hints ended while the store is open"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, heard).await.expect("a commit wakes those who listen");
}

pub(super) async fn commits_wake_those_who_listen(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let mut wake_ups = client.wake_ups().await.expect("listening works");
    let mut others = client.wake_ups().await.expect("listening works");
    drop(client.wake_ups().await.expect("listening works"));
    let commits = [
        Batch { append: vec![says(1, "one")], ..batch("1") },
        Batch { put: vec![put(system("run"), "k", "1")], ..batch("2") },
        Batch { trim_below: Some(2), ..batch("3") },
    ];
    for (change, commit) in (1..).zip(&commits) {
        conversation.commit(commit, at(1)).await;
        if !stage.is_weak() {
            hears_of(&mut wake_ups, conversation.id, |told| told == change).await;
            hears_of(&mut others, conversation.id, |told| told == change).await;
        }
        // Whatever became of the hint, reading on from the last position misses nothing.
        let ChangePage::Changes { changes, .. } = conversation.changes(change - 1, at(2)).await else {
            panic!("a reset")
        };
        assert_eq!(changes.iter().map(|change| change.change).collect::<Vec<_>>(), [change]);
    }
}

pub(super) async fn records_of_users_and_tenants_wake_those_who_listen(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    let mut wake_ups = client.wake_ups().await.expect("listening works");
    let anas = |value: &str| note(RecordOwner::User(user_id("ana")), "k", value);
    let writes = [
        (ana(), anas("1"), Owner::User(user_id("ana"))),
        (acme(), note(RecordOwner::Tenant, "k", "1"), Owner::Tenant),
        (ana(), RecordWrite { value: None, ..anas("0") }, Owner::User(user_id("ana"))),
    ];
    for (scope, write, of) in writes {
        client.write_record(&scope, &write, at(1)).await.expect("writing works");
        if stage.is_weak() {
            continue;
        }
        let heard = async {
            loop {
                match wake_ups.next().await {
                    Some(WakeUp::Record { tenant, owner, name }) if owner == of => {
                        let told = (tenant, name.namespace, name.key);
                        let (tenant, namespace, key) = (acme().tenant_id().clone(), write.namespace, write.key);
                        return assert_eq!(told, (tenant, namespace, key));
                    }
                    Some(WakeUp::Anything) => return,
                    Some(_) => {}
                    None => panic!("the hints ended while the store is open"),
                }
            }
        };
        tokio::time::timeout(PATIENCE, heard).await.expect("a document that is written wakes those who listen");
    }
}

/// A stamp that stays the same although something was written would have readers go on with what is no longer so.
pub(super) async fn a_stamp_is_another_one_after_anything_was_written(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    let mut last = client.stamp();
    let mut has_changed = |what: &str| {
        let (before, after) = (last, client.stamp());
        assert_eq!(before.is_some(), after.is_some(), "a store has a stamp or it has none");
        assert!(after.is_none() || before != after, "{what}");
        last = after;
    };
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    has_changed("a thread was opened");
    conversation.commit(&Batch { append: vec![says(1, "one")], ..batch("1") }, at(1)).await;
    has_changed("a message was added");
    conversation.commit(&Batch { put: vec![put(system("run"), "k", "1")], ..batch("2") }, at(1)).await;
    has_changed("a document of the thread was written");
    client
        .write_derived(&ana(), conversation.id, &derives(2, None, "1"), at(1))
        .await
        .expect("the thread stands there");
    has_changed("a derived document was written");
    client.delete_thread(&ana(), conversation.id, at(2)).await.expect("the thread goes");
    has_changed("the thread was deleted");
}

/// It is what keys are held against: one that was revoked must not be good because messages are all that it looks at.
pub(super) async fn a_stamp_of_records_is_another_one_after_one_was_written(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let tenants = |value: &str| note(RecordOwner::Tenant, "k", value);
    let anas = |value: &str| note(RecordOwner::User(user_id("ana")), "k", value);
    let writes = [
        (acme(), tenants("1")),
        (acme(), tenants("2")),
        (ana(), anas("1")),
        (acme(), RecordWrite { value: None, ..tenants("0") }),
        (ana(), anas("2")),
    ];
    for (number, (scope, write)) in (1..).zip(&writes) {
        let key = number.to_string();
        conversation.commit(&Batch { append: vec![says(number, "one")], ..batch(&key) }, at(1)).await;
        let before = client.records_stamp();
        conversation
            .commit(&Batch { append: vec![says(number + 10, "two")], ..batch(&format!("{key} again")) }, at(1))
            .await;
        client.write_record(scope, write, at(1)).await.expect("writing works");
        let after = client.records_stamp();
        assert_eq!(before.is_some(), after.is_some(), "a store has a stamp or it has none");
        assert!(after.is_none() || before != after, "{number}");
    }
}

pub(super) async fn openings_and_deletions_wake_those_who_listen(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    let mut wake_ups = client.wake_ups().await.expect("listening works");
    let cursor = client.list_changed_threads(&ben(), None, 5, at(0)).await.expect("reading works").cursor;
    client.open_thread(&ben(), &OpenThread::new(&ben(), thread_id(1)), at(0)).await.expect("the thread opens");
    if !stage.is_weak() {
        hears_of(&mut wake_ups, thread_id(1), |_| false).await;
    }
    client.delete_thread(&ben(), thread_id(1), at(1)).await.expect("the thread is there");
    if !stage.is_weak() {
        hears_of(&mut wake_ups, thread_id(1), |_| false).await;
    }
    let changed = client.list_changed_threads(&ben(), Some(&cursor), 5, at(2)).await.expect("reading works");
    assert_eq!(changed.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [thread_id(1)]);
}

pub(super) async fn a_slow_listener_disturbs_nobody(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let mut slow = subject.client.wake_ups().await.expect("listening works");
    for number in 1..=1500 {
        conversation.say(number..=number, at(1)).await;
    }
    assert_eq!(conversation.thread(at(2)).await.positions.seq, 1500);
    if !stage.is_weak() {
        hears_of(&mut slow, conversation.id, |told| told <= 1500).await;
    }
}
