//! What the stamp of records stays the same over, and what it never does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

use std::path::Path;
use std::sync::Arc;

use threadkeep_core::{
    Backend, Batch, Content, Fingerprint, IdempotencyKey, JsonText, MessageId, Namespace, NewMessage, OpenThread,
    RecordOwner, RecordWrite, Role, Scope, ThreadId, Timestamp,
};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

/// One of several handles of a file: to each other they are as processes are.
fn open(path: &Path) -> Backend {
    SqliteStore::open(path, SqliteOptions { background: false, ..SqliteOptions::default() }).unwrap().backend()
}

fn scope() -> Scope {
    Scope::tenant("acme").unwrap()
}

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

async fn open_thread(backend: &Backend, name: &str) -> ThreadId {
    let thread = ThreadId::from_name(name.as_bytes());
    backend.store.open_thread(&scope(), OpenThread::new(&scope(), thread), now()).await.unwrap();
    thread
}

async fn append(backend: &Backend, thread: ThreadId, key: &str) {
    let mut batch = Batch::new(IdempotencyKey::Given(key.to_owned()), Fingerprint::of(key.as_bytes()));
    batch.append.push(NewMessage {
        id: MessageId::from_name(key.as_bytes()),
        external_id: None,
        created_at: now(),
        content: Content::text(Role::User, key),
    });
    backend.store.commit(&scope(), thread, batch, now()).await.unwrap();
}

async fn write(backend: &Backend, value: u32) {
    let write = RecordWrite {
        owner: RecordOwner::Tenant,
        namespace: Namespace::system("keys").unwrap(),
        key: "one".to_owned(),
        expected: None,
        value: Some(JsonText::of(&value).unwrap()),
        expires_at: None,
    };
    backend.store.write_record(&scope(), write, now()).await.unwrap();
}

#[tokio::test]
async fn what_this_handle_appends_leaves_the_stamp_of_records_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let backend = open(&folder.path().join("one.db"));
    let thread = open_thread(&backend, "thread").await;
    let (stamp, records) = (backend.store.stamp(), backend.store.records_stamp());
    assert_eq!(stamp, records);
    for key in ["one", "two", "three"] {
        append(&backend, thread, key).await;
        // A repetition writes nothing.
        append(&backend, thread, key).await;
        assert_eq!(backend.store.records_stamp(), records, "{key}");
        assert_ne!(backend.store.stamp(), stamp, "{key}");
    }
    write(&backend, 1).await;
    let written = backend.store.records_stamp();
    assert_ne!(written, records);
    append(&backend, thread, "four").await;
    assert_eq!(backend.store.records_stamp(), written);
}

#[tokio::test]
async fn whatever_another_handle_writes_changes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.db");
    let (one, other) = (open(&path), open(&path));
    let thread = open_thread(&one, "thread").await;
    let mut last = one.store.records_stamp();
    for step in 0..6 {
        append(&one, thread, &format!("before {step}")).await;
        if step % 2 == 0 {
            append(&other, thread, &format!("other {step}")).await
        } else {
            write(&other, step).await
        }
        append(&one, thread, &format!("after {step}")).await;
        let stamp = one.store.records_stamp();
        assert_ne!(stamp, last, "{step}");
        last = stamp;
    }
}

/// Whoever takes another handle's commit for one of its own goes on with what that one changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_record_of_another_handle_is_never_missed_among_appends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.db");
    let (one, other) = (Arc::new(open(&path)), open(&path));
    let writers: Vec<_> = (0..4).map(|writer| tokio::spawn(keep_appending(Arc::clone(&one), writer))).collect();
    for value in 0..200 {
        let before = one.store.records_stamp();
        write(&other, value).await;
        let after = one.store.records_stamp();
        // While a header is being written there is none to go by, which keeps nothing either.
        assert!(before.is_none() || before != after, "{value}");
    }
    for writer in writers {
        writer.abort();
        assert!(writer.await.unwrap_err().is_cancelled(), "a writer failed");
    }
}

/// Appends, and repeats what it appended: a commit that writes nothing is the easiest to be mistaken about.
async fn keep_appending(backend: Arc<Backend>, writer: u32) {
    let thread = open_thread(&backend, &format!("thread {writer}")).await;
    for number in 0_u32.. {
        let key = format!("{writer} {}", number / 3);
        append(&backend, thread, &key).await;
        tokio::task::yield_now().await;
    }
}
