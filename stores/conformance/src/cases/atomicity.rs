use threadkeep_core::{
    Batch, ChangePage, Conflict, Content, Effect, Expected, Kind, NewMessage, RecordCondition, RecordOwner,
    RecordState, Replacement, Role, StoreError, ThreadPatch, UserCursor,
};

use crate::conversation::Conversation;
use crate::fixtures::{
    ana, app, appending, assert_error, at, batch, conflict_of, message_id, numbered_conflict_of, put, record_name,
    user_message,
};
use crate::run::TestEnv;

/// Returns a batch with every kind of operation, for the thread that [`open_prepared`] opens.
fn full_batch(key: &str) -> Batch {
    Batch {
        append: vec![
            user_message(10, "ten"),
            NewMessage { external_id: Some("x11".to_owned()), ..user_message(11, "eleven") },
        ],
        replace: vec![Replacement { id: message_id(3), content: Content::text(Role::User, "three, edited") }],
        erase: vec![message_id(4)],
        trim_below: Some(3),
        put: vec![put(app("notes"), "new", "[1]"), put(app("notes"), "old", "[2]")],
        delete: vec![record_name(app("notes"), "gone")],
        patch: ThreadPatch { title: Some(Some("a title".to_owned())), ..ThreadPatch::default() },
        ..batch(key)
    }
}

/// Opens a thread and adds four messages, an external id, and the records `old` and `gone` in two commits.
async fn open_prepared(env: &TestEnv<'_>) -> (crate::run::TestStore, Conversation) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    conversation.append(1..=3, at(1)).await;
    let with_records = Batch {
        append: vec![NewMessage { external_id: Some("x4".to_owned()), ..user_message(4, "message 4") }],
        put: vec![put(app("notes"), "old", "[0]"), put(app("notes"), "gone", "[0]")],
        ..batch("prepare")
    };
    conversation.commit(&with_records, at(2)).await;
    (store, conversation)
}

/// Returns all visible data of a thread, and the current cursor of its owner.
async fn visible_state(conversation: &Conversation) -> (String, UserCursor) {
    let now = at(5);
    let state = (
        conversation.thread(now).await,
        conversation.messages(now).await,
        conversation.changes(0, now).await,
        conversation.dump(1000).await,
    );
    let cursor = conversation.client.list_changed_threads(&conversation.scope, None, 10, now).await;
    (format!("{state:?}"), cursor.expect("reading works").cursor)
}

pub(super) async fn rejected_batches_have_no_effects(env: &TestEnv<'_>) {
    let (_store, conversation) = open_prepared(env).await;
    let (before, cursor) = visible_state(&conversation).await;
    let condition = |key: &str, state| RecordCondition { name: record_name(app("notes"), key), state };
    let rejected: Vec<(&str, Batch)> = vec![
        ("seq", Batch { expected: Some(Expected::Seq(3)), ..full_batch("a") }),
        ("change", Batch { expected: Some(Expected::Change(1.into())), ..full_batch("b") }),
        ("absent", Batch { require: vec![condition("old", RecordState::Absent)], ..full_batch("c") }),
        ("version", Batch { require: vec![condition("old", RecordState::Version(1.into()))], ..full_batch("d") }),
        (
            "version of an absent record",
            Batch { require: vec![condition("new", RecordState::Version(1.into()))], ..full_batch("e") },
        ),
        (
            "message id",
            Batch { append: vec![user_message(10, "ten"), user_message(2, "two again")], ..full_batch("f") },
        ),
        (
            "external id",
            Batch {
                append: vec![NewMessage { external_id: Some("x4".to_owned()), ..user_message(10, "ten") }],
                ..full_batch("g")
            },
        ),
        ("erase", Batch { erase: vec![message_id(4), message_id(99)], ..full_batch("h") }),
        (
            "replace",
            Batch {
                replace: vec![Replacement { id: message_id(99), content: Content::text(Role::User, "unknown") }],
                ..full_batch("i")
            },
        ),
        ("trim", Batch { trim_below: Some(8), ..full_batch("j") }),
        ("duplicate id", Batch { append: vec![user_message(10, "ten"), user_message(10, "ten")], ..full_batch("k") }),
        ("nul", Batch { append: vec![user_message(10, "ten"), user_message(11, "a\0b")], ..full_batch("l") }),
    ];
    for (case, batch) in rejected {
        assert!(conversation.try_commit(&batch, at(4)).await.is_err(), "{case}: the batch was accepted");
        assert_eq!(visible_state(&conversation).await.0, before, "{case}: the rejected batch had effects");
    }
    let changed = conversation.client.list_changed_threads(&conversation.scope, Some(&cursor), 10, at(5)).await;
    assert_eq!(changed.expect("reading works").threads, [], "a rejected batch counts as a change");
}

