//! Snapshots and backups during concurrent writes.

use std::time::Duration;

use threadkeep_core::{Reason, StoreError};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use super::{append_text, now, open_thread};

#[tokio::test]
async fn snapshot_reports_log_growth_and_releases_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        SqliteOptions { background: false, busy_timeout: Duration::from_millis(50), ..SqliteOptions::default() };
    let store = SqliteStore::open(folder.path().join("a.db"), options).unwrap();
    open_thread(&store).await;
    let maintenance = store.backend().maintenance;
    let snapshot = maintenance.snapshot(now()).await.unwrap();
    assert_eq!(snapshot.log_growth_bytes(), Some(0));
    for number in 0_u32..50 {
        append_text(&store, &number.to_string(), &"long ".repeat(2_000)).await.unwrap();
    }
    assert!(snapshot.log_growth_bytes().unwrap() > 50 * 10_000, "{:?}", snapshot.log_growth_bytes());
    let totals = snapshot.totals().await.unwrap();
    assert_eq!((totals.threads, totals.messages), (1, 0));
    // The log cannot be truncated while the snapshot reads from it.
    let busy = maintenance.sweep(now()).await.unwrap_err();
    assert!(matches!(busy, StoreError::Unavailable { reason: Reason::Busy, .. }), "{busy:?}");
    drop(snapshot);
    maintenance.sweep(now()).await.unwrap();
    // Only the page in which the truncation is recorded is left.
    assert!(store.log_bytes() < 10_000, "{}", store.log_bytes());
}

#[tokio::test]
async fn backup_completes_during_concurrent_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path, SqliteOptions { background: false, ..SqliteOptions::default() }).unwrap();
    open_thread(&store).await;
    for number in 0_u32..100 {
        append_text(&store, &number.to_string(), &"long ".repeat(20_000)).await.unwrap();
    }
    // A separate connection, like one of another process.
    let other = rusqlite::Connection::open(&path).unwrap();
    other.busy_timeout(Duration::from_secs(30)).unwrap();
    let mut steps = 0;
    let copy = folder.path().join("copy.db");
    store
        .backup_to(&copy, |_, _| {
            steps += 1;
            assert!(steps < 100, "each write restarts the copy");
            other.execute("INSERT OR REPLACE INTO marks (name, value) VALUES ('test', ?1)", [steps]).unwrap();
        })
        .unwrap();
    assert!(steps > 1, "the copy took a single step, so nothing was written during it");
    let connection = rusqlite::Connection::open(&copy).unwrap();
    let marks = connection.query_row("SELECT count(*) FROM marks WHERE name = 'test'", [], |row| row.get::<_, i64>(0));
    assert_eq!(marks.unwrap(), 0, "the copy must not contain writes made after it started");
    let copied = SqliteStore::open(&copy, SqliteOptions::default()).unwrap();
    assert_eq!(copied.backend().maintenance.verify().await.unwrap().findings, []);
}
