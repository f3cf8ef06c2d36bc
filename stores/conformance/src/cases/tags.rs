//! Numbers that were given twice, before and after a failover.

use std::sync::Arc;

use threadkeep_core::{
    Batch, ChangePage, ChangeTag, Conflict, Expected, Namespace, Positions, Record, RecordCondition, RecordName,
    RecordOwner, RecordState, StoreError, Tagged,
};

use crate::client::Client;
use crate::conversation::Conversation;
use crate::given::{EIGHT_DAYS, adds, ana, assert_error, at, batch, conflict_of, derives, put, says, tag_of};
use crate::run::{Stage, Subject};
use crate::{FailingOver, FaultyStore};

/// One thread, in a store that fails over, with a message at change 1.
struct Play {
    conversation: Conversation,
    store: Arc<FailingOver>,
    /// The primary and the replica.
    subjects: [Subject; 2],
}

impl Play {
    async fn begin(stage: &Stage<'_>) -> Self {
        let subjects = [stage.open_plain().await, stage.open_plain().await];
        let store = FailingOver::over(subjects[0].client.backend(), subjects[1].client.backend());
        let backend = match stage.weak_seed() {
            Some(seed) => FaultyStore::over(store.backend(), seed),
            None => store.backend(),
        };
        let conversation = Conversation::open(&Client::new(backend), &ana(), 1, at(0)).await;
        conversation.say(1..=1, at(1)).await;
        Self { conversation, store, subjects }
    }

    async fn replicate(&self) {
        let Conversation { scope, id, .. } = &self.conversation;
        self.store.replicate(scope, *id, at(2)).await.expect("the replica hears of the thread");
    }

    /// Commits `lost`, which the replica does not hear of, fails over, and commits `made` in its place.
    async fn fail_over(&self, lost: &Batch, made: &Batch) -> (Tagged, Tagged) {
        self.replicate().await;
        let lost = self.conversation.commit(lost, at(3)).await.tagged();
        self.store.fail_over();
        let made = self.conversation.commit(made, at(4)).await.tagged();
        assert_eq!(lost.number, made.number, "the number is given twice");
        (lost, made)
    }

    async fn record(&self, name: &RecordName) -> Record {
        let owner = RecordOwner::Thread(self.conversation.id);
        let client = &self.conversation.client;
        let found = client.find_record(&ana(), &owner, &name.namespace, &name.key, at(5)).await;
        found.expect("reading works").expect("the document is there")
    }
}

/// A batch that says who drives the thread.
fn drives(driver: &str) -> Batch {
    let RecordName { namespace, key } = RecordName::driver();
    Batch { put: vec![put(namespace, &key, &format!("\"{driver}\""))], ..batch(driver) }
}

fn requires(name: RecordName, version: Tagged, key: &str) -> Batch {
    let require = vec![RecordCondition { name, state: RecordState::Version(version) }];
    Batch { require, ..adds_under(key) }
}

fn adds_under(key: &str) -> Batch {
    Batch { append: vec![says(9, "nine")], ..batch(key) }
}

pub(super) async fn a_tag_is_told_wherever_a_change_is(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    assert_eq!(conversation.thread(at(0)).await.positions.tag, None);
    for (change, driver) in (1..).zip(["one", "two"]) {
        let (made, tag) = (drives(driver), tag_of(&drives(driver)));
        let outcome = conversation.commit(&made, at(1)).await;
        assert_eq!((outcome.change, outcome.tag), (change, tag));
        assert_eq!(conversation.commit(&made, at(2)).await.tag, tag, "a repetition has the tag of the commit");
        let empty = conversation.commit(&batch(&format!("empty {driver}")), at(2)).await;
        assert_eq!(empty.tagged(), outcome.tagged(), "an empty batch tells where the thread stands");
        let positions = Positions { change, tag, ..Positions::BEGINNING };
        assert_eq!(conversation.thread(at(2)).await.positions, positions);
        let ChangePage::Changes { changes, positions: stands } = conversation.changes(change - 1, at(2)).await else {
            panic!("a reset")
        };
        assert_eq!((changes.len(), changes[0].tagged(), stands), (1, outcome.tagged(), positions));
        let query = threadkeep_core::MessageQuery::newest(1);
        assert_eq!(conversation.page(&query, at(2)).await.positions, positions);
        let owner = RecordOwner::Thread(conversation.id);
        let RecordName { namespace, key } = RecordName::driver();
        let found = subject.client.find_record(&ana(), &owner, &namespace, &key, at(2)).await;
        let found = found.expect("reading works").expect("it was written");
        assert_eq!(found.tagged(), outcome.tagged());
        let driven = subject.client.list_driven_threads(None, 5, at(2)).await.expect("reading works");
        assert_eq!(driven.iter().map(|it| &it.record).collect::<Vec<_>>(), [&found]);
    }
}

