use threadkeep_core::{
    Batch, Conflict, Content, DumpEntry, Kind, Message, NewMessage, Positions, Replacement, Role, StoreError,
};

use crate::conversation::Conversation;
use crate::fixtures::{ana, appending, assert_error, at, batch, conflict_of, message_id, user_message};
use crate::run::TestEnv;

/// Creates a thread with five messages.
async fn five_messages(env: &TestEnv<'_>) -> (crate::run::TestStore, Conversation) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    conversation.append(1..=5, at(10)).await;
    (store, conversation)
}

fn replacing(key: &str, number: u128, content: Content) -> Batch {
    Batch { replace: vec![Replacement { id: message_id(number), content }], ..batch(key) }
}

fn erasing(key: &str, numbers: &[u128]) -> Batch {
    Batch { erase: numbers.iter().map(|number| message_id(*number)).collect(), ..batch(key) }
}

/// Returns the last position, the change and the first position of a thread.
fn numbers(positions: Positions) -> (u64, u64, u64) {
    (positions.seq, positions.change, positions.first_seq)
}

pub(super) async fn replacing_keeps_the_position(env: &TestEnv<'_>) {
    let (_store, conversation) = five_messages(env).await;
    let before = conversation.messages(at(11)).await;
    let content = Content { author: Some("Ana".to_owned()), ..Content::text(Role::Assistant, "edited") };
    let outcome = conversation.commit(&replacing("r1", 2, content.clone()), at(11)).await;
    assert_eq!((outcome.change, outcome.first_seq, outcome.count), (2, 6, 0));
    let after = conversation.messages(at(12)).await;
    assert_eq!(after[1], Message { revision: 1, content, ..before[1].clone() });
    assert_eq!((&after[0], &after[2..]), (&before[0], &before[2..]));

    conversation.commit(&replacing("r2", 2, Content::empty(Role::User)), at(13)).await;
    let again = &conversation.messages(at(14)).await[1];
    assert_eq!((again.revision, &again.content), (2, &Content::empty(Role::User)));
    let thread = conversation.thread(at(14)).await;
    assert_eq!((thread.message_count, numbers(thread.positions)), (5, (5, 3, 1)));
}

pub(super) async fn missing_messages_cannot_be_edited(env: &TestEnv<'_>) {
    let (_store, conversation) = five_messages(env).await;
    conversation.commit(&erasing("e", &[2]), at(11)).await;
    conversation.commit(&Batch { trim_below: Some(2), ..batch("t") }, at(12)).await;
    for number in [1, 2, 9] {
        let replaced = conversation.try_commit(&replacing("r", number, Content::empty(Role::User)), at(13)).await;
        assert_error!(replaced, StoreError::NotFound(Kind::Message));
        assert_error!(
            conversation.try_commit(&erasing("e2", &[number]), at(13)).await,
            StoreError::NotFound(Kind::Message)
        );
    }
    assert_eq!(conversation.thread(at(14)).await.positions.change, 3);
}

pub(super) async fn erasing_leaves_only_a_tombstone(env: &TestEnv<'_>) {
    let (_store, conversation) = five_messages(env).await;
    conversation.commit(&erasing("e", &[2, 5]), at(11)).await;
    assert_eq!(conversation.texts(at(12)).await, ["message 1", "message 3", "message 4"]);
    let thread = conversation.thread(at(12)).await;
    assert_eq!((thread.message_count, numbers(thread.positions)), (3, (5, 2, 1)));
    let entries = conversation.entries().await;
    assert_eq!(entries[1], DumpEntry::Tombstone { seq: 2, id: message_id(2), erased_at: at(11) });
    assert_eq!(entries[4], DumpEntry::Tombstone { seq: 5, id: message_id(5), erased_at: at(11) });
    assert_eq!(entries.len(), 5);

    let again = conversation.try_commit(&appending(vec![user_message(5, "five again")]), at(13)).await;
    assert_eq!(conflict_of(again), Conflict::MessageId { id: message_id(5), seq: 5 });
    assert_eq!(conversation.append(6..=6, at(13)).await.first_seq, 6, "an erased position was reused");
}

