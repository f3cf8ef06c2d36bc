//! Change numbers that are assigned twice, before and after a failover. Tags distinguish the two changes.

use std::sync::Arc;

use threadkeep_core::{
    Batch, ChangePage, ChangeTag, Conflict, Expected, Namespace, Positions, Record, RecordCondition, RecordName,
    RecordOwner, RecordState, StoreError, TaggedNumber,
};

use crate::client::Client;
use crate::conversation::Conversation;
use crate::fixtures::{
    EIGHT_DAYS, ana, appending, assert_error, at, batch, conflict_of, derived_write, put, tag_of, user_message,
};
use crate::run::{TestEnv, TestStore};
use crate::{FailoverStore, FaultyStore};

/// A store that can fail over, and a thread with a message at change 1.
struct FailoverTest {
    conversation: Conversation,
    failover: Arc<FailoverStore>,
    /// The primary and the replica.
    stores: [TestStore; 2],
}

impl FailoverTest {
    async fn start(env: &TestEnv<'_>) -> Self {
        let stores = [env.open_plain().await, env.open_plain().await];
        let failover = FailoverStore::new(stores[0].client.backend(), stores[1].client.backend());
        let backend = match env.fault_seed() {
            Some(seed) => FaultyStore::wrap(failover.backend(), seed),
            None => failover.backend(),
        };
        let conversation = Conversation::open(&Client::new(backend), &ana(), 1, at(0)).await;
        conversation.append(1..=1, at(1)).await;
        Self { conversation, failover, stores }
    }

    async fn replicate(&self) {
        let Conversation { scope, id, .. } = &self.conversation;
        self.failover.replicate(scope, *id, at(2)).await.expect("replicating works");
    }

    /// Commits `lost`, fails over before it is replicated, and commits `current`. Both changes have the same number.
    async fn fail_over(&self, lost: &Batch, current: &Batch) -> (TaggedNumber, TaggedNumber) {
        self.replicate().await;
        let lost = self.conversation.commit(lost, at(3)).await.tagged();
        self.failover.fail_over();
        let current = self.conversation.commit(current, at(4)).await.tagged();
        assert_eq!(lost.number, current.number, "the number is assigned twice");
        (lost, current)
    }

    async fn record(&self, name: &RecordName) -> Record {
        let owner = RecordOwner::Thread(self.conversation.id);
        let client = &self.conversation.client;
        let found = client.find_record(&ana(), &owner, &name.namespace, &name.key, at(5)).await;
        found.expect("reading works").expect("the record exists")
    }
}

/// Returns a batch that sets the driver of the thread.
fn set_driver(driver: &str) -> Batch {
    let RecordName { namespace, key } = RecordName::driver();
    Batch { put: vec![put(namespace, &key, &format!("\"{driver}\""))], ..batch(driver) }
}

fn append_requiring(name: RecordName, version: TaggedNumber, key: &str) -> Batch {
    let require = vec![RecordCondition { name, state: RecordState::Version(version) }];
    Batch { require, ..append_with_key(key) }
}

fn append_with_key(key: &str) -> Batch {
    Batch { append: vec![user_message(9, "nine")], ..batch(key) }
}

pub(super) async fn every_change_has_the_tag_of_its_commit(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    assert_eq!(conversation.thread(at(0)).await.positions.tag, None);
    for (change, driver) in (1..).zip(["one", "two"]) {
        let (batch_of_driver, tag) = (set_driver(driver), tag_of(&set_driver(driver)));
        let outcome = conversation.commit(&batch_of_driver, at(1)).await;
        assert_eq!((outcome.change, outcome.tag), (change, tag));
        assert_eq!(conversation.commit(&batch_of_driver, at(2)).await.tag, tag, "a replay has the tag of the commit");
        let empty = conversation.commit(&batch(&format!("empty {driver}")), at(2)).await;
        assert_eq!(empty.tagged(), outcome.tagged(), "an empty batch returns the current change");
        let positions = Positions { change, tag, ..Positions::BEGINNING };
        assert_eq!(conversation.thread(at(2)).await.positions, positions);
        let ChangePage::Changes { changes, positions: actual } = conversation.changes(change - 1, at(2)).await else {
            panic!("unexpected reset")
        };
        assert_eq!((changes.len(), changes[0].tagged(), actual), (1, outcome.tagged(), positions));
        let query = threadkeep_core::MessageQuery::newest(1);
        assert_eq!(conversation.page(&query, at(2)).await.positions, positions);
        let owner = RecordOwner::Thread(conversation.id);
        let RecordName { namespace, key } = RecordName::driver();
        let found = store.client.find_record(&ana(), &owner, &namespace, &key, at(2)).await;
        let found = found.expect("reading works").expect("the record exists");
        assert_eq!(found.tagged(), outcome.tagged());
        let driven = store.client.list_driven_threads(None, 5, at(2)).await.expect("reading works");
        assert_eq!(driven.iter().map(|driven| &driven.record).collect::<Vec<_>>(), [&found]);
    }
}

