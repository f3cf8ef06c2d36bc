use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::programs::unprivileged;

// Reads one word a line. When the asking process is gone there is nothing more to read, and everything ends.
const SCRIPT: &str = r#"
start() { kill -0 "$pid" 2>/dev/null && return; "$@" >> "$FOLDER/log" 2>&1 < /dev/null & pid=$!; }
pid=
start "$@"
while read -r word; do
  case "$word" in
    start) start "$@" ;;
    kill) kill -KILL "$pid"; wait "$pid" 2>/dev/null ;;
    stop) kill -INT "$pid"; wait "$pid" 2>/dev/null ;;
  esac
done
# Once is not enough for a program that has only just begun, and does not listen to signals yet.
tries=0
while kill -0 "$pid" 2>/dev/null; do
  tries=$((tries + 1))
  [ "$tries" -lt 50 ] || END=KILL
  kill "-$END" "$pid" 2>/dev/null
  sleep 0.1
done
wait "$pid" 2>/dev/null
rm -rf "$FOLDER"
"#;

/// A program that runs until the process that asked for it is gone, in a folder that goes with it.
#[derive(Debug)]
pub(crate) struct Supervisor {
    pub(crate) folder: PathBuf,
    /// Its end, by the end of this or of the process, is what the shell waits for.
    words: Mutex<ChildStdin>,
}

impl Supervisor {
    /// Makes a folder that the unprivileged user may write.
    pub(crate) fn make_folder() -> PathBuf {
        let folder = tempfile::Builder::new().prefix("threadkeep-").tempdir().expect("a temporary folder").keep();
        if let Some((user, group)) = unprivileged() {
            std::os::unix::fs::chown(&folder, Some(user), Some(group)).expect("root may give a folder away");
        }
        folder
    }

    /// Runs a program, which a signal (`end`) ends at once.
    pub(crate) fn start(folder: PathBuf, end: &str, program: &Path, arguments: &[String]) -> Self {
        let mut command = as_unprivileged("sh");
        command
            .args(["-c", SCRIPT, "sh"])
            .arg(program)
            .args(arguments)
            .env("FOLDER", &folder)
            .env("END", end)
            .current_dir("/");
        let mut child = command
            // A group of its own, or the terminal's interrupt would reach it before the tests have ended.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell starts");
        let words = child.stdin.take().expect("the input is piped");
        // Reaped as soon as it ends.
        thread::spawn(move || child.wait());
        Self { folder, words: Mutex::new(words) }
    }

    pub(crate) fn say(&self, word: &str) {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(words, "{word}").expect("the supervising shell is there");
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

/// A command as the user that servers run as.
pub(crate) fn as_unprivileged(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = unprivileged() {
        command.uid(user).gid(group);
    }
    command
}
