use threadkeep_core::{
    Batch, ChangePage, Conflict, Content, Effect, Expected, Kind, NewMessage, RecordCondition, RecordOwner,
    RecordState, Replacement, Role, StoreError, ThreadPatch, UserCursor,
};

use crate::conversation::Conversation;
use crate::given::{
    adds, ana, app, assert_error, at, batch, conflict_of, message_id, named, numbered_conflict_of, put, says,
};
use crate::run::Stage;

/// A batch that does everything at once to a thread that `prepared` made.
fn everything(key: &str) -> Batch {
    Batch {
        append: vec![says(10, "ten"), NewMessage { external_id: Some("x11".to_owned()), ..says(11, "eleven") }],
        replace: vec![Replacement { id: message_id(3), content: Content::text(Role::User, "three, said anew") }],
        erase: vec![message_id(4)],
        trim_below: Some(3),
        put: vec![put(app("notes"), "new", "[1]"), put(app("notes"), "old", "[2]")],
        delete: vec![named(app("notes"), "gone")],
        patch: ThreadPatch { title: Some(Some("a title".to_owned())), ..ThreadPatch::default() },
        ..batch(key)
    }
}

/// Four messages, an external id, and the records `old` and `gone`; two commits.
async fn prepared(stage: &Stage<'_>) -> (crate::run::Subject, Conversation) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    conversation.say(1..=3, at(1)).await;
    let with_records = Batch {
        append: vec![NewMessage { external_id: Some("x4".to_owned()), ..says(4, "message 4") }],
        put: vec![put(app("notes"), "old", "[0]"), put(app("notes"), "gone", "[0]")],
        ..batch("prepare")
    };
    conversation.commit(&with_records, at(2)).await;
    (subject, conversation)
}

/// Everything that can be seen of a thread, and where its owner's cursor stands.
async fn everything_seen(conversation: &Conversation) -> (String, UserCursor) {
    let now = at(5);
    let seen = (
        conversation.thread(now).await,
        conversation.messages(now).await,
        conversation.changes(0, now).await,
        conversation.dump(1000).await,
    );
    let cursor = conversation.client.list_changed_threads(&conversation.scope, None, 10, now).await;
    (format!("{seen:?}"), cursor.expect("reading works").cursor)
}

pub(super) async fn nothing_of_a_refused_batch_is_visible(stage: &Stage<'_>) {
    let (_subject, conversation) = prepared(stage).await;
    let (before, cursor) = everything_seen(&conversation).await;
    let condition = |key: &str, state| RecordCondition { name: named(app("notes"), key), state };
    let refused: Vec<(&str, Batch)> = vec![
        ("seq", Batch { expected: Some(Expected::Seq(3)), ..everything("a") }),
        ("change", Batch { expected: Some(Expected::Change(1.into())), ..everything("b") }),
        ("absent", Batch { require: vec![condition("old", RecordState::Absent)], ..everything("c") }),
        ("version", Batch { require: vec![condition("old", RecordState::Version(1.into()))], ..everything("d") }),
        (
            "version of nothing",
            Batch { require: vec![condition("new", RecordState::Version(1.into()))], ..everything("e") },
        ),
        ("message id", Batch { append: vec![says(10, "ten"), says(2, "two again")], ..everything("f") }),
        (
            "external id",
            Batch {
                append: vec![NewMessage { external_id: Some("x4".to_owned()), ..says(10, "ten") }],
                ..everything("g")
            },
        ),
        ("erase", Batch { erase: vec![message_id(4), message_id(99)], ..everything("h") }),
        (
            "replace",
            Batch {
                replace: vec![Replacement { id: message_id(99), content: Content::text(Role::User, "nobody") }],
                ..everything("i")
            },
        ),
        ("trim", Batch { trim_below: Some(8), ..everything("j") }),
        ("named twice", Batch { append: vec![says(10, "ten"), says(10, "ten")], ..everything("k") }),
        ("nul", Batch { append: vec![says(10, "ten"), says(11, "a\0b")], ..everything("l") }),
    ];
    for (what, batch) in refused {
        assert!(conversation.try_commit(&batch, at(4)).await.is_err(), "{what} must refuse the batch");
        assert_eq!(
            everything_seen(&conversation).await.0,
            before,
            "something of a batch refused for {what} is visible"
        );
    }
    let changed = conversation.client.list_changed_threads(&conversation.scope, Some(&cursor), 10, at(5)).await;
    assert_eq!(changed.expect("reading works").threads, [], "a refused batch counts as a change");
}

