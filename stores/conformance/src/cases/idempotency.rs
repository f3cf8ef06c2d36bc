use threadkeep_core::{
    Batch, CommitOutcome, Conflict, Expected, Fingerprint, IDEMPOTENCY_WINDOW_MS, IdempotencyKey, RecordCondition,
    RecordState,
};
use uuid::Uuid;

use crate::conversation::Conversation;
use crate::given::{ana, app, at, batch, conflict_of, message_id, named, put, says, tag_of};
use crate::run::Stage;

/// The first commit: two messages and a record.
fn first() -> Batch {
    Batch { append: vec![says(1, "one"), says(2, "two")], put: vec![put(app("notes"), "note", "1")], ..batch("first") }
}

fn first_replayed() -> CommitOutcome {
    CommitOutcome { change: 1, tag: tag_of(&first()), first_seq: 1, count: 2, replayed: true }
}

pub(super) async fn repeating_answers_the_same(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let outcome = conversation.commit(&first(), at(1)).await;
    assert_eq!(CommitOutcome { replayed: true, ..outcome }, first_replayed());
    assert!(!outcome.replayed || stage.is_weak(), "a first commit is no replay");
    conversation.say(3..=5, at(2)).await;
    for second in 3..6 {
        assert_eq!(conversation.commit(&first(), at(second)).await, first_replayed());
    }
    let thread = conversation.thread(at(7)).await;
    assert_eq!((thread.positions.seq, thread.positions.change, thread.updated_at), (5, 2, at(2)));
    assert_eq!(conversation.texts(at(7)).await, ["one", "two", "message 3", "message 4", "message 5"]);
}

pub(super) async fn replays_survive_trimming_and_erasing(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    conversation.commit(&first(), at(1)).await;
    conversation.commit(&Batch { erase: vec![message_id(1)], ..batch("erase") }, at(2)).await;
    assert_eq!(conversation.commit(&first(), at(3)).await, first_replayed());
    conversation.commit(&Batch { trim_below: Some(3), ..batch("trim") }, at(4)).await;
    assert_eq!(conversation.commit(&first(), at(5)).await, first_replayed());
    assert_eq!(conversation.texts(at(6)).await, Vec::<String>::new());
    assert_eq!(conversation.thread(at(6)).await.positions.change, 3);
}

pub(super) async fn another_fingerprint_is_a_conflict(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    conversation.commit(&first(), at(1)).await;
    let other = Batch { fingerprint: Fingerprint::of(b"other"), append: vec![says(3, "three")], ..batch("first") };
    assert_eq!(conflict_of(conversation.try_commit(&other, at(2)).await), Conflict::IdempotencyKey);
    let empty = Batch { fingerprint: Fingerprint::of(b"other"), ..batch("first") };
    assert_eq!(conflict_of(conversation.try_commit(&empty, at(2)).await), Conflict::IdempotencyKey);
    assert_eq!(conversation.texts(at(3)).await, ["one", "two"]);
    assert_eq!(conversation.commit(&first(), at(3)).await, first_replayed());
}

pub(super) async fn replays_come_before_preconditions(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let absent = RecordCondition { name: named(app("notes"), "note"), state: RecordState::Absent };
    let guarded = Batch { expected: Some(Expected::Seq(0)), require: vec![absent], ..first() };
    conversation.commit(&guarded, at(1)).await;
    // Neither the position nor the record nor the ids are as they were, and the answer is the same.
    assert_eq!(conversation.commit(&guarded, at(2)).await, first_replayed());
    let elsewhere = Batch { expected: Some(Expected::Change(0.into())), ..guarded };
    assert_eq!(conversation.commit(&elsewhere, at(2)).await, first_replayed());
}

pub(super) async fn records_end_with_the_window(stage: &Stage<'_>) {
    for sweep in [false, true] {
        let subject = stage.open().await;
        let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
        conversation.commit(&first(), at(1)).await;
        let inside = at(1).plus_ms(IDEMPOTENCY_WINDOW_MS - 1);
        let beyond = at(1).plus_ms(IDEMPOTENCY_WINDOW_MS + 1);
        if sweep {
            conversation.client.sweep(inside).await.expect("sweeping works");
        }
        assert_eq!(conversation.commit(&first(), inside).await, first_replayed());
        if sweep {
            conversation.client.sweep(beyond).await.expect("sweeping works");
        }
        // Now it is a commit of its own, whose ids are taken.
        let taken = Conflict::MessageId { id: message_id(1), seq: 1 };
        assert_eq!(conflict_of(conversation.try_commit(&first(), beyond).await), taken, "swept: {sweep}");
        let other = Batch { append: vec![says(3, "three")], fingerprint: Fingerprint::of(b"other"), ..first() };
        let outcome = conversation.commit(&other, beyond).await;
        assert_eq!((outcome.change, outcome.first_seq, outcome.count), (2, 3, 1), "swept: {sweep}");
        // The key stands for the new commit from here on.
        let replay = CommitOutcome { change: 2, tag: tag_of(&other), first_seq: 3, count: 1, replayed: true };
        assert_eq!(conversation.commit(&other, beyond.plus_ms(1)).await, replay, "swept: {sweep}");
        conversation.client.sweep(beyond.plus_ms(2)).await.expect("sweeping works");
        assert_eq!(conversation.commit(&other, beyond.plus_ms(3)).await, replay, "swept: {sweep}");
    }
}

pub(super) async fn keys_belong_to_one_thread(stage: &Stage<'_>) {
    let subject = stage.open().await;
    for number in 1..=3 {
        let conversation = Conversation::open(&subject.client, &ana(), number, at(0)).await;
        let outcome = conversation.commit(&first(), at(1)).await;
        assert_eq!(CommitOutcome { replayed: true, ..outcome }, first_replayed());
        assert_eq!(conversation.texts(at(2)).await, ["one", "two"]);
    }
}

pub(super) async fn given_and_minted_keys_differ(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let uuid = Uuid::from_bytes(*b"sixteen letters.");
    let fingerprint = Fingerprint::of(b"the same");
    let keys = [IdempotencyKey::Minted(uuid), IdempotencyKey::Given("sixteen letters.".to_owned())];
    for (number, key) in (1..).zip(keys) {
        let batch = Batch { append: vec![says(number, "hello")], ..Batch::new(key, fingerprint) };
        let outcome = conversation.commit(&batch, at(1)).await;
        assert_eq!(u128::from(outcome.change), number);
        assert_eq!(conversation.commit(&batch, at(2)).await, CommitOutcome { replayed: true, ..outcome });
    }
}
