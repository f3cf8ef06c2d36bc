use std::fs;
use std::path::Path;
use std::process::Command;

use threadkeep_core::{Reason, StoreError};

use crate::processes::path_from_parent;
use crate::{append, append_text, assert_no_findings, open, open_thread, texts};

/// Runs one of this binary's tests in a child process with its own mount namespace, and with a small file system mounted at the child's
/// path. Returns `None` if `THREADKEEP_MISSING_PROGRAMS` contains `unshare`, because the system does not permit this.
fn run_on_small_disk(test: &str, options: &str) -> Option<()> {
    if std::env::var("THREADKEEP_MISSING_PROGRAMS").is_ok_and(|names| names.split(',').any(|name| name == "unshare")) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = std::env::current_exe().unwrap();
    let script = "mount -t tmpfs -o \"$0\" tmpfs \"$THREADKEEP_TEST_CHILD\" && exec \"$1\" --exact \"$2\" --nocapture";
    let output = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", script, options])
        .arg(binary)
        .arg(test)
        .env("THREADKEEP_TEST_CHILD", folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

fn remove_filler(folder: &Path) {
    fs::remove_file(folder.join("filler")).unwrap();
}

async fn fill_until_full(folder: &Path) {
    fs::write(folder.join("filler"), vec![7; 1_000_000]).unwrap();
    let store = open(&folder.join("store.db")).unwrap();
    open_thread(&store).await;
    let mut acknowledged = Vec::new();
    let error = loop {
        let key = acknowledged.len().to_string();
        let text = format!("{key} {}", "some words to fill the disk ".repeat(40));
        match append_text(&store, &key, &text).await {
            Ok(_) => acknowledged.push(text),
            Err(error) => break error,
        }
        assert!(acknowledged.len() < 10_000, "the disk did not become full");
    };
    assert!(matches!(error, StoreError::Unavailable { reason: Reason::Full, maybe_applied: false, .. }), "{error:?}");
    let without_positions = |texts: Vec<(u64, String)>| texts.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(without_positions(texts(&store).await.unwrap()), acknowledged, "messages differ");
    drop(store);
    remove_filler(folder);
    let store = open(&folder.join("store.db")).unwrap();
    assert_eq!(without_positions(texts(&store).await.unwrap()), acknowledged);
    append(&store, "after space was freed").await.unwrap();
    assert_eq!(texts(&store).await.unwrap().len(), acknowledged.len() + 1);
    assert_no_findings(&store).await;
}

#[tokio::test]
async fn full_disk_rejects_commits_without_data_loss() {
    match path_from_parent() {
        Some(folder) => fill_until_full(&folder).await,
        None => {
            run_on_small_disk("disk::full_disk_rejects_commits_without_data_loss", "size=6m");
        }
    }
}

async fn protect_and_read(folder: &Path) {
    let path = folder.join("store.db");
    let store = open(&path).unwrap();
    open_thread(&store).await;
    append(&store, "one").await.unwrap();
    drop(store);
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(folder).status().unwrap();
    assert!(remounted.success());
    // SQLite cannot create the index of the log, so opening the file fails, and nothing is changed.
    let error = open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { maybe_applied: false, .. }), "{error:?}");
    let remounted = Command::new("mount").args(["-o", "remount,rw"]).arg(folder).status().unwrap();
    assert!(remounted.success());
    assert_eq!(texts(&open(&path).unwrap()).await.unwrap(), [(1, "one".to_owned())]);
}

#[tokio::test]
async fn open_fails_on_a_write_protected_disk() {
    match path_from_parent() {
        Some(folder) => protect_and_read(&folder).await,
        None => {
            run_on_small_disk("disk::open_fails_on_a_write_protected_disk", "size=6m");
        }
    }
}
