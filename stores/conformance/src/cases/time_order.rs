use threadkeep_core::{Bound, ChangePage, MessageQuery, NewMessage, OrderBy};

use crate::conversation::{Conversation, newest_by_time, oldest};
use crate::fixtures::{ana, appending, at, user_message};
use crate::run::TestEnv;

/// Appends messages with the given timestamps, in the given order.
async fn messages_at(env: &TestEnv<'_>, seconds: &[i64]) -> (crate::run::TestStore, Conversation) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let messages = (1..)
        .zip(seconds)
        .map(|(number, second)| NewMessage { created_at: at(*second), ..user_message(number, "hello") });
    conversation.commit(&appending(messages.collect()), at(99)).await;
    (store, conversation)
}

// S1.14, S1.16
pub(super) async fn equal_timestamps_keep_append_order(env: &TestEnv<'_>) {
    let (_store, conversation) = messages_at(env, &[5, 3, 5, 3, 5, 1, 3]).await;
    assert_eq!(conversation.seqs(&newest_by_time(10), at(100)).await, [6, 2, 4, 7, 1, 3, 5]);
    assert_eq!(conversation.seqs(&newest_by_time(4), at(100)).await, [7, 1, 3, 5]);
    let query = MessageQuery { order: OrderBy::Time, ..oldest(3) };
    assert_eq!(conversation.seqs(&query, at(100)).await, [6, 2, 4]);
    assert!(conversation.page(&query, at(100)).await.more);
    assert!(!conversation.page(&newest_by_time(7), at(100)).await.more);
    // Timestamps do not affect the order by position.
    assert_eq!(conversation.seqs(&MessageQuery::newest(3), at(100)).await, [5, 6, 7]);
}

// S1.15
pub(super) async fn time_bounds_apply_to_both_orders(env: &TestEnv<'_>) {
    let (_store, conversation) = messages_at(env, &[5, 3, 5, 3, 5, 1, 3]).await;
    let bounded = |after, before, query| MessageQuery { after, before, ..query };
    let (after, before) = (Some(Bound::Time(at(1))), Some(Bound::Time(at(5))));
    assert_eq!(conversation.seqs(&bounded(after, before, newest_by_time(10)), at(100)).await, [2, 4, 7]);
    assert_eq!(conversation.seqs(&bounded(after, before, MessageQuery::newest(2)), at(100)).await, [4, 7]);
    assert_eq!(conversation.seqs(&bounded(Some(Bound::Time(at(3))), None, newest_by_time(2)), at(100)).await, [3, 5]);
    let query = bounded(Some(Bound::Seq(2)), Some(Bound::Seq(6)), newest_by_time(10));
    assert_eq!(conversation.seqs(&query, at(100)).await, [4, 3, 5]);
}

pub(super) async fn timestamps_keep_microseconds(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let timestamps = [
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01T00:00:00Z",
        "2026-11-21T08:30:00.000001Z",
        "2026-11-21T08:30:00.000002Z",
        "9999-12-30T22:00:00Z",
    ];
    let messages = (1..).zip(timestamps).map(|(number, timestamp)| {
        let created_at = timestamp.parse().expect("a timestamp");
        NewMessage { created_at, ..user_message(number, "hello") }
    });
    let mut messages: Vec<_> = messages.collect();
    messages.reverse();
    let committed_at = "2026-01-01T00:00:01.000003Z".parse().expect("a timestamp");
    conversation.commit(&appending(messages), committed_at).await;
    let ChangePage::Changes { changes, .. } = conversation.changes(0, at(2)).await else { panic!("unexpected reset") };
    // Repeated requests are looked up by this timestamp.
    assert_eq!(changes.iter().map(|change| change.at).collect::<Vec<_>>(), [committed_at]);
    let page = conversation.page(&newest_by_time(10), at(2)).await;
    let read: Vec<_> = page.messages.iter().map(|message| message.created_at.to_string()).collect();
    assert_eq!(read, timestamps);
    let between = MessageQuery { after: Some(Bound::Time(page.messages[3].created_at)), ..newest_by_time(10) };
    assert_eq!(conversation.seqs(&between, at(2)).await, [2, 1]);
}
