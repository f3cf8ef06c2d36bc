use std::ops::Range;

use threadkeep_core::{
    Batch, Bound, Change, ChangePage, ChangedThread, Content, Effect, Message, MessageQuery, Owner, Positions,
    Replacement, Role, ThreadPatch, Timestamp, UserCursor, limits,
};

use crate::conversation::Conversation;
use crate::given::{
    EIGHT_DAYS, acme, ana, app, at, batch, ben, message_id, named, put, says, tag_of, thread_id, user, user_id,
};
use crate::run::Stage;

pub(super) async fn each_effect_is_told(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let name = named(app("notes"), "k");
    let content = Content::text(Role::User, "anew");
    let steps = [
        (
            Batch { append: vec![says(1, "one"), says(2, "two"), says(3, "three")], ..batch("append") },
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
            let page = subject.client.list_changes(&ana(), conversation.id, after, limit, at(9)).await;
            let changes = expected.iter().filter(|change| change.change > after).take(limit).cloned().collect();
            assert_eq!(page.expect("reading works"), ChangePage::Changes { changes, positions });
        }
    }
    for after in [8, 100, u64::MAX >> 11] {
        assert_eq!(conversation.changes(after, at(9)).await, ChangePage::Reset { positions });
    }
}

/// What followed a position, as a subscriber reads it: page after page, and what a page does not bring by itself.
async fn followed(conversation: &Conversation, limit: usize, now: Timestamp) -> (Vec<Change>, Vec<Message>) {
    let (mut changes, mut messages): (Vec<Change>, Vec<Message>) = (Vec::new(), Vec::new());
    loop {
        let after = changes.last().map_or(0, |change| change.change);
        let client = &conversation.client;
        let read = client.list_changes_with_messages(&ana(), conversation.id, after, limit, now).await;
        let read = read.expect("reading works");
        let appended = read.page.appended();
        let ChangePage::Changes { changes: page, positions } = read.page else { panic!("a reset") };
        assert!(page.len() <= limit && (after == positions.change) == page.is_empty(), "a page of no use");
        changes.extend(page);
        let Range { start, end } = appended.unwrap_or(1..1);
        assert!(read.read_to < end, "beyond what was asked for");
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

pub(super) async fn changes_come_with_their_messages(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    assert_eq!(followed(&conversation, 5, at(0)).await, (Vec::new(), Vec::new()));
    let content = Content::text(Role::User, "anew");
    for (second, batch) in (1..).zip([
        Batch { append: vec![says(1, "one"), says(2, "two"), says(3, "three")], ..batch("first") },
        Batch { replace: vec![Replacement { id: message_id(2), content }], ..batch("replace") },
        Batch { append: vec![says(4, "four")], ..batch("second") },
        Batch { erase: vec![message_id(3)], ..batch("erase") },
        Batch { append: vec![says(5, "five"), says(6, "six")], ..batch("third") },
        Batch { put: vec![put(app("notes"), "k", "1")], ..batch("put") },
        Batch { trim_below: Some(2), append: vec![says(7, "seven")], ..batch("trim") },
    ]) {
        conversation.commit(&batch, at(second)).await;
    }
    let ChangePage::Changes { changes, .. } = conversation.changes(0, at(9)).await else { panic!("a reset") };
    let messages = conversation.messages(at(9)).await;
    assert_eq!(messages.iter().map(|message| message.seq).collect::<Vec<_>>(), [2, 4, 5, 6, 7]);
    for limit in 1..=8 {
        assert_eq!(followed(&conversation, limit, at(9)).await, (changes.clone(), messages.clone()), "by {limit}");
    }
    // As far as one page holds them, they come at once.
    let read = subject.client.list_changes_with_messages(&ana(), conversation.id, 2, 10, at(9)).await;
    let read = read.expect("reading works");
    assert_eq!((read.messages, read.corrupt, read.read_to), (messages[1..].to_vec(), Vec::new(), 7));
    let positions = Positions { seq: 7, change: 7, first_seq: 2, tag: tag_of(&batch("trim")) };
    let read = subject.client.list_changes_with_messages(&ana(), conversation.id, 8, 10, at(9)).await;
    assert_eq!(read.expect("reading works").page, ChangePage::Reset { positions });
}

pub(super) async fn changes_that_bring_much_come_in_parts(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let long = "x".repeat(200_000);
    for number in 0..4 {
        let first = number * 300;
        let mut append: Vec<_> = (first..first + 300).map(|number| says(number, "short")).collect();
        append.push(says(10_000 + number, &long));
        conversation.commit(&Batch { append, ..batch(&number.to_string()) }, at(1)).await;
    }
    let ChangePage::Changes { changes, .. } = conversation.changes(0, at(2)).await else { panic!("a reset") };
    let messages = conversation.messages(at(2)).await;
    assert_eq!((changes.len(), messages.len()), (4, 1_204));
    for limit in [1, 2, 100] {
        assert!(followed(&conversation, limit, at(2)).await == (changes.clone(), messages.clone()), "by {limit}");
    }
}

pub(super) async fn a_new_thread_has_no_changes(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let positions = Positions::BEGINNING;
    let nothing = ChangePage::Changes { changes: Vec::new(), positions };
    assert_eq!(conversation.changes(0, at(1)).await, nothing);
    assert_eq!(conversation.changes(1, at(1)).await, ChangePage::Reset { positions });
}

pub(super) async fn a_swept_past_answers_reset(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    for number in 1..=3 {
        conversation.say(number..=number, at(1)).await;
    }
    let tag = conversation.say(4..=4, at(EIGHT_DAYS)).await.tag;
    let later = at(EIGHT_DAYS + 1);
    subject.client.sweep(later).await.expect("sweeping works");
    let positions = Positions { seq: 4, change: 4, first_seq: 1, tag };
    for after in 0..=2 {
        assert_eq!(conversation.changes(after, later).await, ChangePage::Reset { positions });
    }
    let ChangePage::Changes { changes, .. } = conversation.changes(3, later).await else { panic!("a reset") };
    assert_eq!(changes.iter().map(|change| change.change).collect::<Vec<_>>(), [4]);

    let much_later = at(2 * EIGHT_DAYS + 2);
    subject.client.sweep(much_later).await.expect("sweeping works");
    assert_eq!(conversation.changes(3, much_later).await, ChangePage::Reset { positions });
    let nothing = ChangePage::Changes { changes: Vec::new(), positions };
    assert_eq!(conversation.changes(4, much_later).await, nothing);
    assert_eq!(conversation.say(5..=5, much_later).await.change, 5);
    let ChangePage::Changes { changes, .. } = conversation.changes(4, much_later).await else { panic!("a reset") };
    assert_eq!(changes.iter().map(|change| change.change).collect::<Vec<_>>(), [5]);
    assert_eq!(conversation.texts(much_later).await.len(), 5);
}

/// The changed threads after a cursor, in pages, and the last cursor.
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
        assert!(page.threads.iter().all(|thread| !all.contains(thread)), "a page goes back");
        assert!(!page.more || !page.threads.is_empty(), "more is to come, and nothing comes");
        all.extend(page.threads);
        cursor = page.cursor;
        if !page.more {
            return (all, cursor);
        }
    }
}