pub(super) async fn a_reassigned_change_number_is_rejected(env: &TestEnv<'_>) {
    let test = FailoverTest::start(env).await;
    let (lost, current) = test.fail_over(&set_driver("lost"), &set_driver("current")).await;
    let thread = &test.conversation;
    let stale = Batch { expected: Some(Expected::Change(lost)), ..append_with_key("stale") };
    let conflict = conflict_of(thread.try_commit(&stale, at(5)).await);
    assert_eq!(conflict, Conflict::Change { expected: lost, actual: current });
    let empty = Batch { expected: Some(Expected::Change(lost)), ..batch("stale and empty") };
    let conflict = conflict_of(thread.try_commit(&empty, at(5)).await);
    assert_eq!(conflict, Conflict::Change { expected: lost, actual: current });
    assert_eq!(thread.texts(at(5)).await, ["message 1"]);
    let right = Batch { expected: Some(Expected::Change(current)), ..append_with_key("right") };
    assert_eq!(thread.commit(&right, at(6)).await.change, current.number + 1);
}

pub(super) async fn commits_of_a_replaced_driver_are_rejected(env: &TestEnv<'_>) {
    let test = FailoverTest::start(env).await;
    let (lost, current) = test.fail_over(&set_driver("lost"), &set_driver("current")).await;
    let (thread, name) = (&test.conversation, RecordName::driver());
    let record = test.record(&name).await;
    assert_eq!((record.value.as_str(), record.tagged()), ("\"current\"", current));
    let conflict = conflict_of(thread.try_commit(&append_requiring(name.clone(), lost, "stale"), at(5)).await);
    let RecordName { namespace, key } = name.clone();
    assert_eq!(conflict, Conflict::Record { namespace, key, actual: Some(current) });
    assert_eq!(thread.texts(at(5)).await, ["message 1"]);
    assert_eq!(thread.commit(&append_requiring(name, current, "right"), at(6)).await.change, current.number + 1);
}

pub(super) async fn a_derived_write_at_a_lost_change_is_rejected(env: &TestEnv<'_>) {
    let test = FailoverTest::start(env).await;
    let (lost, current) = test.fail_over(&batch_of(2, "lost"), &batch_of(3, "current")).await;
    let Conversation { client, id, .. } = &test.conversation;
    let derived =
        |at_change, expected| threadkeep_core::DerivedWrite { at_change, expected, ..derived_write(0, None, "1") };
    let refused = client.write_derived(&ana(), *id, &derived(lost, None), at(5)).await;
    assert_eq!(conflict_of(refused), Conflict::Change { expected: lost, actual: current });
    let first =
        client.write_derived(&ana(), *id, &derived(current, None), at(5)).await.expect("the thread is at this change");
    assert_eq!(first.tag, current.tag, "a derived record has the tag of its change");
    let name = RecordName { namespace: Namespace::derived(), key: "k".to_owned() };
    assert_eq!(test.record(&name).await.tagged(), first.tagged());
    let lost_version = TaggedNumber { number: first.version, tag: lost.tag };
    let refused = client.write_derived(&ana(), *id, &derived(current, Some(lost_version)), at(5)).await;
    assert!(matches!(conflict_of(refused), Conflict::Record { actual, .. } if actual == Some(first.tagged())));
    let scrub = append_requiring(name.clone(), lost_version, "scrub");
    assert_error!(test.conversation.try_commit(&scrub, at(6)).await, StoreError::Conflict(Conflict::Record { .. }));
    let second = client.write_derived(&ana(), *id, &derived(current, Some(first.tagged())), at(6)).await;
    assert_eq!(second.expect("the version is current").tag, current.tag);
}

fn batch_of(number: u128, key: &str) -> Batch {
    Batch { append: vec![user_message(number, key)], ..batch(key) }
}

pub(super) async fn a_reader_at_a_lost_change_gets_a_reset(env: &TestEnv<'_>) {
    let test = FailoverTest::start(env).await;
    let (lost, current) = test.fail_over(&batch_of(2, "lost"), &batch_of(3, "current")).await;
    let thread = &test.conversation;
    // The tag of the current change is in the thread's row.
    expect_after(thread, lost, None).await;
    expect_after(thread, current, Some(0)).await;
    expect_after(thread, lost.number.into(), Some(0)).await;
    // The tags of earlier changes are in the change log.
    let last = thread.commit(&appending(vec![user_message(4, "four")]), at(5)).await.tagged();
    expect_after(thread, lost, None).await;
    expect_after(thread, current, Some(1)).await;
    expect_after(thread, lost.number.into(), Some(1)).await;
    // After the log entry was swept, a tagged position is a reset, and a number alone is accepted.
    test.stores[1].client.sweep(at(EIGHT_DAYS)).await.expect("sweeping works");
    expect_after(thread, last, Some(0)).await;
    thread.commit(&appending(vec![user_message(5, "five")]), at(EIGHT_DAYS)).await;
    expect_after(thread, last, None).await;
    expect_after(thread, last.number.into(), Some(1)).await;
}

