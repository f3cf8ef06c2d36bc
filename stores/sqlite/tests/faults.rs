//! Faults: a full disk; files that are damaged, shared or write-protected; files of other programs. Operations succeed or return a
//! typed error.

#![expect(clippy::unwrap_used, reason = "a panic in a test names the failing line")]

#[path = "faults/damage.rs"]
mod damage;
#[path = "faults/deferred.rs"]
mod deferred;
#[path = "faults/disk.rs"]
mod disk;
#[path = "faults/files.rs"]
mod files;
#[path = "faults/processes.rs"]
mod processes;
#[path = "faults/readers.rs"]
mod readers;
#[path = "faults/snapshots.rs"]
mod snapshots;

use std::path::Path;

use threadkeep_core::{
    Batch, Content, Fingerprint, IdempotencyKey, MessageId, MessageQuery, NewMessage, OpenThread, Role, Scope,
    StoreError, ThreadId, Timestamp,
};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, SqliteOptions::default())
}

fn scope() -> Scope {
    Scope::user("acme", "ada").expect("valid names")
}

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().expect("an instant")
}

fn thread() -> ThreadId {
    ThreadId::from_name(b"the thread of these tests")
}

async fn open_thread(store: &SqliteStore) {
    let backend = store.backend();
    backend.store.open_thread(&scope(), OpenThread::new(&scope(), thread()), now()).await.expect("a thread");
}

fn batch(key: &str, text: &str) -> Batch {
    let mut batch = Batch::new(IdempotencyKey::FromCaller(key.to_owned()), Fingerprint::of(key.as_bytes()));
    batch.append.push(NewMessage {
        id: MessageId::from_name(key.as_bytes()),
        external_id: None,
        created_at: now(),
        content: Content::text(Role::User, text),
    });
    batch
}

/// Appends a message with `key` as its text.
async fn append(store: &SqliteStore, key: &str) -> Result<u64, StoreError> {
    append_text(store, key, key).await
}

async fn append_text(store: &SqliteStore, key: &str, text: &str) -> Result<u64, StoreError> {
    let outcome = store.backend().store.commit(&scope(), thread(), batch(key, text), now()).await?;
    Ok(outcome.first_seq)
}

/// Returns the positions and texts of all messages of the thread, oldest first.
async fn texts(store: &SqliteStore) -> Result<Vec<(u64, String)>, StoreError> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let query = MessageQuery::following(after, 1000);
        let page = store.backend().store.list_messages(&scope(), thread(), &query, now()).await?;
        all.extend(page.messages.iter().map(|message| (message.seq, message.plain_text().into_owned())));
        match page.messages.last() {
            Some(last) if page.more => after = last.seq,
            _ => return Ok(all),
        }
    }
}

async fn assert_no_findings(store: &SqliteStore) {
    let report = store.backend().maintenance.verify().await.expect("a report");
    assert_eq!(report.findings, []);
}
