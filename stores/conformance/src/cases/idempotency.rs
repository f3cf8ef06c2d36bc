use threadkeep_core::{
    Batch, CommitOutcome, Conflict, Expected, Fingerprint, IDEMPOTENCY_WINDOW_MS, IdempotencyKey, RecordCondition,
    RecordState,
};
use uuid::Uuid;

use crate::conversation::Conversation;
use crate::fixtures::{ana, app, at, batch, conflict_of, message_id, put, record_name, tag_of, user_message};
use crate::run::TestEnv;

/// Returns a batch of two messages and a record.
fn first() -> Batch {
    Batch {
        append: vec![user_message(1, "one"), user_message(2, "two")],
        put: vec![put(app("notes"), "note", "1")],
        ..batch("first")
    }
}

fn first_replayed() -> CommitOutcome {
    CommitOutcome { change: 1, tag: tag_of(&first()), first_seq: 1, count: 2, replayed: true }
}

pub(super) async fn repeated_commits_return_the_first_outcome(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let outcome = conversation.commit(&first(), at(1)).await;
    assert_eq!(CommitOutcome { replayed: true, ..outcome }, first_replayed());
    assert!(!outcome.replayed || env.has_faults(), "a first commit is not a replay");
    conversation.append(3..=5, at(2)).await;
    for second in 3..6 {
        assert_eq!(conversation.commit(&first(), at(second)).await, first_replayed());
    }
    let thread = conversation.thread(at(7)).await;
    assert_eq!((thread.positions.seq, thread.positions.change, thread.updated_at), (5, 2, at(2)));
    assert_eq!(conversation.texts(at(7)).await, ["one", "two", "message 3", "message 4", "message 5"]);
}

pub(super) async fn replays_survive_trimming_and_erasing(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    conversation.commit(&first(), at(1)).await;
    conversation.commit(&Batch { erase: vec![message_id(1)], ..batch("erase") }, at(2)).await;
    assert_eq!(conversation.commit(&first(), at(3)).await, first_replayed());
    conversation.commit(&Batch { trim_below: Some(3), ..batch("trim") }, at(4)).await;
    assert_eq!(conversation.commit(&first(), at(5)).await, first_replayed());
    assert_eq!(conversation.texts(at(6)).await, Vec::<String>::new());
    assert_eq!(conversation.thread(at(6)).await.positions.change, 3);
}

pub(super) async fn a_different_fingerprint_is_a_conflict(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    conversation.commit(&first(), at(1)).await;
    let other =
        Batch { fingerprint: Fingerprint::of(b"other"), append: vec![user_message(3, "three")], ..batch("first") };
    assert_eq!(conflict_of(conversation.try_commit(&other, at(2)).await), Conflict::IdempotencyKey);
    let empty = Batch { fingerprint: Fingerprint::of(b"other"), ..batch("first") };
    assert_eq!(conflict_of(conversation.try_commit(&empty, at(2)).await), Conflict::IdempotencyKey);
    assert_eq!(conversation.texts(at(3)).await, ["one", "two"]);
    assert_eq!(conversation.commit(&first(), at(3)).await, first_replayed());
}

pub(super) async fn replays_skip_preconditions(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let absent = RecordCondition { name: record_name(app("notes"), "note"), state: RecordState::Absent };
    let guarded = Batch { expected: Some(Expected::Seq(0)), require: vec![absent], ..first() };
    conversation.commit(&guarded, at(1)).await;
    // The preconditions no longer hold, and the ids already exist. The outcome is the same.
    assert_eq!(conversation.commit(&guarded, at(2)).await, first_replayed());
    let other_precondition = Batch { expected: Some(Expected::Change(0.into())), ..guarded };
    assert_eq!(conversation.commit(&other_precondition, at(2)).await, first_replayed());
}

pub(super) async fn outcomes_expire_after_the_window(env: &TestEnv<'_>) {
    for sweep in [false, true] {
        let store = env.open().await;
        let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
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
        // After the window, the batch is a new commit, and its message ids already exist.
        let taken = Conflict::MessageId { id: message_id(1), seq: 1 };
        assert_eq!(conflict_of(conversation.try_commit(&first(), beyond).await), taken, "swept: {sweep}");
        let other = Batch { append: vec![user_message(3, "three")], fingerprint: Fingerprint::of(b"other"), ..first() };
        let outcome = conversation.commit(&other, beyond).await;
        assert_eq!((outcome.change, outcome.first_seq, outcome.count), (2, 3, 1), "swept: {sweep}");
        // The key now belongs to the new commit.
        let replay = CommitOutcome { change: 2, tag: tag_of(&other), first_seq: 3, count: 1, replayed: true };
        assert_eq!(conversation.commit(&other, beyond.plus_ms(1)).await, replay, "swept: {sweep}");
        conversation.client.sweep(beyond.plus_ms(2)).await.expect("sweeping works");
        assert_eq!(conversation.commit(&other, beyond.plus_ms(3)).await, replay, "swept: {sweep}");
    }
}

pub(super) async fn keys_are_scoped_to_a_thread(env: &TestEnv<'_>) {
    let store = env.open().await;
    for number in 1..=3 {
        let conversation = Conversation::open(&store.client, &ana(), number, at(0)).await;
        let outcome = conversation.commit(&first(), at(1)).await;
        assert_eq!(CommitOutcome { replayed: true, ..outcome }, first_replayed());
        assert_eq!(conversation.texts(at(2)).await, ["one", "two"]);
    }
}

pub(super) async fn keys_from_callers_and_generated_keys_do_not_collide(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let uuid = Uuid::from_bytes(*b"sixteen letters.");
    let fingerprint = Fingerprint::of(b"the same");
    let keys = [IdempotencyKey::Generated(uuid), IdempotencyKey::FromCaller("sixteen letters.".to_owned())];
    for (number, key) in (1..).zip(keys) {
        let batch = Batch { append: vec![user_message(number, "hello")], ..Batch::new(key, fingerprint) };
        let outcome = conversation.commit(&batch, at(1)).await;
        assert_eq!(u128::from(outcome.change), number);
        assert_eq!(conversation.commit(&batch, at(2)).await, CommitOutcome { replayed: true, ..outcome });
    }
}
