use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::programs::unprivileged;

// Reads one command per line. At the end of the input (the value was dropped, or the test process has ended), the script stops the program.
const SCRIPT: &str = r#"
start() { kill -0 "$pid" 2>/dev/null && return; "$@" >> "$FOLDER/log" 2>&1 < /dev/null & pid=$!; }
pid=
start "$@"
while read -r word; do
  case "$word" in
    start) start "$@" ;;
    kill) kill -KILL "$pid"; wait "$pid" 2>/dev/null ;;
  esac
done
kill -KILL "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
rm -rf "$FOLDER"
"#;

/// A program that runs until this value is dropped or the test process ends, in a folder that is then removed.
#[derive(Debug)]
pub(crate) struct Supervisor {
    pub(crate) folder: PathBuf,
    /// The shell's input. Closing it makes the shell stop the program.
    commands: Mutex<ChildStdin>,
}

impl Supervisor {
    /// Creates a folder that the unprivileged user can write to.
    pub(crate) fn make_folder() -> PathBuf {
        let folder = tempfile::Builder::new().prefix("threadkeep-redis-").tempdir().expect("a temporary folder").keep();
        if let Some((user, group)) = unprivileged() {
            std::os::unix::fs::chown(&folder, Some(user), Some(group)).expect("root can change the owner of a folder");
        }
        folder
    }

    /// Runs a program.
    pub(crate) fn start(folder: PathBuf, program: &Path, arguments: &[String]) -> Self {
        let mut command = Command::new("sh");
        if let Some((user, group)) = unprivileged() {
            command.uid(user).gid(group);
        }
        command.args(["-c", SCRIPT, "sh"]).arg(program).args(arguments).env("FOLDER", &folder).current_dir("/");
        let mut child = command
            // A separate process group, so that Ctrl-C in the terminal does not stop the program before the tests end.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell starts");
        let commands = child.stdin.take().expect("the input is piped");
        // Reaps the process when it ends.
        thread::spawn(move || child.wait());
        Self { folder, commands: Mutex::new(commands) }
    }

    pub(crate) fn send(&self, command: &str) {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(commands, "{command}").expect("the supervising shell is running");
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}