pub(super) async fn changed_threads_come_once_in_order(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    let mut conversations = Vec::new();
    for number in 1..=5 {
        conversations.push(Conversation::open(client, &ana(), number, at(1)).await);
        conversations[usize::try_from(number).expect("a small number") - 1].say(1..=1, at(1)).await;
    }
    let now = client.list_changed_threads(&ana(), None, 10, at(2)).await.expect("reading works");
    assert_eq!((now.threads, now.more, now.reset), (Vec::new(), false, false));
    assert_eq!(changed_after(client, &ana(), &now.cursor, 10).await.0, []);

    let mut tags = [None; 5];
    for (number, index) in (2..).zip([3, 0, 3, 2, 0]) {
        tags[index] = conversations[index].say(number..=number, at(3)).await.tag;
    }
    client.delete_thread(&ana(), conversations[4].id, at(4)).await.expect("the thread is there");
    conversations[1].commit(&batch("empty"), at(5)).await;
    let owner = Owner::User(user_id("ana"));
    let stands = |number, seq, tag| ChangedThread {
        id: thread_id(number),
        owner: owner.clone(),
        positions: Some(Positions { seq, change: seq, first_seq: 1, tag }),
    };
    let deleted = ChangedThread { id: thread_id(5), owner: owner.clone(), positions: None };
    let expected = vec![stands(4, 3, tags[3]), stands(3, 2, tags[2]), stands(1, 3, tags[0]), deleted];
    for limit in [1, 2, 4, 10] {
        assert_eq!(changed_after(client, &ana(), &now.cursor, limit).await.0, expected, "in pages of {limit}");
    }
    assert_eq!(changed_after(client, &acme(), &now.cursor, 10).await.0, expected);
    let (_, cursor) = changed_after(client, &ana(), &now.cursor, 10).await;
    assert_eq!(changed_after(client, &ana(), &cursor, 10).await.0, []);
    let tag = conversations[1].say(9..=9, at(6)).await.tag;
    assert_eq!(changed_after(client, &ana(), &cursor, 10).await.0, [stands(2, 2, tag)]);
}

