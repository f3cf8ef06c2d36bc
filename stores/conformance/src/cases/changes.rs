use std::ops::Range;

use threadkeep_core::{
    Batch, Bound, Change, ChangePage, ChangedThread, Content, Effect, Message, MessageQuery, Owner, Positions,
    Replacement, Role, ThreadPatch, Timestamp, UserCursor, limits,
};

use crate::conversation::Conversation;
use crate::fixtures::{
    EIGHT_DAYS, acme, ana, app, at, batch, ben, message_id, put, record_name, tag_of, thread_id, user, user_id,
    user_message,
};
use crate::run::TestEnv;

pub(super) async fn each_effect_is_logged(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let name = record_name(app("notes"), "k");
    let content = Content::text(Role::User, "edited");
    let steps = [
        (
            Batch {
                append: vec![user_message(1, "one"), user_message(2, "two"), user_message(3, "three")],
                ..batch("append")
            },
            Effect::Appended { first_seq: 1, count: 3 },
        ),
        (
            Batch { replace: vec![Replacement { id: message_id(2), content }], ..batch("replace") },
            Effect::Replaced { seq: 2, id: message_id(2) },
        ),
        (Batch { erase: vec![message_id(3)], ..batch("erase") }, Effect::Erased { seq: 3, id: message_id(3) }),
        (Batch { trim_below: Some(2), ..batch("trim") }, Effect::Trimmed { first_seq: 2 }),
        (
            Batch { put: vec![put(app("notes"), "k", "1")], ..batch("put") },
            Effect::RecordPut { name: name.clone(), version: 5 },
        ),
        (Batch { delete: vec![name.clone()], ..batch("delete") }, Effect::RecordDeleted { name }),
        (
            Batch { patch: ThreadPatch { title: Some(None), ..ThreadPatch::default() }, ..batch("patch") },
            Effect::Patched,
        ),
    ];
    let mut expected = Vec::new();
    for (second, (batch, effect)) in (1..).zip(steps) {
        conversation.commit(&batch, at(second)).await;
        let change = u64::try_from(second).expect("a small number");
        expected.push(Change { change, tag: tag_of(&batch), at: at(second), effects: vec![effect] });
    }
    let positions = Positions { seq: 3, change: 7, first_seq: 2, tag: tag_of(&batch("patch")) };
    for after in 0..=7 {
        let changes = expected[after..].to_vec();
        let after = u64::try_from(after).expect("a small number");
        assert_eq!(conversation.changes(after, at(9)).await, ChangePage::Changes { changes, positions });
        for limit in 1..=8 {
            let page = store.client.list_changes(&ana(), conversation.id, after, limit, at(9)).await;
            let changes = expected.iter().filter(|change| change.change > after).take(limit).cloned().collect();
            assert_eq!(page.expect("reading works"), ChangePage::Changes { changes, positions });
        }
    }
    for after in [8, 100, u64::MAX >> 11] {
        assert_eq!(conversation.changes(after, at(9)).await, ChangePage::Reset { positions });
    }
}

/// Reads all changes and their appended messages as a subscriber does: page by page, followed by the messages that a
/// page omitted.
async fn read_changes(conversation: &Conversation, limit: usize, now: Timestamp) -> (Vec<Change>, Vec<Message>) {
    let (mut changes, mut messages): (Vec<Change>, Vec<Message>) = (Vec::new(), Vec::new());
    loop {
        let after = changes.last().map_or(0, |change| change.change);
        let client = &conversation.client;
        let read = client.list_changes_with_messages(&ana(), conversation.id, after, limit, now).await;
        let read = read.expect("reading works");
        let appended = read.page.appended_positions();
        let ChangePage::Changes { changes: page, positions } = read.page else { panic!("unexpected reset") };
        assert!(
            page.len() <= limit && (after == positions.change) == page.is_empty(),
            "a page is too long, or empty before the end"
        );
        changes.extend(page);
        let Range { start, end } = appended.unwrap_or(1..1);
        assert!(read.read_to < end, "messages beyond the listed changes were read");
        assert!(read.messages.iter().all(|message| message.seq >= start && message.seq <= read.read_to));
        messages.extend(read.messages);
        if read.read_to + 1 < end {
            let rest = MessageQuery::following(read.read_to.max(start - 1), limits::PAGE);
            let rest = conversation.page(&MessageQuery { before: Some(Bound::Seq(end)), ..rest }, now).await;
            messages.extend(rest.messages);
        }
        if changes.last().is_none_or(|last| last.change == positions.change) {
            return (changes, messages);
        }
    }
}

