//! Runs the built program, as people and other programs do.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod addresses;
mod appearance;
mod append;
mod approvals;
mod assistants;
mod audit;
mod backup;
mod branches;
mod browse;
mod chat;
mod config;
mod context;
mod damage;
mod demo;
mod docs;
mod erase;
mod erasure;
mod erasure_ledger;
mod export;
mod failures;
mod history;
mod import;
mod interrupted_imports;
mod interrupted_turns;
mod keys;
mod logging;
mod maintenance;
mod mcp;
mod migrate;
mod models;
mod permissions;
mod postgres;
mod provider;
mod reading;
mod readme;
mod recall;
mod redis;
mod serve;
mod shutdown;
mod slack;
mod slack_crash;
mod subway;
mod supabase;
mod tesis;
mod token;

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The maximum time that a test waits for an event.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The program, with its own folder and store.
struct Cli {
    folder: tempfile::TempDir,
    /// The URL of the store, if the store is not in the folder.
    url: Option<String>,
}

/// The exit code and the output of the program.
#[derive(Debug, PartialEq, Eq)]
struct RunOutput {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Cli {
    fn new() -> Self {
        let cli = Self { folder: tempfile::tempdir().unwrap(), url: None };
        cli.file("config.yaml", "");
        cli
    }

    /// Creates a store with the two threads of the fixture.
    fn with_garden() -> Self {
        let cli = Self::new();
        cli.import_garden();
        cli
    }

    fn import_garden(&self) {
        let text = std::fs::read_to_string(fixture("garden.jsonl")).unwrap();
        let (header, threads) = text.split_once('\n').unwrap();
        let (first, second) = threads.split_at(threads.rfind("{\"thread\":{\"id\"").unwrap());
        // Imported separately, because threads of one import are created in any order.
        for (thread, expected) in
            [(first, "imported 1 thread, 7 messages, 1 record\n"), (second, "imported 1 thread, 2 messages\n")]
        {
            let output = self.run_with_input(&["import", "-"], format!("{header}\n{thread}").as_bytes());
            assert_eq!((output.code, output.out.as_str()), (Some(0), expected), "{output}");
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn timetable(&self) -> PathBuf {
        self.path("subway.timetable")
    }

    fn ledger(&self) -> PathBuf {
        self.path("erasures.jsonl")
    }

    fn store(&self) -> PathBuf {
        self.path("store.db")
    }

    /// Writes a file to the folder. Returns its path.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_threadkeep"));
        for (name, _) in std::env::vars_os() {
            let named = name.to_string_lossy();
            let is_setting = |beginning: &&str| named.starts_with(beginning);
            if ["THREADKEEP_", "GROQ_", "OPENAI_", "ANTHROPIC_", "OLLAMA_", "MTA_", "SUBWAY_", "NO_COLOR", "RUST_LOG"]
                .iter()
                .any(is_setting)
            {
                command.env_remove(&name);
            }
        }
        command.env("THREADKEEP_CONFIG", self.path("config.yaml")).env("XDG_CONFIG_HOME", self.folder.path());
        command.env("XDG_STATE_HOME", self.folder.path());
        // Times are shown in the local time zone.
        command.env("TZ", "UTC");
        command.env("MTA_TIMETABLE", self.timetable());
        command.env("THREADKEEP_ERASURE_LEDGER", self.ledger());
        command.env("THREADKEEP_STORE", self.url.clone().unwrap_or_else(|| self.store().display().to_string()));
        command.current_dir(self.folder.path()).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> RunOutput {
        self.command(arguments).output().unwrap().into()
    }

    /// Runs a command that must succeed. Returns its standard output.
    fn out(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.code, Some(0), "{arguments:?}: {output}");
        output.out
    }

    /// Runs a command that must succeed. Returns its JSON output.
    fn json(&self, arguments: &[&str]) -> Value {
        let out = self.out(&[arguments, &["--json"]].concat());
        serde_json::from_str(&out).unwrap()
    }

    fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> RunOutput {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap().into()
    }

    fn message_count(&self) -> u64 {
        self.json(&["stats"])["messages"].as_u64().unwrap()
    }

    /// Returns the lines of an export without the header, which contains the time of the export.
    fn exported(&self) -> Vec<String> {
        self.out(&["export"]).lines().skip(1).map(str::to_owned).collect()
    }

    /// Waits until another process has written messages to the store.
    fn wait_for_messages(&self, child: &mut Child) {
        let started = Instant::now();
        loop {
            let output = self.run(&["stats", "--json"]);
            let stats: Option<Value> = serde_json::from_str(&output.out).ok();
            if stats.is_some_and(|stats| stats["messages"].as_u64() > Some(0)) {
                return;
            }
            assert_eq!(child.try_wait().unwrap(), None, "the process ended too early");
            assert!(started.elapsed() < TIMEOUT, "no message appeared: {output}");
        }
    }

    /// Whether any file of the folder contains the bytes.
    fn contains_bytes(&self, bytes: &[u8]) -> bool {
        std::fs::read_dir(self.folder.path()).unwrap().any(|entry| {
            let content = std::fs::read(entry.unwrap().path()).unwrap_or_default();
            content.windows(bytes.len()).any(|window| window == bytes)
        })
    }
}

impl From<Output> for RunOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl fmt::Display for RunOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or_else(|| "killed".to_owned(), |code| code.to_string());
        write!(f, "{}[exit {code}]", self.out)?;
        if self.err.is_empty() { Ok(()) } else { write!(f, "\n{}", self.err.trim_end()) }
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Compares a text with a snapshot. Placeholders replace the parts that differ between runs.
macro_rules! assert_prints {
    ($cli:expr, $name:literal, $text:expr) => {{
        let folder = $cli.folder.path().to_str().unwrap().to_owned();
        let text = $text.to_string().replace(&folder, "[folder]").replace(env!("CARGO_BIN_EXE_threadkeep"), "threadkeep");
        insta::with_settings!({
            prepend_module_to_snapshot => false,
            filters => vec![
                (r"01[0-9a-f]{6}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", "[id]"),
                (r"20(2[6-9]|[3-9][0-9])-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "[instant]"),
                (r"20(2[6-9]|[3-9][0-9])-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}", "[minute]"),
                (r#""(store_bytes|before_bytes|after_bytes|bytes)":[0-9]+"#, r#""$1":[bytes]"#),
                (r"[0-9.]+ (KiB|MiB)", "[size]"),
                (r#""(score|words|passage|neighbours|speaker|time)":[0-9.]+"#, r#""$1":[score]"#),
            ],
        }, { insta::assert_snapshot!($name, text) });
    }};
}
pub(crate) use assert_prints;