pub(super) async fn accepted_batches_apply_every_operation(env: &TestEnv<'_>) {
    let (_store, conversation) = open_prepared(env).await;
    let outcome = conversation.commit(&full_batch("all"), at(4)).await;
    assert_eq!((outcome.change, outcome.first_seq, outcome.count), (3, 5, 2));
    assert!(!outcome.replayed || env.has_faults(), "a first commit is not a replay");

    assert_eq!(conversation.texts(at(5)).await, ["three, edited", "ten", "eleven"]);
    let thread = conversation.thread(at(5)).await;
    assert_eq!((thread.title.as_deref(), thread.message_count), (Some("a title"), 3));
    assert_eq!((thread.positions.seq, thread.positions.change, thread.positions.first_seq), (6, 3, 3));
    assert_eq!((thread.created_at, thread.updated_at), (at(0), at(4))); // S0.15
    let owner = RecordOwner::Thread(conversation.id);
    for (key, expected) in [("new", Some("[1]")), ("old", Some("[2]")), ("gone", None)] {
        let found = conversation.client.find_record(&conversation.scope, &owner, &app("notes"), key, at(5)).await;
        let found = found.expect("reading works");
        assert_eq!(found.as_ref().map(|record| record.value.as_str()), expected);
        assert!(found.is_none_or(|record| record.version == 3), "the version of a record is the change of its commit");
    }
    let ChangePage::Changes { changes, .. } = conversation.changes(2, at(5)).await else { panic!("unexpected reset") };
    let effects = vec![
        Effect::Appended { first_seq: 5, count: 2 },
        Effect::Replaced { seq: 3, id: message_id(3) },
        Effect::Erased { seq: 4, id: message_id(4) },
        Effect::Trimmed { first_seq: 3 },
        Effect::RecordPut { name: record_name(app("notes"), "new"), version: 3 },
        Effect::RecordPut { name: record_name(app("notes"), "old"), version: 3 },
        Effect::RecordDeleted { name: record_name(app("notes"), "gone") },
        Effect::Patched,
    ];
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].change, changes[0].at, &changes[0].effects), (3, at(4), &effects));
}

pub(super) async fn preconditions_are_checked_in_order(env: &TestEnv<'_>) {
    let (_store, conversation) = open_prepared(env).await;
    let wrong = Batch {
        expected: Some(Expected::Seq(9)),
        require: vec![RecordCondition { name: record_name(app("notes"), "old"), state: RecordState::Absent }],
        append: vec![user_message(1, "one again")],
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
pub(super) async fn empty_batches_have_no_effects(env: &TestEnv<'_>) {
    let (_store, conversation) = open_prepared(env).await;
    let (before, cursor) = visible_state(&conversation).await;
    let outcome = conversation.commit(&batch("nothing"), at(4)).await;
    assert_eq!((outcome.change, outcome.first_seq, outcome.count, outcome.replayed), (2, 5, 0, false));
    assert_eq!(visible_state(&conversation).await.0, before, "an empty batch had effects");
    let changed = conversation.client.list_changed_threads(&conversation.scope, Some(&cursor), 10, at(5)).await;
    assert_eq!(changed.expect("reading works").threads, []);

    // The key was not recorded, so another commit can use it.
    let other = Batch { append: vec![user_message(5, "five")], ..batch("nothing") };
    assert_eq!(conversation.commit(&other, at(5)).await.change, 3);
    // The preconditions of an empty batch are checked.
    let unmet = Batch { expected: Some(Expected::Change(1.into())), ..batch("unmet") };
    let conflict = numbered_conflict_of(conversation.try_commit(&unmet, at(6)).await);
    assert_eq!(conflict, Conflict::Change { expected: 1.into(), actual: 3.into() });
    assert_eq!(conversation.commit(&appending(Vec::new()), at(6)).await.change, 3);
}