pub(super) async fn changes_are_returned_with_their_messages(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    assert_eq!(read_changes(&conversation, 5, at(0)).await, (Vec::new(), Vec::new()));
    let content = Content::text(Role::User, "edited");
    for (second, batch) in (1..).zip([
        Batch {
            append: vec![user_message(1, "one"), user_message(2, "two"), user_message(3, "three")],
            ..batch("first")
        },
        Batch { replace: vec![Replacement { id: message_id(2), content }], ..batch("replace") },
        Batch { append: vec![user_message(4, "four")], ..batch("second") },
        Batch { erase: vec![message_id(3)], ..batch("erase") },
        Batch { append: vec![user_message(5, "five"), user_message(6, "six")], ..batch("third") },
        Batch { put: vec![put(app("notes"), "k", "1")], ..batch("put") },
        Batch { trim_below: Some(2), append: vec![user_message(7, "seven")], ..batch("trim") },
    ]) {
        conversation.commit(&batch, at(second)).await;
    }
    let ChangePage::Changes { changes, .. } = conversation.changes(0, at(9)).await else { panic!("unexpected reset") };
    let messages = conversation.messages(at(9)).await;
    assert_eq!(messages.iter().map(|message| message.seq).collect::<Vec<_>>(), [2, 4, 5, 6, 7]);
    for limit in 1..=8 {
        assert_eq!(
            read_changes(&conversation, limit, at(9)).await,
            (changes.clone(), messages.clone()),
            "in pages of {limit}"
        );
    }
    // One page contains all changes.
    let read = store.client.list_changes_with_messages(&ana(), conversation.id, 2, 10, at(9)).await;
    let read = read.expect("reading works");
    assert_eq!((read.messages, read.corrupt, read.read_to), (messages[1..].to_vec(), Vec::new(), 7));
    let positions = Positions { seq: 7, change: 7, first_seq: 2, tag: tag_of(&batch("trim")) };
    let read = store.client.list_changes_with_messages(&ana(), conversation.id, 8, 10, at(9)).await;
    assert_eq!(read.expect("reading works").page, ChangePage::Reset { positions });
}

pub(super) async fn large_changes_are_returned_in_parts(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let long = "x".repeat(200_000);
    for number in 0..4 {
        let first = number * 300;
        let mut append: Vec<_> = (first..first + 300).map(|number| user_message(number, "short")).collect();
        append.push(user_message(10_000 + number, &long));
        conversation.commit(&Batch { append, ..batch(&number.to_string()) }, at(1)).await;
    }
    let ChangePage::Changes { changes, .. } = conversation.changes(0, at(2)).await else { panic!("unexpected reset") };
    let messages = conversation.messages(at(2)).await;
    assert_eq!((changes.len(), messages.len()), (4, 1_204));
    for limit in [1, 2, 100] {
        assert!(
            read_changes(&conversation, limit, at(2)).await == (changes.clone(), messages.clone()),
            "in pages of {limit}"
        );
    }
}

pub(super) async fn a_new_thread_has_no_changes(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let positions = Positions::BEGINNING;
    let nothing = ChangePage::Changes { changes: Vec::new(), positions };
    assert_eq!(conversation.changes(0, at(1)).await, nothing);
    assert_eq!(conversation.changes(1, at(1)).await, ChangePage::Reset { positions });
}

