//! A value at a limit is accepted, and a larger value fails with an error that names the limit. NUL is rejected
//! everywhere.

use threadkeep_core::{
    Batch, Content, IdempotencyKey, ImageReference, Map, MessageQuery, Namespace, NewMessage, OpenThread, Part,
    PutRecord, RecordCondition, RecordOwner, RecordQuery, RecordState, RecordWrite, Replacement, Role, Source,
    StoreError, ThreadOrder, ThreadPatch, ThreadQuery, ThreadRead, ThreadRef, ToolCall, ToolResult, Usage, limits,
};

use super::search::query_for;
use crate::conversation::Conversation;
use crate::fixtures::{
    ana, app, appending, assert_error, at, batch, json, message_id, message_with, note_write, put, record_name,
    thread_id, user_id, user_message,
};
use crate::run::TestEnv;

fn text_with_bytes(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// Returns a map whose JSON has the given number of bytes.
fn map_with_bytes(bytes: usize) -> Map {
    let mut map = Map::new();
    map.insert("k".to_owned(), text_with_bytes(bytes - r#"{"k":""}"#.len()).into());
    map
}

/// Returns JSON with the given number of nested arrays.
fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

/// Asserts that a commit above a limit is rejected, and that a commit at the limit is accepted.
async fn assert_limit(conversation: &Conversation, limit: usize, commit: impl Fn(usize) -> Batch) {
    let before = conversation.thread(at(2)).await.positions;
    let over = commit(limit + 1);
    match conversation.try_commit(&over, at(2)).await {
        Err(StoreError::LimitExceeded { limit: name, max, actual }) => {
            assert_eq!((max, actual), (limit as u64, limit as u64 + 1), "{name}");
            assert!(!name.is_empty());
        }
        other => panic!("{:?} does not have the limit {limit}: {other:?}", over.key),
    }
    assert_eq!(conversation.thread(at(2)).await.positions, before, "{:?}: the rejected commit had effects", over.key);
    let outcome = conversation.try_commit(&commit(limit), at(2)).await.expect("a value at the limit is accepted");
    assert_eq!(outcome.change, before.change + 1);
}

pub(super) async fn messages_have_limits(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let append_content = |number: u128, content: Content| Batch {
        append: vec![message_with(number, content)],
        ..batch(&format!("{number}"))
    };
    assert_limit(&conversation, limits::MESSAGE_BYTES, |bytes| {
        // The codec adds a version, a role and two quotes.
        append_content(1, Content::text(Role::User, text_with_bytes(bytes - 4)))
    })
    .await;
    assert_limit(&conversation, limits::PARTS, |count| {
        append_content(2, Content { parts: vec![Part::Text("a".to_owned()); count], ..Content::empty(Role::User) })
    })
    .await;
    let source = Source {
        kind: "k".to_owned(),
        id: "i".to_owned(),
        title: None,
        score: None,
        distance: None,
        fields: Map::new(),
    };
    assert_limit(&conversation, limits::SOURCES, |count| {
        append_content(3, Content { sources: vec![source.clone(); count], ..Content::empty(Role::User) })
    })
    .await;
    assert_limit(&conversation, limits::MAP_BYTES, |bytes| {
        append_content(4, Content { metadata: map_with_bytes(bytes), ..Content::empty(Role::User) })
    })
    .await;
    assert_limit(&conversation, limits::NAME_BYTES, |bytes| {
        append_content(5, Content { author: Some(text_with_bytes(bytes)), ..Content::empty(Role::User) })
    })
    .await;
    assert_limit(&conversation, limits::NAME_BYTES, |bytes| {
        append_content(6, Content { agent: Some(text_with_bytes(bytes)), ..Content::empty(Role::User) })
    })
    .await;
    assert_limit(&conversation, limits::KEY_BYTES, |bytes| Batch {
        append: vec![NewMessage { external_id: Some(text_with_bytes(bytes)), ..user_message(7, "seven") }],
        ..batch("external id")
    })
    .await;
    assert_limit(&conversation, limits::JSON_DEPTH, |depth| {
        // The map adds one level.
        let value = serde_json::from_str(&nested(depth - 1)).expect("valid JSON");
        let metadata = Map::from_iter([("k".to_owned(), value)]);
        append_content(8, Content { metadata, ..Content::empty(Role::User) })
    })
    .await;
    assert_eq!(conversation.messages(at(3)).await.len(), 8);
}

pub(super) async fn commits_have_limits(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    assert_limit(&conversation, limits::COMMIT_MESSAGES, |count| {
        let messages = (1..=count as u128).map(|number| user_message(number, "m")).collect();
        Batch { append: messages, ..batch("messages") }
    })
    .await;
    conversation.append(1001..=1001, at(1)).await;
    assert_limit(&conversation, limits::COMMIT_EDITS, |count| {
        let ids = (1..=count as u128).map(message_id);
        let replace = ids.map(|id| Replacement { id, content: Content::text(Role::User, "r") }).collect();
        Batch { replace, ..batch("replacements") }
    })
    .await;
    assert_limit(&conversation, limits::COMMIT_EDITS, |count| Batch {
        erase: (1..=count as u128).map(message_id).collect(),
        ..batch("erasures")
    })
    .await;
    assert_limit(&conversation, limits::COMMIT_RECORDS, |count| {
        let puts = (0..count - 20).map(|number| put(app("n"), &format!("{number}"), "1")).collect();
        let delete = (0..10).map(|number| record_name(app("n"), &format!("gone {number}"))).collect();
        let absent = (0..10).map(|number| RecordCondition {
            name: record_name(app("n"), &format!("absent {number}")),
            state: RecordState::Absent,
        });
        Batch { put: puts, delete, require: absent.collect(), ..batch("records") }
    })
    .await;
    assert_limit(&conversation, limits::COMMIT_BYTES, |bytes| {
        let rest = bytes - 3 * limits::MESSAGE_BYTES;
        let whole = (1..=3).map(|number| user_message(2000 + number, &text_with_bytes(limits::MESSAGE_BYTES - 4)));
        // The last quarter is split into two messages, so that the commit exceeds its limit although no message does.
        let halves = [text_with_bytes(rest / 2 - 4), text_with_bytes(rest - rest / 2 - 4)];
        let halves = (2010..).zip(halves).map(|(number, text)| user_message(number, &text));
        Batch { append: whole.chain(halves).collect(), ..batch("bytes") }
    })
    .await;
    assert_limit(&conversation, limits::KEY_BYTES, |bytes| Batch {
        append: vec![user_message(3000, "m")],
        key: IdempotencyKey::FromCaller(text_with_bytes(bytes)),
        ..batch("key")
    })
    .await;
    assert_limit(&conversation, limits::RECORD_BYTES, |bytes| Batch {
        put: vec![put(app("n"), "big", &format!("\"{}\"", text_with_bytes(bytes - 2)))],
        ..batch("record")
    })
    .await;
    assert_limit(&conversation, limits::KEY_BYTES, |bytes| Batch {
        put: vec![put(app("n"), &text_with_bytes(bytes), "1")],
        ..batch("record key")
    })
    .await;
    assert_limit(&conversation, limits::NAME_BYTES, |bytes| Batch {
        put: vec![put(Namespace::App(text_with_bytes(bytes)), "k", "1")],
        ..batch("namespace")
    })
    .await;
    assert_limit(&conversation, limits::TITLE_BYTES, |bytes| {
        let patch = ThreadPatch { title: Some(Some(text_with_bytes(bytes))), ..ThreadPatch::default() };
        Batch { patch, ..batch("title") }
    })
    .await;
    assert_limit(&conversation, limits::MAP_BYTES, |bytes| {
        let patch = ThreadPatch { state: Some(map_with_bytes(bytes)), ..ThreadPatch::default() };
        Batch { patch, ..batch("state") }
    })
    .await;
}

pub(super) async fn threads_and_records_have_limits(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    type WithSize = fn(OpenThread, usize) -> OpenThread;
    let opens: [(usize, WithSize); 3] = [
        (limits::TITLE_BYTES, |open, bytes| OpenThread { title: Some(text_with_bytes(bytes)), ..open }),
        (limits::MAP_BYTES, |open, bytes| OpenThread { metadata: map_with_bytes(bytes), ..open }),
        (limits::MAP_BYTES, |open, bytes| OpenThread { state: map_with_bytes(bytes), ..open }),
    ];
    for (number, (limit, make)) in (1..).zip(opens) {
        let open = |bytes| make(OpenThread::new(&ana(), thread_id(number)), bytes);
        let over = client.open_thread(&ana(), &open(limit + 1), at(1)).await;
        assert_error!(over, StoreError::LimitExceeded { max, .. } if max == limit as u64);
        let opened = client.open_thread(&ana(), &open(limit), at(1)).await.expect("a value at the limit is accepted");
        assert!(opened.created, "the rejected call created the thread");
    }
    let ana_owner = RecordOwner::User(user_id("ana"));
    let big = |bytes| note_write(ana_owner.clone(), "k", &format!("\"{}\"", text_with_bytes(bytes - 2)));
    let with_key = |bytes| note_write(ana_owner.clone(), &text_with_bytes(bytes), "1");
    let in_namespace = |bytes| RecordWrite {
        namespace: Namespace::App(text_with_bytes(bytes)),
        ..note_write(ana_owner.clone(), "k", "1")
    };
    let writes: [(usize, &dyn Fn(usize) -> RecordWrite); 3] =
        [(limits::RECORD_BYTES, &big), (limits::KEY_BYTES, &with_key), (limits::NAME_BYTES, &in_namespace)];
    for (limit, write) in writes.map(|(limit, write)| (limit, [write(limit), write(limit + 1)])) {
        let over = client.write_record(&ana(), &write[1], at(1)).await;
        assert_error!(over, StoreError::LimitExceeded { max, .. } if max == limit as u64);
        client.write_record(&ana(), &write[0], at(1)).await.expect("a value at the limit is accepted");
    }
    let all = client.list_records(&ana(), &RecordQuery::of(ana_owner), at(2)).await.expect("reading works");
    assert_eq!(all.len(), 3);
}

pub(super) async fn pages_have_limits(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let owner = RecordOwner::Thread(conversation.id);
    let tenant = ana().tenant_id().clone();
    let cursor = client.list_changed_threads(&ana(), None, 1, at(1)).await.expect("reading works").cursor;
    for limit in [0, 1, limits::PAGE, limits::PAGE + 1] {
        let (scope, id, now) = (&ana(), conversation.id, at(1));
        let records = RecordQuery { limit, ..RecordQuery::of(owner.clone()) };
        let query = threadkeep_core::SearchQuery { limit, ..query_for("walrus") };
        let reference = ThreadRef::Id(id);
        let page = ThreadRead::page(MessageQuery::newest(limit));
        let lists = ThreadRead { lists: vec![records.clone()], ..ThreadRead::default() };
        let answers = [
            ("messages", client.list_messages(scope, id, &MessageQuery::newest(limit), now).await.map(drop)),
            ("a thread's messages", client.read_thread(scope, &reference, &page, now).await.map(drop)),
            ("a thread's lists", client.read_thread(scope, &reference, &lists, now).await.map(drop)),
            (
                "threads",
                client.list_threads(scope, &ThreadQuery::new(ThreadOrder::Created, limit), now).await.map(drop),
            ),
            ("changed threads", client.list_changed_threads(scope, Some(&cursor), limit, now).await.map(drop)),
            ("a new cursor of changed threads", client.list_changed_threads(scope, None, limit, now).await.map(drop)),
            ("changes", client.list_changes(scope, id, 0, limit, now).await.map(drop)),
            ("changes with messages", client.list_changes_with_messages(scope, id, 0, limit, now).await.map(drop)),
            ("records", client.list_records(scope, &records, now).await.map(drop)),
            ("hits", client.search(scope, &query, now).await.map(drop)),
            ("tenants", client.list_tenants(None, limit).await.map(drop)),
            ("driven threads", client.list_driven_threads(None, limit, at(1)).await.map(drop)),
            ("owners", client.list_owners(&tenant, None, limit).await.map(drop)),
            ("entries", client.dump_thread(&tenant, id, None, limit).await.map(drop)),
        ];
        for (name, answer) in answers {
            match limit {
                0 => assert!(matches!(answer, Err(StoreError::Invalid { .. })), "0 {name}: {answer:?}"),
                1 | limits::PAGE => assert!(answer.is_ok(), "{limit} {name}: {answer:?}"),
                _ => assert!(matches!(answer, Err(StoreError::LimitExceeded { max: 1000, .. })), "{name}: {answer:?}"),
            }
        }
    }
}

/// Returns contents that each have a NUL in a different text field.
fn contents_with_nul() -> Vec<Content> {
    let empty = || Content::empty(Role::User);
    let nul = || "a\0b".to_owned();
    let part = |part| Content { parts: vec![part], ..empty() };
    let map = || Map::from_iter([("k".to_owned(), nul().into())]);
    let source = || Source {
        kind: "k".to_owned(),
        id: "i".to_owned(),
        title: None,
        score: None,
        distance: None,
        fields: Map::new(),
    };
    let call = ToolCall { id: "c".to_owned(), name: "n".to_owned(), arguments: json("{}") };
    let result = ToolResult { call_id: "c".to_owned(), output: String::new(), is_error: false };
    vec![
        part(Part::Text(nul())),
        part(Part::Text("\0".to_owned())),
        part(Part::Reasoning(nul())),
        part(Part::ToolCall(ToolCall { id: nul(), ..call.clone() })),
        part(Part::ToolCall(ToolCall { name: nul(), ..call })),
        part(Part::ToolResult(ToolResult { call_id: nul(), ..result.clone() })),
        part(Part::ToolResult(ToolResult { output: nul(), ..result })),
        part(Part::Image(ImageReference { url: nul(), description: None, detail: None })),
        part(Part::Image(ImageReference { url: String::new(), description: Some(nul()), detail: None })),
        part(Part::Raw { format: nul(), json: json("{}") }),
        Content { author: Some(nul()), ..empty() },
        Content { agent: Some(nul()), ..empty() },
        Content { sources: vec![Source { kind: nul(), ..source() }], ..empty() },
        Content { sources: vec![Source { id: nul(), ..source() }], ..empty() },
        Content { sources: vec![Source { title: Some(nul()), ..source() }], ..empty() },
        Content { sources: vec![Source { fields: map(), ..source() }], ..empty() },
        Content { usage: Some(Usage { model: Some(nul()), ..Usage::default() }), ..empty() },
        Content { metadata: map(), ..empty() },
        Content { metadata: Map::from_iter([(nul(), true.into())]), ..empty() },
    ]
}

pub(super) async fn nul_is_rejected_everywhere(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    conversation.append(1..=1, at(1)).await;
    let nul = || "a\0b".to_owned();
    let map = || Map::from_iter([("k".to_owned(), nul().into())]);
    let patch = |patch| Batch { patch, ..batch("patch") };
    let mut rejected = vec![
        Batch {
            append: vec![NewMessage { external_id: Some(nul()), ..user_message(2, "two") }],
            ..batch("external id")
        },
        Batch { append: vec![user_message(2, "two")], key: IdempotencyKey::FromCaller(nul()), ..batch("key") },
        Batch { put: vec![put(app("n"), &nul(), "1")], ..batch("record key") },
        Batch { put: vec![put(Namespace::App(nul()), "k", "1")], ..batch("namespace") },
        Batch { put: vec![put(Namespace::System(nul()), "k", "1")], ..batch("namespace") },
        Batch { delete: vec![record_name(app("n"), &nul())], ..batch("deleted key") },
        Batch {
            append: vec![user_message(2, "two")],
            require: vec![RecordCondition { name: record_name(app("n"), &nul()), state: RecordState::Absent }],
            ..batch("required key")
        },
        patch(ThreadPatch { title: Some(Some(nul())), ..ThreadPatch::default() }),
        patch(ThreadPatch { metadata: Some(map()), ..ThreadPatch::default() }),
        patch(ThreadPatch { state: Some(map()), ..ThreadPatch::default() }),
    ];
    for content in contents_with_nul() {
        rejected.push(appending(vec![message_with(2, content.clone())]));
        rejected.push(Batch { replace: vec![Replacement { id: message_id(1), content }], ..batch("replace") });
    }
    for batch in rejected {
        assert_error!(conversation.try_commit(&batch, at(2)).await, StoreError::Invalid { .. });
    }
    assert_eq!(conversation.thread(at(3)).await.positions.change, 1);
    for open in [
        OpenThread { title: Some(nul()), ..OpenThread::new(&ana(), thread_id(2)) },
        OpenThread { metadata: map(), ..OpenThread::new(&ana(), thread_id(2)) },
        OpenThread { state: map(), ..OpenThread::new(&ana(), thread_id(2)) },
    ] {
        assert_error!(client.open_thread(&ana(), &open, at(3)).await, StoreError::Invalid { .. });
    }
    let ana_owner = RecordOwner::User(user_id("ana"));
    for write in [
        note_write(ana_owner.clone(), &nul(), "1"),
        RecordWrite { namespace: Namespace::App(nul()), ..note_write(ana_owner.clone(), "k", "1") },
        RecordWrite { owner: RecordOwner::Thread(conversation.id), ..note_write(ana_owner, "k", "1") },
    ] {
        assert_error!(client.write_record(&ana(), &write, at(3)).await, StoreError::Invalid { .. });
    }
}

pub(super) async fn commits_reject_duplicate_names(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    conversation.append(1..=2, at(1)).await;
    let with_external_id = |number| NewMessage { external_id: Some("x".to_owned()), ..user_message(number, "hello") };
    let replacement = |number| Replacement { id: message_id(number), content: Content::empty(Role::User) };
    let absent = || RecordCondition { name: record_name(app("n"), "k"), state: RecordState::Absent };
    let put_k = || put(app("n"), "k", "1");
    for batch in [
        Batch { append: vec![user_message(3, "a"), user_message(3, "b")], ..batch("a") },
        Batch { append: vec![with_external_id(3), with_external_id(4)], ..batch("b") },
        Batch { append: vec![user_message(3, "a")], erase: vec![message_id(3)], ..batch("c") },
        Batch { replace: vec![replacement(1), replacement(1)], ..batch("d") },
        Batch { replace: vec![replacement(1)], erase: vec![message_id(1)], ..batch("e") },
        Batch { erase: vec![message_id(1), message_id(1)], ..batch("f") },
        Batch { put: vec![put_k(), PutRecord { expires_at: Some(at(9)), ..put_k() }], ..batch("g") },
        Batch { put: vec![put_k()], delete: vec![record_name(app("n"), "k")], ..batch("h") },
        Batch { require: vec![absent(), absent()], put: vec![put_k()], ..batch("i") },
    ] {
        assert_error!(conversation.try_commit(&batch, at(2)).await, StoreError::Invalid { .. });
    }
    assert_eq!(conversation.thread(at(3)).await.positions.change, 1);
}
