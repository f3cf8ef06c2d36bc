//! Counts syncs, which do not depend on the disk's speed: strace traces `serve` while writers append for a second.
//!
//! `serve` runs in a separate process, so that tracing does not slow down what is timed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::turns::WARM_UP_MESSAGES;
use crate::session::Session;

/// How long the writers append.
const SECONDS: f64 = 1.0;

/// The result of counting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syncs {
    pub(super) per_turn: f64,
    /// Mean number of turns in one transaction, which needs one sync of the log.
    pub(super) group: usize,
}

/// Counts the syncs of writers. Returns `None` if strace is not installed.
pub(super) fn count(folder: &Path, pool: &[String], writers: usize) -> Result<Option<Syncs>> {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return Ok(None);
    }
    let trace = folder.join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "--seccomp-bpf", "-ttt", "-y", "-e", "trace=fdatasync,fsync", "-o"]).arg(&trace);
    command.arg(std::env::current_exe()?);
    let mut session = Session::start(command, folder, pool)?;
    session.request(&json!({ "op": "seed", "thread": "grown", "start": 0, "count": WARM_UP_MESSAGES }))?;
    let names: Vec<String> = (0..writers).map(|writer| format!("writer {writer}")).collect();
    // Opening the threads is not counted.
    session.request(&json!({ "op": "append", "threads": names, "seconds": SECONDS, "start": 0, "max_turns": 1 }))?;
    let began = since_epoch();
    let answer = session
        .request(&json!({ "op": "append", "threads": names, "seconds": SECONDS, "start": 2, "max_turns": null }))?;
    let ended = since_epoch();
    session.close()?;
    let turns: u64 =
        answer["per_writer"].as_array().context("missing per_writer")?.iter().filter_map(Value::as_u64).sum();
    ensure!(turns > 0, "no turn was appended");
    let (mut all, mut of_log) = (0_u32, 0_u32);
    for line in std::fs::read_to_string(&trace)?.lines().filter(|line| !line.contains(" resumed>")) {
        let at = line.split_ascii_whitespace().nth(1).and_then(|at| at.parse::<f64>().ok()).unwrap_or_default();
        if (began..=ended).contains(&at) && line.contains("sync(") {
            all += 1;
            of_log += u32::from(line.contains("-wal>"));
        }
    }
    ensure!(of_log > 0, "no syncs were traced: the turns were not durable");
    let group = (turns as f64 / f64::from(of_log)).round().max(1.0) as usize;
    Ok(Some(Syncs { per_turn: f64::from(all) / turns as f64, group }))
}

fn since_epoch() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}
