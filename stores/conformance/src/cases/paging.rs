use threadkeep_core::{Bound, Content, MessageQuery, MessageRef, RangeEnd, Role, StoreError, limits};

use crate::conversation::{Conversation, oldest};
use crate::fixtures::{ana, appending, assert_error, at, batch, message_id, message_with, user_message};
use crate::run::TestEnv;

/// Appends twenty messages, one per second. Every fourth message is from a tool; the other messages with even numbers are
/// from the assistant.
async fn twenty_messages(env: &TestEnv<'_>) -> (crate::run::TestStore, Conversation) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let role = |number| match number % 4 {
        0 => Role::Tool,
        2 => Role::Assistant,
        _ => Role::User,
    };
    let messages =
        (1..=20).map(|number| message_with(number, Content::text(role(number), format!("message {number}"))));
    conversation.commit(&appending(messages.collect()), at(30)).await;
    (store, conversation)
}

// S0.11
pub(super) async fn newest_messages_are_listed_in_ascending_order(env: &TestEnv<'_>) {
    let (_store, conversation) = twenty_messages(env).await;
    let page = conversation.page(&MessageQuery::newest(6), at(31)).await;
    let seqs: Vec<_> = page.messages.iter().map(|message| message.seq).collect();
    assert_eq!((seqs, page.more), ((15..=20).collect(), true));
    assert_eq!((page.positions.seq, page.positions.change, page.positions.first_seq), (20, 1, 1));
    for (limit, more) in [(20, false), (19, true), (21, false), (1000, false)] {
        let page = conversation.page(&MessageQuery::newest(limit), at(31)).await;
        assert_eq!((page.messages.len(), page.more), (limit.min(20), more));
    }
}

pub(super) async fn oldest_messages_can_be_listed(env: &TestEnv<'_>) {
    let (_store, conversation) = twenty_messages(env).await;
    assert_eq!(conversation.seqs(&oldest(3), at(31)).await, [1, 2, 3]);
    assert!(conversation.page(&oldest(19), at(31)).await.more);
    assert!(!conversation.page(&oldest(20), at(31)).await.more);
    assert_eq!(conversation.seqs(&MessageQuery::following(18, 5), at(31)).await, [19, 20]);
}

// S1.03, S1.15, S1.16
pub(super) async fn bounds_are_exclusive(env: &TestEnv<'_>) {
    let (_store, conversation) = twenty_messages(env).await;
    let cases = [
        (Some(Bound::Seq(5)), Some(Bound::Seq(9)), 10, vec![6, 7, 8]),
        (None, Some(Bound::Seq(4)), 2, vec![2, 3]),
        (Some(Bound::Seq(17)), None, 2, vec![19, 20]),
        (Some(Bound::Time(at(5))), Some(Bound::Time(at(9))), 10, vec![6, 7, 8]),
        (None, Some(Bound::Time(at(4))), 2, vec![2, 3]),
        (Some(Bound::Time(at(5).plus_ms(-1))), Some(Bound::Time(at(7).plus_ms(1))), 10, vec![5, 6, 7]),
        (Some(Bound::Time(at(5))), Some(Bound::Seq(8)), 10, vec![6, 7]),
        (Some(Bound::Seq(8)), Some(Bound::Seq(9)), 10, vec![]),
        (Some(Bound::Seq(9)), Some(Bound::Seq(5)), 10, vec![]),
        (Some(Bound::Seq(20)), None, 10, vec![]),
        (None, Some(Bound::Seq(0)), 10, vec![]),
    ];
    for (after, before, limit, expected) in cases {
        let query = MessageQuery { before, after, ..MessageQuery::newest(limit) };
        assert_eq!(conversation.seqs(&query, at(31)).await, expected, "{query:?}");
    }
    let query = MessageQuery { after: Some(Bound::Seq(5)), before: Some(Bound::Seq(15)), ..oldest(3) };
    assert_eq!(conversation.seqs(&query, at(31)).await, [6, 7, 8]);
}

// S1.42
pub(super) async fn pages_are_filtered_by_role(env: &TestEnv<'_>) {
    let (_store, conversation) = twenty_messages(env).await;
    let with_roles = |roles: &[Role], query| MessageQuery { roles: roles.to_vec(), ..query };
    let query = with_roles(&[Role::Tool], MessageQuery::newest(3));
    assert_eq!(conversation.seqs(&query, at(31)).await, [12, 16, 20]);
    assert!(conversation.page(&query, at(31)).await.more);
    let query = with_roles(&[Role::Tool, Role::Assistant], oldest(4));
    assert_eq!(conversation.seqs(&query, at(31)).await, [2, 4, 6, 8]);
    let query = with_roles(&[Role::Tool], MessageQuery::newest(5));
    assert!(!conversation.page(&query, at(31)).await.more, "messages of other roles count as more");
    assert_eq!(conversation.seqs(&with_roles(&[Role::System], MessageQuery::newest(5)), at(31)).await, [] as [u64; 0]);
    assert_eq!(conversation.seqs(&with_roles(&Role::ALL, MessageQuery::newest(2)), at(31)).await, [19, 20]);
}