pub(super) async fn a_number_that_was_given_twice_is_refused(stage: &Stage<'_>) {
    let play = Play::begin(stage).await;
    let (lost, made) = play.fail_over(&drives("lost"), &drives("made")).await;
    let thread = &play.conversation;
    let stale = Batch { expected: Some(Expected::Change(lost)), ..adds_under("stale") };
    let conflict = conflict_of(thread.try_commit(&stale, at(5)).await);
    assert_eq!(conflict, Conflict::Change { expected: lost, actual: made });
    let empty = Batch { expected: Some(Expected::Change(lost)), ..batch("stale and empty") };
    let conflict = conflict_of(thread.try_commit(&empty, at(5)).await);
    assert_eq!(conflict, Conflict::Change { expected: lost, actual: made });
    assert_eq!(thread.texts(at(5)).await, ["message 1"]);
    let right = Batch { expected: Some(Expected::Change(made)), ..adds_under("right") };
    assert_eq!(thread.commit(&right, at(6)).await.change, made.number + 1);
}

pub(super) async fn a_stale_driver_cannot_pass_the_fence(stage: &Stage<'_>) {
    let play = Play::begin(stage).await;
    let (lost, made) = play.fail_over(&drives("lost"), &drives("made")).await;
    let (thread, name) = (&play.conversation, RecordName::driver());
    let held = play.record(&name).await;
    assert_eq!((held.value.as_str(), held.tagged()), ("\"made\"", made));
    let conflict = conflict_of(thread.try_commit(&requires(name.clone(), lost, "stale"), at(5)).await);
    let RecordName { namespace, key } = name.clone();
    assert_eq!(conflict, Conflict::Record { namespace, key, actual: Some(made) });
    assert_eq!(thread.texts(at(5)).await, ["message 1"]);
    assert_eq!(thread.commit(&requires(name, made, "right"), at(6)).await.change, made.number + 1);
}

pub(super) async fn a_derived_record_of_a_lost_past_is_refused(stage: &Stage<'_>) {
    let play = Play::begin(stage).await;
    let (lost, made) = play.fail_over(&batch_of(2, "lost"), &batch_of(3, "made")).await;
    let Conversation { client, id, .. } = &play.conversation;
    let derived = |at_change, expected| threadkeep_core::DerivedWrite { at_change, expected, ..derives(0, None, "1") };
    let refused = client.write_derived(&ana(), *id, &derived(lost, None), at(5)).await;
    assert_eq!(conflict_of(refused), Conflict::Change { expected: lost, actual: made });
    let first = client.write_derived(&ana(), *id, &derived(made, None), at(5)).await.expect("it stands there");
    assert_eq!(first.tag, made.tag, "a derived document has the tag of its change");
    let name = RecordName { namespace: Namespace::derived(), key: "k".to_owned() };
    assert_eq!(play.record(&name).await.tagged(), first.tagged());
    let read_in_the_lost_past = Tagged { number: first.version, tag: lost.tag };
    let refused = client.write_derived(&ana(), *id, &derived(made, Some(read_in_the_lost_past)), at(5)).await;
    assert!(matches!(conflict_of(refused), Conflict::Record { actual, .. } if actual == Some(first.tagged())));
    let scrubs = requires(name.clone(), read_in_the_lost_past, "scrub");
    assert_error!(play.conversation.try_commit(&scrubs, at(6)).await, StoreError::Conflict(Conflict::Record { .. }));
    let second = client.write_derived(&ana(), *id, &derived(made, Some(first.tagged())), at(6)).await;
    assert_eq!(second.expect("it was read so").tag, made.tag);
}

fn batch_of(number: u128, key: &str) -> Batch {
    Batch { append: vec![says(number, key)], ..batch(key) }
}

pub(super) async fn a_reader_of_a_lost_past_is_told_to_begin_anew(stage: &Stage<'_>) {
    let play = Play::begin(stage).await;
    let (lost, made) = play.fail_over(&batch_of(2, "lost"), &batch_of(3, "made")).await;
    let thread = &play.conversation;
    // At the thread's own change the thread tells, before it the log.
    expect_after(thread, lost, None).await;
    expect_after(thread, made, Some(0)).await;
    expect_after(thread, lost.number.into(), Some(0)).await;
    let last = thread.commit(&adds(vec![says(4, "four")]), at(5)).await.tagged();
    expect_after(thread, lost, None).await;
    expect_after(thread, made, Some(1)).await;
    expect_after(thread, lost.number.into(), Some(1)).await;
    // Without an entry in the log a tag is not taken on trust, and a number is.
    play.subjects[1].client.sweep(at(EIGHT_DAYS)).await.expect("sweeping works");
    expect_after(thread, last, Some(0)).await;
    thread.commit(&adds(vec![says(5, "five")]), at(EIGHT_DAYS)).await;
    expect_after(thread, last, None).await;
    expect_after(thread, last.number.into(), Some(1)).await;
}