pub(super) async fn swept_changes_return_a_reset(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    for number in 1..=3 {
        conversation.append(number..=number, at(1)).await;
    }
    let tag = conversation.append(4..=4, at(EIGHT_DAYS)).await.tag;
    let later = at(EIGHT_DAYS + 1);
    store.client.sweep(later).await.expect("sweeping works");
    let positions = Positions { seq: 4, change: 4, first_seq: 1, tag };
    for after in 0..=2 {
        assert_eq!(conversation.changes(after, later).await, ChangePage::Reset { positions });
    }
    let ChangePage::Changes { changes, .. } = conversation.changes(3, later).await else { panic!("unexpected reset") };
    assert_eq!(changes.iter().map(|change| change.change).collect::<Vec<_>>(), [4]);

    let much_later = at(2 * EIGHT_DAYS + 2);
    store.client.sweep(much_later).await.expect("sweeping works");
    assert_eq!(conversation.changes(3, much_later).await, ChangePage::Reset { positions });
    let nothing = ChangePage::Changes { changes: Vec::new(), positions };
    assert_eq!(conversation.changes(4, much_later).await, nothing);
    assert_eq!(conversation.append(5..=5, much_later).await.change, 5);
    let ChangePage::Changes { changes, .. } = conversation.changes(4, much_later).await else {
        panic!("unexpected reset")
    };
    assert_eq!(changes.iter().map(|change| change.change).collect::<Vec<_>>(), [5]);
    assert_eq!(conversation.texts(much_later).await.len(), 5);
}

/// Lists the threads that changed after a cursor page by page. Also returns the last cursor.
async fn changed_after(
    client: &crate::client::Client,
    scope: &threadkeep_core::Scope,
    cursor: &UserCursor,
    limit: usize,
) -> (Vec<ChangedThread>, UserCursor) {
    let (mut all, mut cursor) = (Vec::new(), cursor.clone());
    loop {
        let page = client.list_changed_threads(scope, Some(&cursor), limit, at(50)).await.expect("reading works");
        assert!(!page.reset && page.threads.len() <= limit);
        assert!(page.threads.iter().all(|thread| !all.contains(thread)), "pages overlap");
        assert!(!page.more || !page.threads.is_empty(), "an empty page is not the last one");
        all.extend(page.threads);
        cursor = page.cursor;
        if !page.more {
            return (all, cursor);
        }
    }
}

pub(super) async fn changed_threads_are_listed_once_in_order(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let mut conversations = Vec::new();
    for number in 1..=5 {
        conversations.push(Conversation::open(client, &ana(), number, at(1)).await);
        conversations[usize::try_from(number).expect("a small number") - 1].append(1..=1, at(1)).await;
    }
    let now = client.list_changed_threads(&ana(), None, 10, at(2)).await.expect("reading works");
    assert_eq!((now.threads, now.more, now.reset), (Vec::new(), false, false));
    assert_eq!(changed_after(client, &ana(), &now.cursor, 10).await.0, []);

    let mut tags = [None; 5];
    for (number, index) in (2..).zip([3, 0, 3, 2, 0]) {
        tags[index] = conversations[index].append(number..=number, at(3)).await.tag;
    }
    client.delete_thread(&ana(), conversations[4].id, at(4)).await.expect("the thread exists");
    conversations[1].commit(&batch("empty"), at(5)).await;
    let owner = Owner::User(user_id("ana"));
    let changed = |number, seq, tag| ChangedThread {
        id: thread_id(number),
        owner: owner.clone(),
        positions: Some(Positions { seq, change: seq, first_seq: 1, tag }),
    };
    let deleted = ChangedThread { id: thread_id(5), owner: owner.clone(), positions: None };
    let expected = vec![changed(4, 3, tags[3]), changed(3, 2, tags[2]), changed(1, 3, tags[0]), deleted];
    for limit in [1, 2, 4, 10] {
        assert_eq!(changed_after(client, &ana(), &now.cursor, limit).await.0, expected, "in pages of {limit}");
    }
    assert_eq!(changed_after(client, &acme(), &now.cursor, 10).await.0, expected);
    let (_, cursor) = changed_after(client, &ana(), &now.cursor, 10).await;
    assert_eq!(changed_after(client, &ana(), &cursor, 10).await.0, []);
    let tag = conversations[1].append(9..=9, at(6)).await.tag;
    assert_eq!(changed_after(client, &ana(), &cursor, 10).await.0, [changed(2, 2, tag)]);
}