pub(super) async fn trimming_leaves_no_tombstones(env: &TestEnv<'_>) {
    let (_store, conversation) = five_messages(env).await;
    conversation.commit(&erasing("e", &[2]), at(11)).await;
    conversation.commit(&Batch { trim_below: Some(4), ..batch("t") }, at(12)).await;
    assert_eq!(conversation.texts(at(13)).await, ["message 4", "message 5"]);
    let thread = conversation.thread(at(13)).await;
    assert_eq!((thread.message_count, numbers(thread.positions)), (2, (5, 3, 4)));
    assert_eq!(conversation.entries().await.iter().map(DumpEntry::seq).collect::<Vec<_>>(), [4, 5]);
    // Trimmed ids can be used again, including those of erased messages.
    let outcome = conversation.append(1..=3, at(14)).await;
    assert_eq!((outcome.first_seq, outcome.count), (6, 3));
}

pub(super) async fn trimming_may_leave_an_empty_thread(env: &TestEnv<'_>) {
    let (_store, conversation) = five_messages(env).await;
    conversation.commit(&Batch { trim_below: Some(6), ..batch("t") }, at(11)).await;
    let thread = conversation.thread(at(12)).await;
    assert_eq!((thread.message_count, numbers(thread.positions)), (0, (5, 2, 6)));
    assert_eq!(conversation.messages(at(12)).await, []);
    assert_eq!(conversation.entries().await, []);
    assert_eq!(conversation.append(6..=6, at(13)).await.first_seq, 6);
}

pub(super) async fn trimming_below_the_first_position_removes_nothing(env: &TestEnv<'_>) {
    let (_store, conversation) = five_messages(env).await;
    conversation.commit(&Batch { trim_below: Some(3), ..batch("t") }, at(11)).await;
    for (change, below) in (3..).zip([0, 1, 2, 3]) {
        let outcome =
            conversation.commit(&Batch { trim_below: Some(below), ..batch(&format!("t{below}")) }, at(12)).await;
        assert_eq!(outcome.change, change, "a trim that removes nothing is still a commit");
        let positions = conversation.thread(at(13)).await.positions;
        assert_eq!(numbers(positions), (5, change, 3));
    }
    let threadkeep_core::ChangePage::Changes { changes, .. } = conversation.changes(2, at(13)).await else {
        panic!("unexpected reset")
    };
    assert!(changes.len() == 4 && changes.iter().all(|change| change.effects.is_empty()), "{changes:?}");
}

pub(super) async fn trimming_applies_to_messages_of_the_same_batch(env: &TestEnv<'_>) {
    let (_store, conversation) = five_messages(env).await;
    let beyond = Batch { append: vec![user_message(6, "six")], trim_below: Some(8), ..batch("beyond") };
    assert_error!(conversation.try_commit(&beyond, at(11)).await, StoreError::Invalid { .. });
    let window = Batch {
        append: vec![user_message(6, "six"), user_message(7, "seven")],
        trim_below: Some(7),
        ..batch("window")
    };
    let outcome = conversation.commit(&window, at(12)).await;
    assert_eq!((outcome.first_seq, outcome.count), (6, 2));
    assert_eq!(conversation.texts(at(13)).await, ["seven"]);
    let all = Batch { append: vec![user_message(8, "eight")], trim_below: Some(9), ..batch("all") };
    conversation.commit(&all, at(14)).await;
    assert_eq!(conversation.texts(at(15)).await, Vec::<String>::new());
    assert_eq!(numbers(conversation.thread(at(15)).await.positions), (8, 3, 9));
}

pub(super) async fn ids_are_checked_against_the_state_before_the_batch(env: &TestEnv<'_>) {
    let (_store, conversation) = five_messages(env).await;
    let with_external_id = NewMessage { external_id: Some("x".to_owned()), ..user_message(6, "six") };
    conversation.commit(&appending(vec![with_external_id.clone()]), at(11)).await;
    // Ids are checked before the commit erases or trims messages.
    let batch_1 = Batch { append: vec![user_message(1, "one")], trim_below: Some(3), ..batch("a") };
    let taken = conflict_of(conversation.try_commit(&batch_1, at(12)).await);
    assert_eq!(taken, Conflict::MessageId { id: message_id(1), seq: 1 });
    let batch_2 = Batch { append: vec![NewMessage { id: message_id(7), ..with_external_id }], ..erasing("b", &[6]) };
    assert_eq!(conflict_of(conversation.try_commit(&batch_2, at(12)).await), Conflict::ExternalId { seq: 6 });
}
