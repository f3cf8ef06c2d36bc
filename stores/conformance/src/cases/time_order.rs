use threadkeep_core::{Bound, ChangePage, MessageQuery, NewMessage, OrderBy};

use crate::conversation::{Conversation, newest_by_time, oldest};
use crate::given::{adds, ana, at, says};
use crate::run::Stage;

/// Messages at these seconds, in the order of appending.
async fn said_at(stage: &Stage<'_>, seconds: &[i64]) -> (crate::run::Subject, Conversation) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let messages =
        (1..).zip(seconds).map(|(number, second)| NewMessage { created_at: at(*second), ..says(number, "hello") });
    conversation.commit(&adds(messages.collect()), at(99)).await;
    (subject, conversation)
}

// S1.14, S1.16
pub(super) async fn equal_instants_keep_the_order_of_appending(stage: &Stage<'_>) {
    let (_subject, conversation) = said_at(stage, &[5, 3, 5, 3, 5, 1, 3]).await;
    assert_eq!(conversation.seqs(&newest_by_time(10), at(100)).await, [6, 2, 4, 7, 1, 3, 5]);
    assert_eq!(conversation.seqs(&newest_by_time(4), at(100)).await, [7, 1, 3, 5]);
    let query = MessageQuery { order: OrderBy::Time, ..oldest(3) };
    assert_eq!(conversation.seqs(&query, at(100)).await, [6, 2, 4]);
    assert!(conversation.page(&query, at(100)).await.more);
    assert!(!conversation.page(&newest_by_time(7), at(100)).await.more);
    // The order of positions is untouched by the instants.
    assert_eq!(conversation.seqs(&MessageQuery::newest(3), at(100)).await, [5, 6, 7]);
}

// S1.15
pub(super) async fn bounds_by_time_cut_both_orders(stage: &Stage<'_>) {
    let (_subject, conversation) = said_at(stage, &[5, 3, 5, 3, 5, 1, 3]).await;
    let bounded = |after, before, query| MessageQuery { after, before, ..query };
    let (after, before) = (Some(Bound::Time(at(1))), Some(Bound::Time(at(5))));
    assert_eq!(conversation.seqs(&bounded(after, before, newest_by_time(10)), at(100)).await, [2, 4, 7]);
    assert_eq!(conversation.seqs(&bounded(after, before, MessageQuery::newest(2)), at(100)).await, [4, 7]);
    assert_eq!(conversation.seqs(&bounded(Some(Bound::Time(at(3))), None, newest_by_time(2)), at(100)).await, [3, 5]);
    let query = bounded(Some(Bound::Seq(2)), Some(Bound::Seq(6)), newest_by_time(10));
    assert_eq!(conversation.seqs(&query, at(100)).await, [4, 3, 5]);
}

pub(super) async fn instants_keep_their_microseconds(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let instants = [
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01T00:00:00Z",
        "2026-11-21T08:30:00.000001Z",
        "2026-11-21T08:30:00.000002Z",
        "9999-12-30T22:00:00Z",
    ];
    let messages = (1..).zip(instants).map(|(number, instant)| {
        let created_at = instant.parse().expect("an instant");
        NewMessage { created_at, ..says(number, "hello") }
    });
    let mut messages: Vec<_> = messages.collect();
    messages.reverse();
    let committed_at = "2026-01-01T00:00:01.000003Z".parse().expect("an instant");
    conversation.commit(&adds(messages), committed_at).await;
    let ChangePage::Changes { changes, .. } = conversation.changes(0, at(2)).await else { panic!("a reset") };
    // A repeated request is found by it.
    assert_eq!(changes.iter().map(|change| change.at).collect::<Vec<_>>(), [committed_at]);
    let page = conversation.page(&newest_by_time(10), at(2)).await;
    let read: Vec<_> = page.messages.iter().map(|message| message.created_at.to_string()).collect();
    assert_eq!(read, instants);
    let between = MessageQuery { after: Some(Bound::Time(page.messages[3].created_at)), ..newest_by_time(10) };
    assert_eq!(conversation.seqs(&between, at(2)).await, [2, 1]);
}