pub(super) async fn changed_threads_are_in_order_while_others_read(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let mut conversations = Vec::new();
    for number in 1..=20 {
        conversations.push(Conversation::open(client, &ana(), number, at(1)).await);
    }
    let cursor = client.list_changed_threads(&ana(), None, 10, at(2)).await.expect("reading works").cursor;
    let writing = async {
        for conversation in conversations.iter().rev() {
            conversation.append(1..=1, at(3)).await;
        }
    };
    let reading = async {
        loop {
            client.list_changed_threads(&ana(), Some(&cursor), 1, at(4)).await.expect("reading works");
            tokio::task::yield_now().await;
        }
    };
    // The last read is cancelled.
    tokio::select! {
        () = writing => {}
        () = reading => {}
    }
    let changed = changed_after(client, &ana(), &cursor, 10).await.0;
    let ids: Vec<_> = changed.iter().map(|thread| thread.id).collect();
    assert_eq!(ids, (1..=20).rev().map(thread_id).collect::<Vec<_>>());
}

pub(super) async fn changed_threads_are_limited_to_the_scope(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let scopes = [ana(), ben(), acme(), user("globex", "ana")];
    let mut conversations = Vec::new();
    for (number, scope) in (1..).zip(&scopes) {
        conversations.push(Conversation::open(client, scope, number, at(1)).await);
    }
    let cursor = client.list_changed_threads(&ana(), None, 10, at(2)).await.expect("reading works").cursor;
    for conversation in &conversations {
        conversation.append(1..=1, at(3)).await;
    }
    client.delete_thread(&ben(), conversations[1].id, at(4)).await.expect("the thread exists");
    for (scope, expected) in scopes.iter().zip([vec![1], vec![2], vec![1, 3, 2], vec![4]]) {
        let threads = changed_after(client, scope, &cursor, 10).await.0;
        let ids: Vec<_> = threads.iter().map(|thread| thread.id).collect();
        assert_eq!(ids, expected.into_iter().map(thread_id).collect::<Vec<_>>(), "{scope:?}");
    }
}

pub(super) async fn a_new_thread_counts_as_changed(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let cursor = client.list_changed_threads(&ana(), None, 10, at(2)).await.expect("reading works").cursor;
    Conversation::open(client, &ana(), 1, at(3)).await;
    let (threads, cursor) = changed_after(client, &ana(), &cursor, 10).await;
    let positions = Some(Positions::BEGINNING);
    assert_eq!(threads, [ChangedThread { id: thread_id(1), owner: Owner::User(user_id("ana")), positions }]);
    // Opening an existing thread does not change it.
    let open = threadkeep_core::OpenThread::new(&ana(), thread_id(1));
    assert!(!client.open_thread(&ana(), &open, at(4)).await.expect("the thread opens").created);
    assert_eq!(changed_after(client, &ana(), &cursor, 10).await.0, []);
}

pub(super) async fn an_unusable_cursor_returns_a_reset(env: &TestEnv<'_>) {
    let store = env.open().await;
    let other = env.open().await;
    let client = &store.client;
    let conversation = Conversation::open(client, &ana(), 1, at(1)).await;
    let deleted = Conversation::open(client, &ana(), 2, at(1)).await;
    Conversation::open(&other.client, &ana(), 1, at(1)).await;
    let foreign = other.client.list_changed_threads(&ana(), None, 10, at(2)).await.expect("reading works").cursor;
    let before = client.list_changed_threads(&ana(), None, 10, at(2)).await.expect("reading works").cursor;
    let unusable = [foreign, UserCursor(String::new()), UserCursor("not a cursor".to_owned())];
    for (number, cursor) in (10..).zip(unusable) {
        let answer = client.list_changed_threads(&ana(), Some(&cursor), 10, at(2)).await.expect("reading works");
        assert!(answer.reset && answer.threads.is_empty(), "{cursor:?}: {answer:?}");
        conversation.append(number..=number, at(3)).await;
        assert_eq!(changed_after(client, &ana(), &answer.cursor, 10).await.0.len(), 1, "the new cursor is usable");
    }
    client.delete_thread(&ana(), deleted.id, at(4)).await.expect("the thread exists");
    assert_eq!(changed_after(client, &ana(), &before, 10).await.0.len(), 2);
    let later = at(4 + EIGHT_DAYS);
    client.sweep(later).await.expect("sweeping works");
    let answer = client.list_changed_threads(&ana(), Some(&before), 10, later).await.expect("reading works");
    assert!(answer.reset, "a swept deletion requires a reset");
    conversation.append(2..=2, later).await;
    assert_eq!(changed_after(client, &ana(), &answer.cursor, 10).await.0.len(), 1);
}
