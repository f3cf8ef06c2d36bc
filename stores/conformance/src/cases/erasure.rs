//! After an erasure and a sweep, the store's files no longer contain the text.

use threadkeep_core::{
    Batch, Content, Map, NewMessage, OpenThread, PutRecord, RecordOwner, RecordWrite, Replacement, Role, ThreadPatch,
    text,
};

use super::search::query_for;
use crate::conversation::Conversation;
use crate::fixtures::{
    ana, app, appending, at, batch, json, message_id, message_with, note_write, put, record_name, thread_id,
    thread_key, user_id, user_message,
};
use crate::run::{TestEnv, TestStore};

/// A word that no other text contains. A search index stores its stem.
pub(super) const MARKER: &str = "Quixotryzzlings";

fn text_with_marker() -> String {
    format!("The {MARKER} are here")
}

/// Whether the files contain the marker or its stem.
fn files_contain_marker(store: &TestStore) -> bool {
    let stem = text::terms(MARKER).remove(0);
    assert!(stem.len() < MARKER.len() && MARKER.to_lowercase().starts_with(&stem));
    store.files_contain(stem.as_bytes())
}

/// Asserts that the files contain the marker before `erase`, and no longer contain it after `erase` and a sweep.
pub(super) async fn assert_erased(store: &TestStore, conversation: &Conversation, erase: impl AsyncFnOnce()) {
    store.client.catch_up_fully().await;
    assert!(!store.has_files() || files_contain_marker(store), "the marker is not stored as plain text");
    erase().await;
    store.client.catch_up_fully().await;
    store.client.sweep(at(50)).await.expect("sweeping works");
    assert!(!files_contain_marker(store), "the files still contain the text");
    let found = store.client.search(&conversation.scope, &query_for(MARKER), at(50)).await;
    let found = found.expect("searching works");
    assert_eq!((found.hits, found.frequencies), (Vec::new(), vec![0]));
    let report = store.client.verify().await.expect("verifying works");
    assert_eq!(report.findings, []);
}

/// Creates a thread with 100 messages. Number 50 contains the marker.
async fn marked_thread(store: &TestStore) -> Conversation {
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    conversation.append(1..=49, at(1)).await;
    conversation.commit(&appending(vec![user_message(50, &text_with_marker())]), at(1)).await;
    conversation.append(51..=100, at(1)).await;
    conversation
}

pub(super) async fn erasing_removes_text_from_files(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = marked_thread(&store).await;
    assert_erased(&store, &conversation, async || {
        conversation.commit(&Batch { erase: vec![message_id(50)], ..batch("erase") }, at(2)).await;
    })
    .await;
    assert_eq!(conversation.texts(at(51)).await.len(), 99);
}

pub(super) async fn replacing_removes_previous_text_from_files(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = marked_thread(&store).await;
    assert_erased(&store, &conversation, async || {
        let replace = vec![Replacement { id: message_id(50), content: Content::text(Role::User, "nothing") }];
        conversation.commit(&Batch { replace, ..batch("replace") }, at(2)).await;
    })
    .await;
    assert_eq!(conversation.texts(at(51)).await.len(), 100);
}

pub(super) async fn trimming_removes_text_from_files(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = marked_thread(&store).await;
    assert_erased(&store, &conversation, async || {
        conversation.commit(&Batch { trim_below: Some(60), ..batch("trim") }, at(2)).await;
    })
    .await;
    assert_eq!(conversation.texts(at(51)).await.len(), 41);
}

/// Creates a thread with the marker in every field.
async fn thread_with_markers(store: &TestStore) -> Conversation {
    let marked_map = || Map::from_iter([(MARKER.to_owned(), text_with_marker().into())]);
    let open = OpenThread {
        title: Some(text_with_marker()),
        metadata: marked_map(),
        state: marked_map(),
        ..OpenThread::new(&ana(), thread_id(1)).with_key(thread_key(MARKER))
    };
    let conversation = Conversation::open_as(&store.client, &ana(), &open, at(0)).await;
    let content = Content {
        metadata: marked_map(),
        agent: Some(MARKER.to_owned()),
        ..Content::text(Role::User, text_with_marker())
    };
    let with_external_id = NewMessage { external_id: Some(MARKER.to_owned()), ..message_with(1, content) };
    let everywhere = Batch {
        append: vec![with_external_id],
        put: vec![put(app(MARKER), MARKER, &format!("\"{MARKER}\""))],
        ..batch(MARKER)
    };
    conversation.commit(&everywhere, at(1)).await;
    conversation
}

pub(super) async fn deleting_a_thread_removes_its_text_from_files(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = thread_with_markers(&store).await;
    assert_erased(&store, &conversation, async || {
        store.client.delete_thread(&ana(), conversation.id, at(2)).await.expect("the thread exists");
    })
    .await;
}

pub(super) async fn expiry_of_a_thread_removes_its_text_from_files(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = thread_with_markers(&store).await;
    assert_erased(&store, &conversation, async || {
        let patch = ThreadPatch { expires_at: Some(Some(at(40))), ..ThreadPatch::default() };
        conversation.commit(&Batch { patch, ..batch("expire") }, at(2)).await;
    })
    .await;
}

pub(super) async fn changing_a_title_removes_the_previous_one_from_files(env: &TestEnv<'_>) {
    let store = env.open().await;
    let open = OpenThread { title: Some(text_with_marker()), ..OpenThread::new(&ana(), thread_id(1)) };
    let conversation = Conversation::open_as(&store.client, &ana(), &open, at(0)).await;
    assert_erased(&store, &conversation, async || {
        let patch = ThreadPatch { title: Some(None), ..ThreadPatch::default() };
        conversation.commit(&Batch { patch, ..batch("title") }, at(2)).await;
    })
    .await;
}

pub(super) async fn writing_a_record_removes_the_previous_value_from_files(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let marked = format!("\"{}\"", text_with_marker());
    let ana_owner = RecordOwner::User(user_id("ana"));
    let puts = ["overwritten", "deleted", "expired"].map(|key| put(app("notes"), key, &marked));
    conversation.commit(&Batch { put: puts.to_vec(), ..batch("put") }, at(1)).await;
    for key in ["overwritten", "deleted", "expired"] {
        client.write_record(&ana(), &note_write(ana_owner.clone(), key, &marked), at(1)).await.expect("writing works");
    }
    assert_erased(&store, &conversation, async || {
        let expired = PutRecord { expires_at: Some(at(40)), ..put(app("notes"), "expired", &marked) };
        let puts = vec![put(app("notes"), "overwritten", "1"), expired];
        let delete = vec![record_name(app("notes"), "deleted")];
        conversation.commit(&Batch { put: puts, delete, ..batch("change") }, at(2)).await;
        for write in [
            note_write(ana_owner.clone(), "overwritten", "1"),
            RecordWrite { value: None, ..note_write(ana_owner.clone(), "deleted", "1") },
            RecordWrite {
                expires_at: Some(at(40)),
                value: Some(json(&marked)),
                ..note_write(ana_owner.clone(), "expired", "1")
            },
        ] {
            client.write_record(&ana(), &write, at(2)).await.expect("writing works");
        }
    })
    .await;
}
