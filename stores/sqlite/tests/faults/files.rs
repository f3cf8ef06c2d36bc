use std::fs;

use rusqlite::Connection;
use threadkeep_core::{MessageQuery, OnCorrupt, Reason, Severity, StoreError};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use crate::{append, assert_no_findings, now, open, open_thread, scope, texts, thread};

// S0.01
#[tokio::test]
async fn open_creates_missing_directories() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("deep/er/store.db")).unwrap();
    open_thread(&store).await;
    assert_eq!(append(&store, "one").await.unwrap(), 1);
}

// S0.02
#[tokio::test]
async fn reopening_keeps_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    open_thread(&store).await;
    append(&store, "one").await.unwrap();
    drop(store);
    let store = open(&path).unwrap();
    open_thread(&store).await;
    assert_eq!(texts(&store).await.unwrap(), [(1, "one".to_owned())]);
}

#[test]
fn open_rejects_and_preserves_a_file_of_another_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter.txt");
    let content = "Dear Sir or Madam, ".repeat(500);
    fs::write(&path, &content).unwrap();
    assert!(matches!(open(&path), Err(StoreError::Incompatible(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn open_rejects_and_preserves_a_database_of_another_application() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE birds (name TEXT)").unwrap();
    let before = fs::read(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert_eq!(error.to_string(), "incompatible store: the file is a SQLite database of another application");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn open_rejects_a_file_of_a_later_version() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 999).unwrap();
    let error = open(&path).unwrap_err();
    assert_eq!(
        error.to_string(),
        "incompatible store: the file has schema version 999; this program supports versions up to 8"
    );
}

#[test]
fn open_rejects_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(open(folder.path()), Err(StoreError::Unavailable { .. })));
}

#[tokio::test]
async fn read_only_store_rejects_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    open_thread(&store).await;
    append(&store, "one").await.unwrap();
    let reader = SqliteStore::open(&path, SqliteOptions { read_only: true, ..SqliteOptions::default() }).unwrap();
    assert_eq!(texts(&reader).await.unwrap(), [(1, "one".to_owned())]);
    let error = append(&reader, "two").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { reason: Reason::ReadOnly, maybe_applied: false, .. }));
    assert!(!error.is_retryable());
    assert_eq!(texts(&store).await.unwrap().len(), 1);
}

// S0.28
#[tokio::test]
async fn corrupt_row_is_reported_and_other_rows_stay_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    open_thread(&store).await;
    for key in ["one", "two", "three"] {
        append(&store, key).await.unwrap();
    }
    let connection = Connection::open(&path).unwrap();
    assert_eq!(connection.execute("UPDATE messages SET body = '1u{\"broken' WHERE position & 255 = 2", []).unwrap(), 1);
    let read = |on_corrupt| {
        let query = MessageQuery { on_corrupt, ..MessageQuery::newest(10) };
        let backend = store.backend();
        async move { backend.store.list_messages(&scope(), thread(), &query, now()).await }
    };
    assert!(matches!(read(OnCorrupt::Fail).await, Err(StoreError::Corrupt { .. })));
    let page = read(OnCorrupt::Report).await.unwrap();
    assert_eq!(page.messages.iter().map(|message| message.seq).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(page.corrupt.iter().map(|corrupt| corrupt.seq).collect::<Vec<_>>(), [2]);
    let report = store.backend().maintenance.verify().await.unwrap();
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].severity, Severity::Damage);
    assert_eq!(report.findings[0].thread, Some(thread()));
    assert!(!report.findings[0].detail.contains("broken"), "the finding quotes the data");
}

#[tokio::test]
async fn damaged_pages_cause_errors_and_never_wrong_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    open_thread(&store).await;
    for number in 0..400 {
        append(&store, &format!("message {number} {}", "and so on ".repeat(30))).await.unwrap();
    }
    let expected = texts(&store).await.unwrap();
    drop(store);
    let intact = fs::read(&path).unwrap();
    let pages = intact.len() / 4096;
    let (mut failed, mut unaffected) = (0, 0);
    for page in 1..pages {
        let mut damaged = intact.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0xa5);
        fs::write(&path, &damaged).unwrap();
        let Ok(store) = open(&path) else {
            failed += 1;
            continue;
        };
        match texts(&store).await {
            Ok(read) => {
                assert_eq!(read, expected, "page {page}");
                unaffected += 1;
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Corrupt { .. }), "page {page}: {error}");
                failed += 1;
            }
        }
        let is_found = store.backend().maintenance.verify().await.map_or(true, |report| !report.findings.is_empty());
        assert!(is_found, "the damage to page {page} was not found");
    }
    assert!(failed > 30 && unaffected > 3, "{failed} failed, {unaffected} unaffected");
}

#[tokio::test]
async fn repair_rebuilds_derived_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    open_thread(&store).await;
    for key in ["one", "two", "three"] {
        append(&store, key).await.unwrap();
    }
    let connection = Connection::open(&path).unwrap();
    connection.execute("UPDATE threads SET message_count = 77", []).unwrap();
    let maintenance = store.backend().maintenance;
    let found = maintenance.verify().await.unwrap().findings;
    assert_eq!(found.iter().map(|finding| finding.severity).collect::<Vec<_>>(), [Severity::Derived]);
    maintenance.repair(now()).await.unwrap();
    assert_no_findings(&store).await;
}

#[tokio::test]
async fn backup_is_an_independent_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("store.db")).unwrap();
    open_thread(&store).await;
    append(&store, "one").await.unwrap();
    let cursor = store.backend().store.list_changed_threads(&scope(), None, 10, now()).await.unwrap().cursor;
    let copy = folder.path().join("copy.db");
    store.backup_to(&copy, |_, _| {}).unwrap();
    append(&store, "two").await.unwrap();
    let copy_store = open(&copy).unwrap();
    assert_eq!(texts(&copy_store).await.unwrap(), [(1, "one".to_owned())]);
    // The histories may diverge, so the copy does not accept the original's cursors.
    let changed = copy_store.backend().store.list_changed_threads(&scope(), Some(&cursor), 10, now()).await.unwrap();
    assert!(changed.reset);
    assert!(matches!(store.backup_to(&copy, |_, _| {}), Err(StoreError::Invalid { .. })));
    assert_no_findings(&copy_store).await;
}
