//! After erasing and sweeping, no byte of the text is found in any of the store's files.

use threadkeep_core::{
    Batch, Content, Map, NewMessage, OpenThread, PutRecord, RecordOwner, RecordWrite, Replacement, Role, ThreadPatch,
    text,
};

use super::search::query_for;
use crate::conversation::Conversation;
use crate::given::{
    adds, ana, app, at, batch, json, message_id, named, note, put, says, spoken, thread_id, thread_key, user_id,
};
use crate::run::{Stage, Subject};

/// A word that is in no other text, and that an index keeps in another form.
pub(super) const MARKER: &str = "Quixotryzzlings";

fn marked() -> String {
    format!("The {MARKER} are here")
}

/// Whether the marker is anywhere in the files, as it was said or as an index has it.
fn files_hold_marker(subject: &Subject) -> bool {
    let stem = text::terms(MARKER).remove(0);
    assert!(stem.len() < MARKER.len() && MARKER.to_lowercase().starts_with(&stem));
    subject.files_hold(stem.as_bytes())
}

/// Sweeps, and checks that the marker was there and is gone.
pub(super) async fn assert_erased(subject: &Subject, conversation: &Conversation, erase: impl AsyncFnOnce()) {
    subject.client.catch_up_fully().await;
    assert!(!subject.has_files() || files_hold_marker(subject), "the marker is not in the files as plain text");
    erase().await;
    subject.client.catch_up_fully().await;
    subject.client.sweep(at(50)).await.expect("sweeping works");
    assert!(!files_hold_marker(subject), "bytes of the text are left in the files");
    let found = subject.client.search(&conversation.scope, &query_for(MARKER), at(50)).await;
    let found = found.expect("searching works");
    assert_eq!((found.hits, found.frequencies), (Vec::new(), vec![0]));
    let report = subject.client.verify().await.expect("verifying works");
    assert_eq!(report.findings, []);
}

/// A thread with a hundred plain messages around the marked one, number 50.
async fn marked_thread(subject: &Subject) -> Conversation {
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    conversation.say(1..=49, at(1)).await;
    conversation.commit(&adds(vec![says(50, &marked())]), at(1)).await;
    conversation.say(51..=100, at(1)).await;
    conversation
}

pub(super) async fn erased_text_is_gone(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = marked_thread(&subject).await;
    assert_erased(&subject, &conversation, async || {
        conversation.commit(&Batch { erase: vec![message_id(50)], ..batch("erase") }, at(2)).await;
    })
    .await;
    assert_eq!(conversation.texts(at(51)).await.len(), 99);
}

pub(super) async fn replaced_text_is_gone(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = marked_thread(&subject).await;
    assert_erased(&subject, &conversation, async || {
        let replace = vec![Replacement { id: message_id(50), content: Content::text(Role::User, "nothing") }];
        conversation.commit(&Batch { replace, ..batch("replace") }, at(2)).await;
    })
    .await;
    assert_eq!(conversation.texts(at(51)).await.len(), 100);
}

pub(super) async fn trimmed_text_is_gone(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = marked_thread(&subject).await;
    assert_erased(&subject, &conversation, async || {
        conversation.commit(&Batch { trim_below: Some(60), ..batch("trim") }, at(2)).await;
    })
    .await;
    assert_eq!(conversation.texts(at(51)).await.len(), 41);
}

/// A thread that holds the marker in every place that there is.
async fn thoroughly_marked(subject: &Subject) -> Conversation {
    let marked_map = || Map::from_iter([(MARKER.to_owned(), marked().into())]);
    let open = OpenThread {
        title: Some(marked()),
        metadata: marked_map(),
        state: marked_map(),
        ..OpenThread::new(&ana(), thread_id(1)).with_key(thread_key(MARKER))
    };
    let conversation = Conversation::open_as(&subject.client, &ana(), &open, at(0)).await;
    let content =
        Content { metadata: marked_map(), agent: Some(MARKER.to_owned()), ..Content::text(Role::User, marked()) };
    let called = NewMessage { external_id: Some(MARKER.to_owned()), ..spoken(1, content) };
    let everywhere =
        Batch { append: vec![called], put: vec![put(app(MARKER), MARKER, &format!("\"{MARKER}\""))], ..batch(MARKER) };
    conversation.commit(&everywhere, at(1)).await;
    conversation
}

pub(super) async fn a_deleted_threads_text_is_gone(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = thoroughly_marked(&subject).await;
    assert_erased(&subject, &conversation, async || {
        subject.client.delete_thread(&ana(), conversation.id, at(2)).await.expect("the thread is there");
    })
    .await;
}

pub(super) async fn an_expired_threads_text_is_gone(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = thoroughly_marked(&subject).await;
    assert_erased(&subject, &conversation, async || {
        let patch = ThreadPatch { expires_at: Some(Some(at(40))), ..ThreadPatch::default() };
        conversation.commit(&Batch { patch, ..batch("expire") }, at(2)).await;
    })
    .await;
}

pub(super) async fn former_titles_are_gone(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let open = OpenThread { title: Some(marked()), ..OpenThread::new(&ana(), thread_id(1)) };
    let conversation = Conversation::open_as(&subject.client, &ana(), &open, at(0)).await;
    assert_erased(&subject, &conversation, async || {
        let patch = ThreadPatch { title: Some(None), ..ThreadPatch::default() };
        conversation.commit(&Batch { patch, ..batch("title") }, at(2)).await;
    })
    .await;
}

pub(super) async fn former_records_are_gone(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let marked = format!("\"{}\"", marked());
    let of_ana = RecordOwner::User(user_id("ana"));
    let puts = ["overwritten", "deleted", "expired"].map(|key| put(app("notes"), key, &marked));
    conversation.commit(&Batch { put: puts.to_vec(), ..batch("put") }, at(1)).await;
    for key in ["overwritten", "deleted", "expired"] {
        client.write_record(&ana(), &note(of_ana.clone(), key, &marked), at(1)).await.expect("writing works");
    }
    assert_erased(&subject, &conversation, async || {
        let expired = PutRecord { expires_at: Some(at(40)), ..put(app("notes"), "expired", &marked) };
        let puts = vec![put(app("notes"), "overwritten", "1"), expired];
        let delete = vec![named(app("notes"), "deleted")];
        conversation.commit(&Batch { put: puts, delete, ..batch("change") }, at(2)).await;
        for write in [
            note(of_ana.clone(), "overwritten", "1"),
            RecordWrite { value: None, ..note(of_ana.clone(), "deleted", "1") },
            RecordWrite {
                expires_at: Some(at(40)),
                value: Some(json(&marked)),
                ..note(of_ana.clone(), "expired", "1")
            },
        ] {
            client.write_record(&ana(), &write, at(2)).await.expect("writing works");
        }
    })
    .await;
}
