//! Tests which writes change the stamp of records ([`threadkeep_core::Store::records_stamp`]).

#![expect(clippy::unwrap_used, reason = "a panic in a test names the failing line")]

use std::path::Path;
use std::sync::Arc;

use threadkeep_core::{
    Backend, Batch, Content, Fingerprint, IdempotencyKey, JsonText, MessageId, Namespace, NewMessage, OpenThread,
    RecordOwner, RecordWrite, Role, Scope, ThreadId, Timestamp,
};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

/// Opens a new handle to a file. Handles are isolated from each other like processes.
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

async fn write_record(backend: &Backend, value: u32) {
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
    write_record(&backend, 1).await;
    let after_write = backend.store.records_stamp();
    assert_ne!(after_write, records);
    append(&backend, thread, "four").await;
    assert_eq!(backend.store.records_stamp(), after_write);
}

#[tokio::test]
async fn writes_of_another_handle_change_records_stamp() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.db");
    let (first, second) = (open(&path), open(&path));
    let thread = open_thread(&first, "thread").await;
    let mut last = first.store.records_stamp();
    for step in 0..6 {
        append(&first, thread, &format!("before {step}")).await;
        if step % 2 == 0 {
            append(&second, thread, &format!("other {step}")).await
        } else {
            write_record(&second, step).await
        }
        append(&first, thread, &format!("after {step}")).await;
        let stamp = first.store.records_stamp();
        assert_ne!(stamp, last, "{step}");
        last = stamp;
    }
}

/// A handle must not mistake another handle's commit for its own: it would continue to use cached records that the other handle has
/// changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appends_do_not_hide_another_handles_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.db");
    let (first, second) = (Arc::new(open(&path)), open(&path));
    let writers: Vec<_> = (0..4).map(|writer| tokio::spawn(keep_appending(Arc::clone(&first), writer))).collect();
    for value in 0..200 {
        let before = first.store.records_stamp();
        write_record(&second, value).await;
        let after = first.store.records_stamp();
        // While the header is being written, there is no stamp, so nothing is cached.
        assert!(before.is_none() || before != after, "{value}");
    }
    for writer in writers {
        writer.abort();
        assert!(writer.await.unwrap_err().is_cancelled(), "a writer failed");
    }
}

/// Appends in a loop, and repeats each commit: a repeated commit writes nothing, so it is the easiest to confuse with a commit of
/// another handle.
async fn keep_appending(backend: Arc<Backend>, writer: u32) {
    let thread = open_thread(&backend, &format!("thread {writer}")).await;
    for number in 0_u32.. {
        let key = format!("{writer} {}", number / 3);
        append(&backend, thread, &key).await;
        tokio::task::yield_now().await;
    }
}
