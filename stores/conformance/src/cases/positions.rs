use threadkeep_core::{Batch, Conflict, Expected, NewMessage, Tagged};

use crate::conversation::Conversation;
use crate::given::{adds, ana, at, batch, conflict_of, message_id, says};
use crate::run::Stage;

// S1.04
pub(super) async fn positions_grow_without_gaps(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let other = Conversation::open(&subject.client, &ana(), 2, at(0)).await;
    let mut next = 1;
    for (change, size) in (1..).zip([1, 3, 1, 20, 7]) {
        let outcome = conversation.say(next..=next + size - 1, at(1)).await;
        assert_eq!((u128::from(outcome.first_seq), u128::from(outcome.count), outcome.change), (next, size, change));
        next += size;
    }
    let messages = conversation.messages(at(2)).await;
    let placed: Vec<_> = messages.iter().map(|message| (message.seq, message.id)).collect();
    assert_eq!(placed, (1..=32).map(|seq| (seq, message_id(u128::from(seq)))).collect::<Vec<_>>());
    assert!(messages.iter().all(|message| message.revision == 0));
    assert_eq!(other.messages(at(2)).await, [], "what one thread gets, another one shows");
}

pub(super) async fn an_expected_seq_must_be_the_actual_one(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    conversation.say(1..=3, at(1)).await;
    for expected in [0, 2, 4, u64::MAX >> 12] {
        let batch = Batch { expected: Some(Expected::Seq(expected)), ..adds(vec![says(4, "four")]) };
        let conflict = conflict_of(conversation.try_commit(&batch, at(2)).await);
        assert_eq!(conflict, Conflict::Seq { expected, actual: 3 });
    }
    let batch = Batch { expected: Some(Expected::Seq(3)), ..adds(vec![says(4, "four")]) };
    assert_eq!(conversation.commit(&batch, at(2)).await.first_seq, 4);
}

pub(super) async fn an_expected_change_must_be_the_actual_one(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let tag = conversation.say(1..=3, at(1)).await.tag;
    for expected in [0, 2, 3] {
        let batch = Batch { expected: Some(Expected::Change(expected.into())), ..adds(vec![says(4, "four")]) };
        let conflict = conflict_of(conversation.try_commit(&batch, at(2)).await);
        assert_eq!(conflict, Conflict::Change { expected: expected.into(), actual: Tagged { number: 1, tag } });
    }
    let batch = Batch { expected: Some(Expected::Change(1.into())), ..adds(vec![says(4, "four")]) };
    assert_eq!(conversation.commit(&batch, at(2)).await.change, 2);
}

pub(super) async fn external_ids_are_unique_in_their_thread(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let called = |number, name: &str| NewMessage { external_id: Some(name.to_owned()), ..says(number, "hello") };
    for thread in 1..=2 {
        let conversation = Conversation::open(&subject.client, &ana(), thread, at(0)).await;
        conversation.commit(&adds(vec![says(1, "plain"), called(2, "a"), says(3, "plain")]), at(1)).await;
        let again = conversation.try_commit(&adds(vec![called(4, "a")]), at(2)).await;
        assert_eq!(conflict_of(again), Conflict::ExternalId { seq: 2 });
        // Letter case counts, and what is gone is free.
        conversation.commit(&adds(vec![called(4, "A")]), at(3)).await;
        conversation.commit(&Batch { erase: vec![message_id(2)], ..batch("erase") }, at(4)).await;
        assert_eq!(conversation.commit(&adds(vec![called(5, "a")]), at(5)).await.first_seq, 5);
    }
}

pub(super) async fn message_ids_are_unique_in_their_thread(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let other = Conversation::open(&subject.client, &ana(), 2, at(0)).await;
    conversation.say(1..=3, at(1)).await;
    let again = Batch { append: vec![says(4, "four"), says(2, "two")], ..batch("again") };
    let taken = Conflict::MessageId { id: message_id(2), seq: 2 };
    assert_eq!(conflict_of(conversation.try_commit(&again, at(2)).await), taken);
    other.say(2..=2, at(3)).await;
    assert_eq!(other.messages(at(4)).await[0].seq, 1, "ids are unique in one thread, not across threads");
}
