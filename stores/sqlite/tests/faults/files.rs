use std::fs;

use rusqlite::Connection;
use threadkeep_core::{MessageQuery, OnCorrupt, Reason, Severity, StoreError};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use crate::{append, assert_sound, begin, now, open, scope, texts, thread};

// S0.01
#[tokio::test]
async fn missing_folders_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("deep/er/store.db")).unwrap();
    begin(&store).await;
    assert_eq!(append(&store, "one").await.unwrap(), 1);
}

// S0.02
#[tokio::test]
async fn opening_a_filled_file_again_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    begin(&store).await;
    append(&store, "one").await.unwrap();
    drop(store);
    let store = open(&path).unwrap();
    begin(&store).await;
    assert_eq!(texts(&store).await.unwrap(), [(1, "one".to_owned())]);
}

#[test]
fn a_file_of_another_kind_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter.txt");
    let content = "Dear Sir or Madam, ".repeat(500);
    fs::write(&path, &content).unwrap();
    assert!(matches!(open(&path), Err(StoreError::Incompatible(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE birds (name TEXT)").unwrap();
    let before = fs::read(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert_eq!(error.to_string(), "incompatible store: the file is a SQLite database of another program");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_file_of_a_later_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 999).unwrap();
    let error = open(&path).unwrap_err();
    assert_eq!(error.to_string(), "incompatible store: the file has schema 999, this program knows up to 7");
}

#[test]
fn a_folder_in_place_of_a_file_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(open(folder.path()), Err(StoreError::Unavailable { .. })));
}

#[tokio::test]
async fn a_store_opened_read_only_reads_and_refuses_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    begin(&store).await;
    append(&store, "one").await.unwrap();
    let reader = SqliteStore::open(&path, SqliteOptions { read_only: true, ..SqliteOptions::default() }).unwrap();
    assert_eq!(texts(&reader).await.unwrap(), [(1, "one".to_owned())]);
    let refused = append(&reader, "two").await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable { reason: Reason::ReadOnly, maybe_applied: false, .. }));
    assert!(!refused.is_retryable());
    assert_eq!(texts(&store).await.unwrap().len(), 1);
}

// S0.28: one broken row does not blank the rest, and is never read as something else.
#[tokio::test]
async fn one_broken_row_is_told_and_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    begin(&store).await;
    for key in ["one", "two", "three"] {
        append(&store, key).await.unwrap();
    }
    let intruder = Connection::open(&path).unwrap();
    assert_eq!(intruder.execute("UPDATE messages SET body = '1u{\"broken' WHERE position & 255 = 2", []).unwrap(), 1);
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
async fn damaged_pages_are_told_and_never_read_as_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    begin(&store).await;
    for number in 0..400 {
        append(&store, &format!("message {number} {}", "and so on ".repeat(30))).await.unwrap();
    }
    let whole = texts(&store).await.unwrap();
    drop(store);
    let sound = fs::read(&path).unwrap();
    let pages = sound.len() / 4096;
    let (mut told, mut unharmed) = (0, 0);
    for page in 1..pages {
        let mut damaged = sound.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0xa5);
        fs::write(&path, &damaged).unwrap();
        // The first page is sound, so the file opens or says why not; nothing panics, and what is read is true.
        let Ok(store) = open(&path) else {
            told += 1;
            continue;
        };
        match texts(&store).await {
            Ok(read) => {
                assert_eq!(read, whole, "page {page}");
                unharmed += 1;
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Corrupt { .. }), "page {page}: {error}");
                told += 1;
            }
        }
        let is_found = store.backend().maintenance.verify().await.map_or(true, |report| !report.findings.is_empty());
        assert!(is_found, "page {page} is damaged and not found");
    }
    assert!(told > 30 && unharmed > 3, "{told} told, {unharmed} unharmed");
}

#[tokio::test]
async fn what_is_derived_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    begin(&store).await;
    for key in ["one", "two", "three"] {
        append(&store, key).await.unwrap();
    }
    let intruder = Connection::open(&path).unwrap();
    intruder.execute("UPDATE threads SET message_count = 77", []).unwrap();
    let maintenance = store.backend().maintenance;
    let found = maintenance.verify().await.unwrap().findings;
    assert_eq!(found.iter().map(|finding| finding.severity).collect::<Vec<_>>(), [Severity::Derived]);
    maintenance.repair(now()).await.unwrap();
    assert_sound(&store).await;
}

#[tokio::test]
async fn a_backup_is_a_whole_store_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("store.db")).unwrap();
    begin(&store).await;
    append(&store, "one").await.unwrap();
    let cursor = store.backend().store.list_changed_threads(&scope(), None, 10, now()).await.unwrap().cursor;
    let copy = folder.path().join("copy.db");
    store.backup_to(&copy, |_, _| {}).unwrap();
    append(&store, "two").await.unwrap();
    let copy_store = open(&copy).unwrap();
    assert_eq!(texts(&copy_store).await.unwrap(), [(1, "one".to_owned())]);
    // The copy may go another way from here on: it does not know the original's cursors.
    let changed = copy_store.backend().store.list_changed_threads(&scope(), Some(&cursor), 10, now()).await.unwrap();
    assert!(changed.reset);
    assert!(matches!(store.backup_to(&copy, |_, _| {}), Err(StoreError::Invalid { .. })));
    assert_sound(&copy_store).await;
}
