//! Reading everything while others write: the write-ahead log, and the copy of a file.

use std::time::Duration;

use threadkeep_core::{Reason, StoreError};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use super::{append_text, begin, now};

#[tokio::test]
async fn a_snapshot_says_how_the_log_grows_and_lets_go_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        SqliteOptions { background: false, busy_timeout: Duration::from_millis(50), ..SqliteOptions::default() };
    let store = SqliteStore::open(folder.path().join("a.db"), options).unwrap();
    begin(&store).await;
    let maintenance = store.backend().maintenance;
    let snapshot = maintenance.snapshot(now()).await.unwrap();
    assert_eq!(snapshot.log_growth_bytes(), Some(0));
    for number in 0_u32..50 {
        append_text(&store, &number.to_string(), &"long ".repeat(2_000)).await.unwrap();
    }
    assert!(snapshot.log_growth_bytes().unwrap() > 50 * 10_000, "{:?}", snapshot.log_growth_bytes());
    let totals = snapshot.totals().await.unwrap();
    assert_eq!((totals.threads, totals.messages), (1, 0));
    // The log cannot be emptied before nobody reads from it.
    let busy = maintenance.sweep(now()).await.unwrap_err();
    assert!(matches!(busy, StoreError::Unavailable { reason: Reason::Busy, .. }), "{busy:?}");
    drop(snapshot);
    maintenance.sweep(now()).await.unwrap();
    // What is left is the page that says that nothing is left to do.
    assert!(store.log_bytes() < 10_000, "{}", store.log_bytes());
}

#[tokio::test]
async fn a_copy_of_the_file_ends_though_others_write_all_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path, SqliteOptions { background: false, ..SqliteOptions::default() }).unwrap();
    begin(&store).await;
    for number in 0_u32..100 {
        append_text(&store, &number.to_string(), &"long ".repeat(20_000)).await.unwrap();
    }
    // Another process.
    let other = rusqlite::Connection::open(&path).unwrap();
    other.busy_timeout(Duration::from_secs(30)).unwrap();
    let mut steps = 0;
    let copy = folder.path().join("copy.db");
    store
        .backup_to(&copy, |_, _| {
            steps += 1;
            assert!(steps < 100, "each write begins the copy again");
            other.execute("INSERT OR REPLACE INTO marks (name, value) VALUES ('test', ?1)", [steps]).unwrap();
        })
        .unwrap();
    assert!(steps > 1, "all was copied in one step, so nothing was written meanwhile");
    let held = rusqlite::Connection::open(&copy).unwrap();
    let marks = held.query_row("SELECT count(*) FROM marks WHERE name = 'test'", [], |row| row.get::<_, i64>(0));
    assert_eq!(marks.unwrap(), 0, "the copy is as of its beginning");
    let copied = SqliteStore::open(&copy, SqliteOptions::default()).unwrap();
    assert_eq!(copied.backend().maintenance.verify().await.unwrap().findings, []);
}