pub(super) async fn changed_threads_are_those_of_the_scope(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    let scopes = [ana(), ben(), acme(), user("globex", "ana")];
    let mut conversations = Vec::new();
    for (number, scope) in (1..).zip(&scopes) {
        conversations.push(Conversation::open(client, scope, number, at(1)).await);
    }
    let cursor = client.list_changed_threads(&ana(), None, 10, at(2)).await.expect("reading works").cursor;
    for conversation in &conversations {
        conversation.say(1..=1, at(3)).await;
    }
    client.delete_thread(&ben(), conversations[1].id, at(4)).await.expect("the thread is there");
    for (scope, expected) in scopes.iter().zip([vec![1], vec![2], vec![1, 3, 2], vec![4]]) {
        let threads = changed_after(client, scope, &cursor, 10).await.0;
        let ids: Vec<_> = threads.iter().map(|thread| thread.id).collect();
        assert_eq!(ids, expected.into_iter().map(thread_id).collect::<Vec<_>>(), "{scope:?}");
    }
}

pub(super) async fn a_new_thread_counts_as_changed(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    let cursor = client.list_changed_threads(&ana(), None, 10, at(2)).await.expect("reading works").cursor;
    Conversation::open(client, &ana(), 1, at(3)).await;
    let (threads, cursor) = changed_after(client, &ana(), &cursor, 10).await;
    let positions = Some(Positions::BEGINNING);
    assert_eq!(threads, [ChangedThread { id: thread_id(1), owner: Owner::User(user_id("ana")), positions }]);
    // Opening what is there changes nothing.
    let open = threadkeep_core::OpenThread::new(&ana(), thread_id(1));
    assert!(!client.open_thread(&ana(), &open, at(4)).await.expect("the thread opens").created);
    assert_eq!(changed_after(client, &ana(), &cursor, 10).await.0, []);
}

pub(super) async fn a_cursor_of_a_lost_past_answers_reset(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let other = stage.open().await;
    let client = &subject.client;
    let conversation = Conversation::open(client, &ana(), 1, at(1)).await;
    let doomed = Conversation::open(client, &ana(), 2, at(1)).await;
    Conversation::open(&other.client, &ana(), 1, at(1)).await;
    let foreign = other.client.list_changed_threads(&ana(), None, 10, at(2)).await.expect("reading works").cursor;
    let before = client.list_changed_threads(&ana(), None, 10, at(2)).await.expect("reading works").cursor;
    let lost = [foreign, UserCursor(String::new()), UserCursor("never a cursor".to_owned())];
    for (number, cursor) in (10..).zip(lost) {
        let answer = client.list_changed_threads(&ana(), Some(&cursor), 10, at(2)).await.expect("reading works");
        assert!(answer.reset && answer.threads.is_empty(), "{cursor:?}: {answer:?}");
        conversation.say(number..=number, at(3)).await;
        assert_eq!(changed_after(client, &ana(), &answer.cursor, 10).await.0.len(), 1, "the new cursor goes on");
    }
    client.delete_thread(&ana(), doomed.id, at(4)).await.expect("the thread is there");
    assert_eq!(changed_after(client, &ana(), &before, 10).await.0.len(), 2);
    let later = at(4 + EIGHT_DAYS);
    client.sweep(later).await.expect("sweeping works");
    let answer = client.list_changed_threads(&ana(), Some(&before), 10, later).await.expect("reading works");
    assert!(answer.reset, "a deletion that is no longer remembered was passed over in silence");
    conversation.say(2..=2, later).await;
    assert_eq!(changed_after(client, &ana(), &answer.cursor, 10).await.0.len(), 1);
}
