use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures::StreamExt;
use threadkeep_core::WakeUp;

use crate::{append, assert_sound, begin, open, texts};

const EACH: usize = 150;

/// Runs one of this binary's own tests as another process, with a path for it.
pub(crate) fn child(test: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test has a binary"));
    command.args(["--exact", test, "--nocapture"]).env("THREADKEEP_TEST_CHILD", path).stdout(Stdio::null());
    command
}

/// The path that [`child`] gave; `None` when the test runs by itself.
pub(crate) fn given_path() -> Option<std::path::PathBuf> {
    std::env::var_os("THREADKEEP_TEST_CHILD").map(Into::into)
}

fn start_writer(path: &Path, name: &str) -> Child {
    child("processes::two_processes_write_one_file", path).env("THREADKEEP_TEST_NAME", name).spawn().unwrap()
}

async fn write_as(path: &Path, name: &str) {
    let store = open(path).unwrap();
    begin(&store).await;
    for number in 0..EACH {
        append(&store, &format!("{name} {number}")).await.unwrap();
    }
}

// S4.37
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_write_one_file() {
    if let Some(path) = given_path() {
        return write_as(&path, &std::env::var("THREADKEEP_TEST_NAME").unwrap()).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    // Three processes meet at a file that is not there yet, too.
    let children: Vec<Child> = ["first", "second"].iter().map(|name| start_writer(&path, name)).collect();
    write_as(&path, "third").await;
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let store = open(&path).unwrap();
    let read = texts(&store).await.unwrap();
    assert_eq!(read.len(), 3 * EACH);
    assert!(read.iter().zip(1..).all(|((seq, _), expected)| *seq == expected), "positions are gapless");
    for name in ["first", "second", "third"] {
        let own: Vec<String> =
            read.iter().filter(|(_, text)| text.starts_with(name)).map(|(_, text)| text.clone()).collect();
        assert_eq!(own, (0..EACH).map(|number| format!("{name} {number}")).collect::<Vec<_>>(), "in order");
    }
    assert_sound(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_another_process_wakes_listeners() {
    if let Some(path) = given_path() {
        append(&open(&path).unwrap(), "from elsewhere").await.unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    begin(&store).await;
    let mut wake_ups = store.backend().store.wake_ups().await.unwrap();
    // Own commits are told by name, so that the next hint is the other process's.
    append(&store, "from here").await.unwrap();
    assert!(matches!(wake_ups.next().await, Some(WakeUp::Thread { .. })));
    let status = child("processes::a_commit_of_another_process_wakes_listeners", &path).status().unwrap();
    assert!(status.success());
    let hint = tokio::time::timeout(Duration::from_secs(30), wake_ups.next()).await.expect("a hint in time");
    assert_eq!(hint, Some(WakeUp::Anything));
    assert_eq!(texts(&store).await.unwrap().len(), 2);
}

/// Sixteen at once, each a connection of its own, on a file that none has made yet.
#[test]
fn many_open_a_new_file_at_once() {
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
