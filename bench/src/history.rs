//! `history`: importing the sessions that programs keep on a machine: the first import, a second one, and following them.
//!
//! The baseline reads the same files and checks that they are JSON.

mod sessions;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::measure::{cpu_seconds_of, program, resident_kib};
use crate::texts::Language;
use sessions::{MIX, marker};

const MEGABYTE: u64 = 1_000_000;
/// How often the memory of a process, or whether a message is found, is checked.
const POLL: Duration = Duration::from_millis(50);
/// The time after which a message that is not found is an error.
const TIMEOUT: Duration = Duration::from_secs(600);
/// The number of sessions whose last question is searched for.
const CHECKED: u64 = 20;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Size of the sessions in megabytes
    #[arg(long, default_value_t = 1_000)]
    megabytes: u64,
    /// Seconds for which the CPU time of `--watch` is measured
    #[arg(long, default_value_t = 120)]
    idle_seconds: u64,
    /// The program to start; default: `threadkeep` beside this program
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Folder for the sessions and the store [default: a temporary folder]
    #[arg(long)]
    folder: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let binary = program(args.binary.as_deref())?;
    let temporary = tempfile::tempdir()?;
    let folder = args.folder.clone().unwrap_or_else(|| temporary.path().to_owned());
    let machine = Machine { binary, home: folder.join("home"), store: folder.join("history.db") };
    ensure!(!machine.store.exists(), "{} exists; the first import needs an empty store", machine.store.display());
    let paths = machine.write_sessions(args.megabytes * MEGABYTE)?;
    let bytes = paths.iter().map(|path| Ok(path.metadata()?.len())).sum::<Result<u64>>()?;
    let floor = parse_all(&paths)?;
    let began = Instant::now();
    let first = machine.import()?;
    machine.find_all(paths.len() as u64)?;
    let searchable = began.elapsed();
    let messages = first.report.pointer("/messages/new").and_then(Value::as_u64).context("no count of messages")?;
    ensure!(first.report["problem_count"] == 0, "{}", first.report["problems"]);
    let second = machine.import()?;
    ensure!(second.report["files_unchanged"] == paths.len(), "{}", second.report);
    let watched = machine.watch(&paths[0], args.idle_seconds)?;
    let milliseconds = |time: Duration| (time.as_secs_f64() * 1e3).round();
    let line = json!({
        "megabytes": bytes / MEGABYTE,
        "files": paths.len(),
        "messages": messages,
        "floor_ms": milliseconds(floor),
        "first_ms": milliseconds(first.time),
        "first_ratio": (first.time.as_secs_f64() / floor.as_secs_f64() * 100.0).round() / 100.0,
        "first_peak_mb": first.peak_kib / 1_000,
        "searchable_ms": milliseconds(searchable),
        "second_ms": milliseconds(second.time),
        "second_peak_mb": second.peak_kib / 1_000,
        "watch_idle_percent": (watched.idle_share * 1e4).round() / 1e2,
        "watch_peak_mb": watched.peak_kib / 1_000,
        "watch_found_ms": milliseconds(watched.found_after),
    });
    println!("{line}");
    Ok(())
}

/// A machine with sessions.
struct Machine {
    binary: PathBuf,
    home: PathBuf,
    store: PathBuf,
}

struct Import {
    time: Duration,
    peak_kib: u64,
    report: Value,
}

struct Watched {
    /// The share of one core that is used while nothing changes.
    idle_share: f64,
    peak_kib: u64,
    /// The time from the end of a write to a file until a search finds the message.
    found_after: Duration,
}

impl Machine {
    /// Writes sessions until they have this size. Returns their paths.
    fn write_sessions(&self, bytes: u64) -> Result<Vec<PathBuf>> {
        let language = Language::new(1);
        let bar = ProgressBar::new(bytes);
        let mut paths = Vec::new();
        while bar.position() < bytes {
            let number = paths.len();
            let session = MIX[number % MIX.len()].session(&language, number as u64);
            let path = self.home.join(session.path);
            std::fs::create_dir_all(path.parent().context("the path has a folder")?)?;
            std::fs::write(&path, &session.text)?;
            bar.inc(session.text.len() as u64);
            paths.push(path);
        }
        bar.finish_and_clear();
        Ok(paths)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.env_clear().env("HOME", &self.home).current_dir(&self.home);
        command.arg("--store").arg(&self.store).args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn import(&self) -> Result<Import> {
        // A pipe would be full before the process ends.
        let report = self.store.with_extension("json");
        let began = Instant::now();
        let mut command = self.command(&["import", "--all", "--yes", "--json"]);
        let mut child = command.stdout(File::create(&report)?).spawn()?;
        let mut peak_kib = 0;
        while child.try_wait()?.is_none() {
            peak_kib = resident_kib(child.id()).map_or(peak_kib, |(_, peak)| peak.max(peak_kib));
            std::thread::sleep(POLL);
        }
        let time = began.elapsed();
        let report = std::fs::read_to_string(report)?;
        ensure!(child.wait()?.success(), "the import failed: {report}");
        Ok(Import { time, peak_kib, report: serde_json::from_str(&report)? })
    }

    /// Searches for the last questions of some sessions.
    fn find_all(&self, sessions: u64) -> Result<()> {
        for number in 0..CHECKED.min(sessions) {
            let number = sessions - 1 - number * (sessions / CHECKED.min(sessions));
            ensure!(self.finds(&marker(number))?, "the last question of session {number} is not found");
        }
        Ok(())
    }

    fn finds(&self, word: &str) -> Result<bool> {
        let output = self.command(&["search", "--json", word]).output()?;
        let found: Value = serde_json::from_slice(&output.stdout).context("no result of the search")?;
        Ok(found["hits"].as_array().is_some_and(|hits| hits.len() == 1))
    }

    /// Follows the sessions: measures the CPU time while nothing changes, and how soon a new message of a session is found.
    fn watch(&self, session: &Path, seconds: u64) -> Result<Watched> {
        let arguments = ["import", "--all", "--yes", "--watch"];
        let mut child = Killed(self.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?);
        let mut notes = BufReader::new(child.0.stderr.take().context("the notes are a pipe")?).lines();
        let is_watching = notes.any(|line| line.is_ok_and(|line| line.contains("watching")));
        ensure!(is_watching, "the command does not watch");
        let process = child.0.id();
        let (before, began) = (cpu_seconds_of(process)?, Instant::now());
        std::thread::sleep(Duration::from_secs(seconds));
        let idle_share = (cpu_seconds_of(process)? - before) / began.elapsed().as_secs_f64();
        let mut file = File::options().append(true).open(session)?;
        let message = json!({ "role": "user", "content": "Where is the newword?" });
        let time = jiff::Timestamp::now().to_string();
        let line = json!({ "type": "user", "uuid": "new", "sessionId": "s", "message": message, "timestamp": time });
        writeln!(file, "{line}")?;
        let began = Instant::now();
        while !self.finds("newword")? {
            ensure!(began.elapsed() < TIMEOUT, "a new message is not found");
            std::thread::sleep(POLL);
        }
        let found_after = began.elapsed();
        Ok(Watched { idle_share, peak_kib: resident_kib(process)?.1, found_after })
    }
}

/// A process that is killed when this value is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads all files and checks that they are JSON. Returns the time that this takes.
fn parse_all(paths: &[PathBuf]) -> Result<Duration> {
    let began = Instant::now();
    for path in paths {
        let values = serde_json::Deserializer::from_reader(BufReader::new(File::open(path)?)).into_iter::<IgnoredAny>();
        for value in values {
            value?;
        }
    }
    Ok(began.elapsed())
}