/// Reads how many changes follow a position; `None` for a reset.
async fn expect_after(thread: &Conversation, after: Tagged, expected: Option<usize>) {
    let (client, now) = (&thread.client, at(EIGHT_DAYS));
    let listed = thread.changes(after, now).await;
    let followed = client.list_changes_with_messages(&ana(), thread.id, after, 10, now).await;
    assert_eq!(followed.expect("reading works").page, listed, "after {after}");
    let (count, stands) = match listed {
        ChangePage::Reset { positions } => (None, positions),
        ChangePage::Changes { changes, positions } => (Some(changes.len()), positions),
    };
    assert_eq!((count, stands), (expected, thread.thread(now).await.positions), "after {after}");
}

pub(super) async fn a_lost_commit_is_made_again_by_its_key(stage: &Stage<'_>) {
    let play = Play::begin(stage).await;
    let lost = batch_of(2, "lost");
    play.replicate().await;
    let first = play.conversation.commit(&lost, at(3)).await;
    play.store.fail_over();
    let again = play.conversation.commit(&lost, at(4)).await;
    assert_eq!(again.tagged(), first.tagged(), "the same commit at the same place");
    assert!(!again.replayed || stage.is_weak(), "what was lost is no replay");
    let repeated = play.conversation.commit(&lost, at(5)).await;
    assert_eq!((repeated.replayed, repeated.tagged()), (true, first.tagged()));
    assert_eq!(play.conversation.texts(at(6)).await, ["message 1", "lost"]);
    // Nobody has seen anything else at this number, so everybody goes on.
    let changes = play.conversation.changes(first.tagged(), at(6)).await;
    assert!(matches!(changes, ChangePage::Changes { changes, .. } if changes.is_empty()));
}

pub(super) async fn what_has_no_tag_is_compared_by_its_number(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let made = conversation.commit(&drives("one"), at(1)).await.tagged();
    let bare = Tagged::from(made.number);
    let by_number = Batch { expected: Some(Expected::Change(bare)), ..requires(RecordName::driver(), bare, "bare") };
    assert_eq!(conversation.commit(&by_number, at(2)).await.change, 2);
    // A thread and a record as they were written before there were tags.
    let mut dump = conversation.dump(1000).await.remove(0);
    dump.thread.as_mut().expect("the first chunk").positions.tag = None;
    dump.records.iter_mut().for_each(|record| record.tag = None);
    subject.client.delete_thread(&ana(), conversation.id, at(3)).await.expect("the thread is there");
    subject.client.restore_thread(ana().tenant_id(), conversation.id, &dump).await.expect("the thread restores");
    assert_eq!(conversation.dump(1000).await, [dump]);
    let tag = Some(ChangeTag::from_stored(7));
    let (thread_at, driver_at) = (Tagged { number: 2, tag }, Tagged { number: 1, tag });
    let nothing = conversation.changes(thread_at, at(4)).await;
    assert!(matches!(nothing, ChangePage::Changes { changes, .. } if changes.is_empty()), "the thread has no tag");
    let by_number = requires(RecordName::driver(), driver_at, "tagged");
    let by_number = Batch { expected: Some(Expected::Change(thread_at)), append: vec![says(8, "eight")], ..by_number };
    let outcome = conversation.commit(&by_number, at(5)).await;
    assert_eq!(outcome.tag, tag_of(&by_number));
    assert_eq!(conversation.thread(at(6)).await.positions.tagged(), outcome.tagged());
}

pub(super) async fn tags_move_with_their_thread(stage: &Stage<'_>) {
    let (from, to) = (stage.open().await, stage.open().await);
    let source = Conversation::open(&from.client, &ana(), 1, at(0)).await;
    source.commit(&drives("one"), at(1)).await;
    let last = source.commit(&adds(vec![says(1, "one")]), at(2)).await;
    let dump = source.dump(1000).await.remove(0);
    to.client.restore_thread(ana().tenant_id(), source.id, &dump).await.expect("the thread restores");
    let target = Conversation { client: to.client.clone(), ..source.clone() };
    assert_eq!(target.thread(at(3)).await.positions, source.thread(at(3)).await.positions);
    assert_eq!(target.thread(at(3)).await.positions.tagged(), last.tagged());
    assert_eq!(target.dump(1000).await, source.dump(1000).await);
    assert_eq!(target.changes(0, at(3)).await, source.changes(0, at(3)).await);
}
