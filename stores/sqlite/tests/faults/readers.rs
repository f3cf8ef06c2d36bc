//! Text is erased while readers use an older snapshot: the last bytes of the text are removed when the readers have ended, without
//! another sweep.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use threadkeep_core::{Reason, StoreError};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use super::{append, append_text, assert_no_findings, now, open_thread, scope, thread};

const MARKER: &str = "quixotryzzling";
const TIMEOUT: Duration = Duration::from_secs(60);

fn open(path: &Path) -> SqliteStore {
    let options = SqliteOptions { busy_timeout: Duration::from_millis(100), ..SqliteOptions::default() };
    SqliteStore::open(path, options).unwrap()
}

fn contain_marker(files: &[PathBuf]) -> bool {
    files.iter().any(|file| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes())
    })
}

/// Waits until no file contains the marker.
fn wait_until_erased(files: &[PathBuf]) {
    let started = Instant::now();
    while contain_marker(files) {
        assert!(started.elapsed() < TIMEOUT, "the text is still in the files");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Creates a store that contains the marker, and a reader with an open snapshot of the store.
async fn store_with_reader(path: &Path) -> (SqliteStore, Connection) {
    let store = open(path);
    open_thread(&store).await;
    append_text(&store, "marked", MARKER).await.unwrap();
    let reader = Connection::open(path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count: i64 = reader.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
    (store, reader)
}

/// Erases the text, and checks that the sweep fails because of the reader.
async fn erase(store: &SqliteStore) {
    store.backend().store.delete_thread(&scope(), thread(), now()).await.unwrap();
    let result = store.backend().maintenance.sweep(now()).await;
    assert!(matches!(result, Err(StoreError::Unavailable { reason: Reason::Busy, .. })), "{result:?}");
    assert!(contain_marker(&store.files()));
}

#[tokio::test(flavor = "multi_thread")]
async fn erasure_completes_after_the_reader_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (store, reader) = store_with_reader(&folder.path().join("store.db")).await;
    erase(&store).await;
    reader.execute_batch("ROLLBACK").unwrap();
    wait_until_erased(&store.files());
    assert_no_findings(&store).await;
    // The store still accepts writes.
    let batch = super::batch("next", "next");
    let open = threadkeep_core::OpenThread::new(&scope(), threadkeep_core::ThreadId::from_name(b"another thread"));
    store.backend().store.open_thread(&scope(), open.clone(), now()).await.unwrap();
    store.backend().store.commit(&scope(), open.id, batch, now()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_completes_the_erasure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let (store, reader) = store_with_reader(&path).await;
    let other = open(&path);
    erase(&store).await;
    drop(store);
    reader.execute_batch("ROLLBACK").unwrap();
    wait_until_erased(&other.files());
    assert_no_findings(&other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_reader_does_not_block_writers() {
    let folder = tempfile::tempdir().unwrap();
    let (store, reader) = store_with_reader(&folder.path().join("store.db")).await;
    store.backend().store.delete_thread(&scope(), thread(), now()).await.unwrap();
    store.backend().maintenance.sweep(now()).await.unwrap_err();
    let new_thread = threadkeep_core::ThreadId::from_name(b"a new thread");
    let open = threadkeep_core::OpenThread::new(&scope(), new_thread);
    store.backend().store.open_thread(&scope(), open, now()).await.unwrap();
    for number in 0..200 {
        let batch = super::batch(&number.to_string(), "more");
        store.backend().store.commit(&scope(), new_thread, batch, now()).await.unwrap();
    }
    reader.execute_batch("ROLLBACK").unwrap();
    wait_until_erased(&store.files());
    drop(append(&store, "late").await.unwrap_err());
    assert_no_findings(&store).await;
}