pub(super) async fn all_of_an_accepted_batch_is_visible(stage: &Stage<'_>) {
    let (_subject, conversation) = prepared(stage).await;
    let outcome = conversation.commit(&everything("all"), at(4)).await;
    assert_eq!((outcome.change, outcome.first_seq, outcome.count), (3, 5, 2));
    assert!(!outcome.replayed || stage.is_weak(), "a first commit is no replay");

    assert_eq!(conversation.texts(at(5)).await, ["three, said anew", "ten", "eleven"]);
    let thread = conversation.thread(at(5)).await;
    assert_eq!((thread.title.as_deref(), thread.message_count), (Some("a title"), 3));
    assert_eq!((thread.positions.seq, thread.positions.change, thread.positions.first_seq), (6, 3, 3));
    assert_eq!((thread.created_at, thread.updated_at), (at(0), at(4))); // S0.15
    let owner = RecordOwner::Thread(conversation.id);
    for (key, expected) in [("new", Some("[1]")), ("old", Some("[2]")), ("gone", None)] {
        let found = conversation.client.find_record(&conversation.scope, &owner, &app("notes"), key, at(5)).await;
        let found = found.expect("reading works");
        assert_eq!(found.as_ref().map(|record| record.value.as_str()), expected);
        assert!(found.is_none_or(|record| record.version == 3), "a document's version is the commit's change");
    }
    let ChangePage::Changes { changes, .. } = conversation.changes(2, at(5)).await else { panic!("a reset") };
    let effects = vec![
        Effect::Appended { first_seq: 5, count: 2 },
        Effect::Replaced { seq: 3, id: message_id(3) },
        Effect::Erased { seq: 4, id: message_id(4) },
        Effect::Trimmed { first_seq: 3 },
        Effect::RecordPut { name: named(app("notes"), "new"), version: 3 },
        Effect::RecordPut { name: named(app("notes"), "old"), version: 3 },
        Effect::RecordDeleted { name: named(app("notes"), "gone") },
        Effect::Patched,
    ];
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].change, changes[0].at, &changes[0].effects), (3, at(4), &effects));
}

pub(super) async fn preconditions_are_checked_in_order(stage: &Stage<'_>) {
    let (_subject, conversation) = prepared(stage).await;
    let wrong = Batch {
        expected: Some(Expected::Seq(9)),
        require: vec![RecordCondition { name: named(app("notes"), "old"), state: RecordState::Absent }],
        append: vec![says(1, "one again")],
        erase: vec![message_id(99)],
        trim_below: Some(99),
        ..batch("wrong")
    };
    let conflict = conflict_of(conversation.try_commit(&wrong, at(4)).await);
    assert_eq!(conflict, Conflict::Seq { expected: 9, actual: 4 });
    let wrong = Batch { expected: None, ..wrong };
    let actual = Some(2.into());
    let (namespace, key) = (app("notes"), "old".to_owned());
    let conflict = numbered_conflict_of(conversation.try_commit(&wrong, at(4)).await);
    assert_eq!(conflict, Conflict::Record { namespace, key, actual });
    let wrong = Batch { require: Vec::new(), ..wrong };
    let conflict = conflict_of(conversation.try_commit(&wrong, at(4)).await);
    assert_eq!(conflict, Conflict::MessageId { id: message_id(1), seq: 1 });
    let wrong = Batch { append: Vec::new(), ..wrong };
    assert_error!(conversation.try_commit(&wrong, at(4)).await, StoreError::NotFound(Kind::Message));
    let wrong = Batch { erase: Vec::new(), ..wrong };
    assert_error!(conversation.try_commit(&wrong, at(4)).await, StoreError::Invalid { .. });
}

// S1.08
pub(super) async fn empty_batches_leave_no_trace(stage: &Stage<'_>) {
    let (_subject, conversation) = prepared(stage).await;
    let (before, cursor) = everything_seen(&conversation).await;
    let outcome = conversation.commit(&batch("nothing"), at(4)).await;
    assert_eq!((outcome.change, outcome.first_seq, outcome.count, outcome.replayed), (2, 5, 0, false));
    assert_eq!(everything_seen(&conversation).await.0, before, "an empty batch left something");
    let changed = conversation.client.list_changed_threads(&conversation.scope, Some(&cursor), 10, at(5)).await;
    assert_eq!(changed.expect("reading works").threads, []);

    // Its key was not recorded, so it is free for something else.
    let other = Batch { append: vec![says(5, "five")], ..batch("nothing") };
    assert_eq!(conversation.commit(&other, at(5)).await.change, 3);
    // Its preconditions count all the same.
    let unmet = Batch { expected: Some(Expected::Change(1.into())), ..batch("unmet") };
    let conflict = numbered_conflict_of(conversation.try_commit(&unmet, at(6)).await);
    assert_eq!(conflict, Conflict::Change { expected: 1.into(), actual: 3.into() });
    assert_eq!(conversation.commit(&adds(Vec::new()), at(6)).await.change, 3);
}
