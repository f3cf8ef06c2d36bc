//! Which writes change the records stamp, and which do not.

#![expect(clippy::unwrap_used, reason = "a panic in a test names the failing line")]

use std::path::Path;
use std::sync::Arc;

use threadkeep_core::{
    Backend, Batch, Content, Fingerprint, IdempotencyKey, JsonText, MessageId, Namespace, NewMessage, OpenThread,
    RecordOwner, RecordWrite, Role, Scope, ThreadId, Timestamp,
};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

/// Opens another handle of a file. Handles are isolated from each other like processes.
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
    let mut batch = Batch::new(IdempotencyKey::FromCaller(key.to_owned()), Fingerprint::of(key.as_bytes()));
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
async fn appends_of_this_handle_keep_records_stamp() {
    let folder = tempfile::tempdir().unwrap();
    let backend = open(&folder.path().join("one.db"));
    let thread = open_thread(&backend, "thread").await;
    let (stamp, records) = (backend.store.stamp(), backend.store.records_stamp());
    assert_eq!(stamp, records);
    for key in ["one", "two", "three"] {
        append(&backend, thread, key).await;
        // A repeated commit writes nothing.
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
async fn writes_of_another_handle_change_records_stamp() {
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

/// A handle that mistook another handle's commit for its own would keep using cached records that the other has changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appends_do_not_hide_another_handles_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.db");
    let (one, other) = (Arc::new(open(&path)), open(&path));
    let writers: Vec<_> = (0..4).map(|writer| tokio::spawn(keep_appending(Arc::clone(&one), writer))).collect();
    for value in 0..200 {
        let before = one.store.records_stamp();
        write(&other, value).await;
        let after = one.store.records_stamp();
        // No stamp is available while the header is being written; nothing is cached then.
        assert!(before.is_none() || before != after, "{value}");
    }
    for writer in writers {
        writer.abort();
        assert!(writer.await.unwrap_err().is_cancelled(), "a writer failed");
    }
}

/// Appends in a loop and repeats each commit: one that writes nothing is the easiest to confuse with another handle's.
async fn keep_appending(backend: Arc<Backend>, writer: u32) {
    let thread = open_thread(&backend, &format!("thread {writer}")).await;
    for number in 0_u32.. {
        let key = format!("{writer} {}", number / 3);
        append(&backend, thread, &key).await;
        tokio::task::yield_now().await;
    }
}