pub(super) async fn pages_are_stable_during_appends(env: &TestEnv<'_>) {
    let (_store, conversation) = twenty_messages(env).await;
    let mut backwards = Vec::new();
    let mut before = None;
    for number in 21.. {
        let query = MessageQuery { before, ..MessageQuery::newest(7) };
        let page = conversation.page(&query, at(31)).await;
        assert!(number < 30, "paging does not terminate");
        before = page.messages.first().map(|message| Bound::Seq(message.seq));
        backwards.splice(0..0, page.messages.iter().map(|message| message.seq));
        if !page.more {
            break;
        }
        conversation.append(number..=number, at(31)).await;
    }
    assert_eq!(backwards, (1..=20).collect::<Vec<_>>());

    let mut forwards = Vec::new();
    loop {
        let after = forwards.last().copied().unwrap_or(0);
        let page = conversation.page(&MessageQuery::following(after, 7), at(31)).await;
        assert!(page.messages.first().is_some_and(|message| message.seq > after), "pages overlap");
        forwards.extend(page.messages.iter().map(|message| message.seq));
        if !page.more {
            break;
        }
    }
    assert_eq!(forwards, (1..=22).collect::<Vec<_>>());
}

pub(super) async fn gaps_do_not_shorten_pages(env: &TestEnv<'_>) {
    let (_store, conversation) = twenty_messages(env).await;
    let erased = (6..=15).map(message_id).collect();
    conversation.commit(&threadkeep_core::Batch { erase: erased, ..batch("erase") }, at(31)).await;
    assert_eq!(conversation.seqs(&MessageQuery::newest(7), at(32)).await, [4, 5, 16, 17, 18, 19, 20]);
    assert_eq!(conversation.seqs(&oldest(7), at(32)).await, [1, 2, 3, 4, 5, 16, 17]);
    assert!(!conversation.page(&oldest(10), at(32)).await.more);
}

pub(super) async fn an_empty_thread_has_an_empty_page(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    for take in [RangeEnd::Newest, RangeEnd::Oldest] {
        let page = conversation.page(&MessageQuery { take, ..MessageQuery::newest(5) }, at(1)).await;
        assert_eq!((page.messages, page.corrupt, page.more), (Vec::new(), Vec::new(), false));
        assert_eq!(page.positions, threadkeep_core::Positions::BEGINNING);
    }
}

pub(super) async fn pages_are_limited_by_bytes(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let long = "x".repeat(limits::PAGE_BYTES / 4 - 1000);
    for number in 1..=7 {
        conversation.commit(&appending(vec![user_message(number, &long)]), at(1)).await;
    }
    // The fifth message reaches the limit.
    for (query, expected) in [(oldest(7), [1, 2, 3, 4, 5]), (MessageQuery::newest(7), [3, 4, 5, 6, 7])] {
        let page = conversation.page(&query, at(2)).await;
        assert_eq!(page.messages.iter().map(|message| message.seq).collect::<Vec<_>>(), expected);
        assert!(page.more);
    }
    assert_eq!(conversation.messages(at(2)).await.len(), 7);
}

pub(super) async fn messages_are_found_by_reference(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let with_external_id =
        threadkeep_core::NewMessage { external_id: Some("x3".to_owned()), ..user_message(3, "three") };
    conversation
        .commit(
            &appending(vec![user_message(1, "one"), user_message(2, "two"), with_external_id, user_message(4, "four")]),
            at(5),
        )
        .await;
    let find = async |references: Vec<MessageRef>| {
        let found = conversation.client.find_messages(&conversation.scope, conversation.id, &references, at(6)).await;
        found.map(|messages| messages.iter().map(|message| message.seq).collect::<Vec<_>>())
    };
    let references = vec![
        MessageRef::Id(message_id(4)),
        MessageRef::External("x3".to_owned()),
        MessageRef::Seq(1),
        MessageRef::Seq(9),
        MessageRef::Id(message_id(9)),
        MessageRef::External("x9".to_owned()),
    ];
    assert_eq!(find(references).await.expect("reading works"), [1, 3, 4]);
    // A message that is referenced several times is returned once.
    let references = vec![MessageRef::Seq(3), MessageRef::Id(message_id(3)), MessageRef::External("x3".to_owned())];
    assert_eq!(find(references.clone()).await.expect("reading works"), [3]);
    assert_eq!(find(Vec::new()).await.expect("reading works"), [] as [u64; 0]);
    let erase = threadkeep_core::Batch { erase: vec![message_id(3)], ..batch("erase") };
    conversation.commit(&erase, at(6)).await;
    assert_eq!(find(references).await.expect("reading works"), [] as [u64; 0]);
    assert_error!(find(vec![MessageRef::Seq(1); 1001]).await, StoreError::LimitExceeded { max: 1000, .. });
    assert_eq!(find(vec![MessageRef::Seq(1); 1000]).await.expect("reading works"), [1]);
}
