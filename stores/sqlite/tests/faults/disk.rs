use std::fs;
use std::path::Path;
use std::process::Command;

use threadkeep_core::{Reason, StoreError};

use crate::processes::given_path;
use crate::{append, append_text, assert_sound, begin, open, texts};

/// Runs one of this binary's tests in a mount namespace of its own, where a small file system stands at the given path.
/// `None` where the system does not permit it and the caller of the tests has said so.
fn run_on_small_disk(test: &str, options: &str) -> Option<()> {
    if std::env::var("THREADKEEP_LEFT_OUT").is_ok_and(|names| names.split(',').any(|name| name == "unshare")) {
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

fn free_some(folder: &Path) {
    fs::remove_file(folder.join("filler")).unwrap();
}

async fn fill_until_full(folder: &Path) {
    fs::write(folder.join("filler"), vec![7; 1_000_000]).unwrap();
    let store = open(&folder.join("store.db")).unwrap();
    begin(&store).await;
    let mut acknowledged = Vec::new();
    let refused = loop {
        let key = acknowledged.len().to_string();
        let text = format!("{key} {}", "some words to fill the disk ".repeat(40));
        match append_text(&store, &key, &text).await {
            Ok(_) => acknowledged.push(text),
            Err(error) => break error,
        }
        assert!(acknowledged.len() < 10_000, "the disk never filled");
    };
    assert!(
        matches!(refused, StoreError::Unavailable { reason: Reason::Full, maybe_applied: false, .. }),
        "{refused:?}"
    );
    let read = |texts: Vec<(u64, String)>| texts.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(read(texts(&store).await.unwrap()), acknowledged, "nothing lost, nothing half-written");
    drop(store);
    free_some(folder);
    let store = open(&folder.join("store.db")).unwrap();
    assert_eq!(read(texts(&store).await.unwrap()), acknowledged);
    append(&store, "after the disk had room again").await.unwrap();
    assert_eq!(texts(&store).await.unwrap().len(), acknowledged.len() + 1);
    assert_sound(&store).await;
}

#[tokio::test]
async fn a_full_disk_refuses_and_loses_nothing() {
    match given_path() {
        Some(folder) => fill_until_full(&folder).await,
        None => {
            run_on_small_disk("disk::a_full_disk_refuses_and_loses_nothing", "size=6m");
        }
    }
}

async fn protect_and_read(folder: &Path) {
    let path = folder.join("store.db");
    let store = open(&path).unwrap();
    begin(&store).await;
    append(&store, "one").await.unwrap();
    drop(store);
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(folder).status().unwrap();
    assert!(remounted.success());
    // SQLite cannot make the log's index beside the file: opening says so, and nothing is changed.
    let refused = open(&path).unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable { maybe_applied: false, .. }), "{refused:?}");
    let remounted = Command::new("mount").args(["-o", "remount,rw"]).arg(folder).status().unwrap();
    assert!(remounted.success());
    assert_eq!(texts(&open(&path).unwrap()).await.unwrap(), [(1, "one".to_owned())]);
}

#[tokio::test]
async fn a_write_protected_disk_is_told() {
    match given_path() {
        Some(folder) => protect_and_read(&folder).await,
        None => {
            run_on_small_disk("disk::a_write_protected_disk_is_told", "size=6m");
        }
    }
}
