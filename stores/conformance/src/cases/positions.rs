use threadkeep_core::{Batch, Conflict, Expected, NewMessage, TaggedNumber};

use crate::conversation::Conversation;
use crate::fixtures::{ana, appending, at, batch, conflict_of, message_id, user_message};
use crate::run::TestEnv;

// S1.04
pub(super) async fn positions_increase_without_gaps(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let other = Conversation::open(&store.client, &ana(), 2, at(0)).await;
    let mut next = 1;
    for (change, size) in (1..).zip([1, 3, 1, 20, 7]) {
        let outcome = conversation.append(next..=next + size - 1, at(1)).await;
        assert_eq!((u128::from(outcome.first_seq), u128::from(outcome.count), outcome.change), (next, size, change));
        next += size;
    }
    let messages = conversation.messages(at(2)).await;
    let placed: Vec<_> = messages.iter().map(|message| (message.seq, message.id)).collect();
    assert_eq!(placed, (1..=32).map(|seq| (seq, message_id(u128::from(seq)))).collect::<Vec<_>>());
    assert!(messages.iter().all(|message| message.revision == 0));
    assert_eq!(other.messages(at(2)).await, [], "messages appear in another thread");
}

pub(super) async fn an_expected_seq_must_match(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    conversation.append(1..=3, at(1)).await;
    for expected in [0, 2, 4, u64::MAX >> 12] {
        let batch = Batch { expected: Some(Expected::Seq(expected)), ..appending(vec![user_message(4, "four")]) };
        let conflict = conflict_of(conversation.try_commit(&batch, at(2)).await);
        assert_eq!(conflict, Conflict::Seq { expected, actual: 3 });
    }
    let batch = Batch { expected: Some(Expected::Seq(3)), ..appending(vec![user_message(4, "four")]) };
    assert_eq!(conversation.commit(&batch, at(2)).await.first_seq, 4);
}

pub(super) async fn an_expected_change_must_match(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let tag = conversation.append(1..=3, at(1)).await.tag;
    for expected in [0, 2, 3] {
        let batch =
            Batch { expected: Some(Expected::Change(expected.into())), ..appending(vec![user_message(4, "four")]) };
        let conflict = conflict_of(conversation.try_commit(&batch, at(2)).await);
        assert_eq!(conflict, Conflict::Change { expected: expected.into(), actual: TaggedNumber { number: 1, tag } });
    }
    let batch = Batch { expected: Some(Expected::Change(1.into())), ..appending(vec![user_message(4, "four")]) };
    assert_eq!(conversation.commit(&batch, at(2)).await.change, 2);
}

pub(super) async fn external_ids_are_unique_in_a_thread(env: &TestEnv<'_>) {
    let store = env.open().await;
    let with_external_id =
        |number, name: &str| NewMessage { external_id: Some(name.to_owned()), ..user_message(number, "hello") };
    for thread in 1..=2 {
        let conversation = Conversation::open(&store.client, &ana(), thread, at(0)).await;
        conversation
            .commit(
                &appending(vec![user_message(1, "plain"), with_external_id(2, "a"), user_message(3, "plain")]),
                at(1),
            )
            .await;
        let again = conversation.try_commit(&appending(vec![with_external_id(4, "a")]), at(2)).await;
        assert_eq!(conflict_of(again), Conflict::ExternalId { seq: 2 });
        // External ids are case-sensitive, and the external id of an erased message can be used again.
        conversation.commit(&appending(vec![with_external_id(4, "A")]), at(3)).await;
        conversation.commit(&Batch { erase: vec![message_id(2)], ..batch("erase") }, at(4)).await;
        assert_eq!(conversation.commit(&appending(vec![with_external_id(5, "a")]), at(5)).await.first_seq, 5);
    }
}

pub(super) async fn message_ids_are_unique_in_a_thread(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let other = Conversation::open(&store.client, &ana(), 2, at(0)).await;
    conversation.append(1..=3, at(1)).await;
    let again = Batch { append: vec![user_message(4, "four"), user_message(2, "two")], ..batch("again") };
    let taken = Conflict::MessageId { id: message_id(2), seq: 2 };
    assert_eq!(conflict_of(conversation.try_commit(&again, at(2)).await), taken);
    other.append(2..=2, at(3)).await;
    assert_eq!(other.messages(at(4)).await[0].seq, 1, "ids must be unique only within a thread");
}
