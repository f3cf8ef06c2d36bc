use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures::StreamExt;
use threadkeep_core::WakeUp;

use crate::{append, assert_no_findings, open, open_thread, texts};

const MESSAGES_PER_PROCESS: usize = 150;

/// Creates a command that runs one of this binary's tests in another process, and passes a path to it.
pub(crate) fn child(test: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a running program has a path"));
    command.args(["--exact", test, "--nocapture"]).env("THREADKEEP_TEST_CHILD", path).stdout(Stdio::null());
    command
}

/// Returns the path that [`child`] passed to this process; `None` in the parent process.
pub(crate) fn path_from_parent() -> Option<std::path::PathBuf> {
    std::env::var_os("THREADKEEP_TEST_CHILD").map(Into::into)
}

fn start_writer(path: &Path, name: &str) -> Child {
    child("processes::three_processes_write_one_file", path).env("THREADKEEP_TEST_NAME", name).spawn().unwrap()
}

async fn write_as(path: &Path, name: &str) {
    let store = open(path).unwrap();
    open_thread(&store).await;
    for number in 0..MESSAGES_PER_PROCESS {
        append(&store, &format!("{name} {number}")).await.unwrap();
    }
}

// S4.37
#[tokio::test(flavor = "multi_thread")]
async fn three_processes_write_one_file() {
    if let Some(path) = path_from_parent() {
        return write_as(&path, &std::env::var("THREADKEEP_TEST_NAME").unwrap()).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    // The three processes also race to create the file.
    let children: Vec<Child> = ["first", "second"].iter().map(|name| start_writer(&path, name)).collect();
    write_as(&path, "third").await;
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let store = open(&path).unwrap();
    let read = texts(&store).await.unwrap();
    assert_eq!(read.len(), 3 * MESSAGES_PER_PROCESS);
    assert!(read.iter().zip(1..).all(|((seq, _), expected)| *seq == expected), "positions have gaps");
    for name in ["first", "second", "third"] {
        let texts_of_process: Vec<String> =
            read.iter().filter(|(_, text)| text.starts_with(name)).map(|(_, text)| text.clone()).collect();
        assert_eq!(
            texts_of_process,
            (0..MESSAGES_PER_PROCESS).map(|number| format!("{name} {number}")).collect::<Vec<_>>(),
            "messages are out of order"
        );
    }
    assert_no_findings(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_of_another_process_sends_wake_up() {
    if let Some(path) = path_from_parent() {
        append(&open(&path).unwrap(), "from elsewhere").await.unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    open_thread(&store).await;
    let mut wake_ups = store.backend().store.wake_ups().await.unwrap();
    // The wake-up for the commit by this process names the thread, so the next wake-up is from the other process.
    append(&store, "from here").await.unwrap();
    assert!(matches!(wake_ups.next().await, Some(WakeUp::Thread { .. })));
    let status = child("processes::commit_of_another_process_sends_wake_up", &path).status().unwrap();
    assert!(status.success());
    let wake_up =
        tokio::time::timeout(Duration::from_secs(30), wake_ups.next()).await.expect("a wake-up arrives in time");
    assert_eq!(wake_up, Some(WakeUp::Unspecified));
    assert_eq!(texts(&store).await.unwrap().len(), 2);
}

#[test]
fn new_file_can_be_opened_concurrently() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let path = folder.path().join(format!("{round}.db"));
        let barrier = std::sync::Barrier::new(16);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    barrier.wait();
                    open(&path).unwrap();
                });
            }
        });
    }
}