/// Asserts the number of changes after a position; `None` for a reset.
async fn expect_after(thread: &Conversation, after: TaggedNumber, expected: Option<usize>) {
    let (client, now) = (&thread.client, at(EIGHT_DAYS));
    let listed = thread.changes(after, now).await;
    let followed = client.list_changes_with_messages(&ana(), thread.id, after, 10, now).await;
    assert_eq!(followed.expect("reading works").page, listed, "after {after}");
    let (count, actual) = match listed {
        ChangePage::Reset { positions } => (None, positions),
        ChangePage::Changes { changes, positions } => (Some(changes.len()), positions),
    };
    assert_eq!((count, actual), (expected, thread.thread(now).await.positions), "after {after}");
}

pub(super) async fn a_lost_commit_can_be_repeated_with_its_key(env: &TestEnv<'_>) {
    let test = FailoverTest::start(env).await;
    let lost = batch_of(2, "lost");
    test.replicate().await;
    let first = test.conversation.commit(&lost, at(3)).await;
    test.failover.fail_over();
    let again = test.conversation.commit(&lost, at(4)).await;
    assert_eq!(again.tagged(), first.tagged(), "the repeated commit has another position or tag");
    assert!(!again.replayed || env.has_faults(), "a lost commit is not a replay");
    let repeated = test.conversation.commit(&lost, at(5)).await;
    assert_eq!((repeated.replayed, repeated.tagged()), (true, first.tagged()));
    assert_eq!(test.conversation.texts(at(6)).await, ["message 1", "lost"]);
    // Number and tag are the same, so readers continue without a reset.
    let changes = test.conversation.changes(first.tagged(), at(6)).await;
    assert!(matches!(changes, ChangePage::Changes { changes, .. } if changes.is_empty()));
}

pub(super) async fn untagged_changes_are_compared_by_number(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let tagged = conversation.commit(&set_driver("one"), at(1)).await.tagged();
    let bare = TaggedNumber::from(tagged.number);
    let by_number =
        Batch { expected: Some(Expected::Change(bare)), ..append_requiring(RecordName::driver(), bare, "bare") };
    assert_eq!(conversation.commit(&by_number, at(2)).await.change, 2);
    // A thread and a record written by a version without tags.
    let mut dump = conversation.dump(1000).await.remove(0);
    dump.thread.as_mut().expect("the first chunk").positions.tag = None;
    dump.records.iter_mut().for_each(|record| record.tag = None);
    store.client.delete_thread(&ana(), conversation.id, at(3)).await.expect("the thread exists");
    store.client.restore_thread(ana().tenant_id(), conversation.id, &dump).await.expect("restoring works");
    assert_eq!(conversation.dump(1000).await, [dump]);
    let tag = Some(ChangeTag::from_stored(7));
    let (thread_at, driver_at) = (TaggedNumber { number: 2, tag }, TaggedNumber { number: 1, tag });
    let nothing = conversation.changes(thread_at, at(4)).await;
    assert!(matches!(nothing, ChangePage::Changes { changes, .. } if changes.is_empty()), "the thread has no tag");
    let by_number = append_requiring(RecordName::driver(), driver_at, "tagged");
    let by_number =
        Batch { expected: Some(Expected::Change(thread_at)), append: vec![user_message(8, "eight")], ..by_number };
    let outcome = conversation.commit(&by_number, at(5)).await;
    assert_eq!(outcome.tag, tag_of(&by_number));
    assert_eq!(conversation.thread(at(6)).await.positions.tagged(), outcome.tagged());
}

pub(super) async fn tags_are_dumped_with_their_thread(env: &TestEnv<'_>) {
    let (from, to) = (env.open().await, env.open().await);
    let source = Conversation::open(&from.client, &ana(), 1, at(0)).await;
    source.commit(&set_driver("one"), at(1)).await;
    let last = source.commit(&appending(vec![user_message(1, "one")]), at(2)).await;
    let dump = source.dump(1000).await.remove(0);
    to.client.restore_thread(ana().tenant_id(), source.id, &dump).await.expect("restoring works");
    let target = Conversation { client: to.client.clone(), ..source.clone() };
    assert_eq!(target.thread(at(3)).await.positions, source.thread(at(3)).await.positions);
    assert_eq!(target.thread(at(3)).await.positions.tagged(), last.tagged());
    assert_eq!(target.dump(1000).await, source.dump(1000).await);
    assert_eq!(target.changes(0, at(3)).await, source.changes(0, at(3)).await);
}
