//! Others who read an older state while text is erased: its last bytes go once they have left, and nobody has to be started
//! again for it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use threadkeep_core::{Reason, StoreError};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use super::{append, append_text, assert_sound, begin, now, scope, thread};

const MARKER: &str = "quixotryzzling";
/// How long an event is waited for before a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

fn open(path: &Path) -> SqliteStore {
    let options = SqliteOptions { busy_timeout: Duration::from_millis(100), ..SqliteOptions::default() };
    SqliteStore::open(path, options).unwrap()
}

fn holds_marker(files: &[PathBuf]) -> bool {
    files.iter().any(|file| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes())
    })
}

/// Waits until the marker is in no file.
fn wait_until_gone(files: &[PathBuf]) {
    let began = Instant::now();
    while holds_marker(files) {
        assert!(began.elapsed() < PATIENCE, "the text is still in the files");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A store with the marker, and somebody else who reads as of now.
async fn read_by_another(path: &Path) -> (SqliteStore, Connection) {
    let store = open(path);
    begin(&store).await;
    append_text(&store, "marked", MARKER).await.unwrap();
    let reader = Connection::open(path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count: i64 = reader.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
    (store, reader)
}

/// Erases everything and sweeps, which cannot be finished now.
async fn erase(store: &SqliteStore) {
    store.backend().store.delete_thread(&scope(), thread(), now()).await.unwrap();
    let swept = store.backend().maintenance.sweep(now()).await;
    assert!(matches!(swept, Err(StoreError::Unavailable { reason: Reason::Busy, .. })), "{swept:?}");
    assert!(holds_marker(&store.files()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_is_finished_once_the_reader_has_left() {
    let folder = tempfile::tempdir().unwrap();
    let (store, reader) = read_by_another(&folder.path().join("store.db")).await;
    erase(&store).await;
    reader.execute_batch("ROLLBACK").unwrap();
    wait_until_gone(&store.files());
    assert_sound(&store).await;
    // What comes after it is kept as ever.
    let another = super::batch("next", "next");
    let open = threadkeep_core::OpenThread::new(&scope(), threadkeep_core::ThreadId::from_name(b"another thread"));
    store.backend().store.open_thread(&scope(), open.clone(), now()).await.unwrap();
    store.backend().store.commit(&scope(), open.id, another, now()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_the_file_open_finishes_an_erasure_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let (store, reader) = read_by_another(&path).await;
    let other = open(&path);
    erase(&store).await;
    drop(store);
    reader.execute_batch("ROLLBACK").unwrap();
    wait_until_gone(&other.files());
    assert_sound(&other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stays_holds_up_no_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (store, reader) = read_by_another(&folder.path().join("store.db")).await;
    store.backend().store.delete_thread(&scope(), thread(), now()).await.unwrap();
    store.backend().maintenance.sweep(now()).await.unwrap_err();
    let fresh = threadkeep_core::ThreadId::from_name(b"a fresh thread");
    let open = threadkeep_core::OpenThread::new(&scope(), fresh);
    store.backend().store.open_thread(&scope(), open, now()).await.unwrap();
    for number in 0..200 {
        let batch = super::batch(&number.to_string(), "more");
        store.backend().store.commit(&scope(), fresh, batch, now()).await.unwrap();
    }
    reader.execute_batch("ROLLBACK").unwrap();
    wait_until_gone(&store.files());
    drop(append(&store, "late").await.unwrap_err());
    assert_sound(&store).await;
}
